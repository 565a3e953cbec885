"""What a reader does and sees, in short words."""

from __future__ import annotations

import re

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def shown_names(browser):
    """Names in the list that are drawn, in order of their place."""
    return browser.execute_script(
        "return [...document.querySelectorAll('[role=option]')]"
        ".map(o => [Number(o.dataset.place), o.querySelector('.name').textContent])"
        ".sort((a, b) => a[0] - b[0])"
    )


def sample_numbers(browser):
    return [int(re.match(r"sample (\d+)", name)[1]) for _, name in shown_names(browser)]


def count(browser):
    return int(one(browser, "#count").text.split(" of ")[0].replace(",", ""))


def chosen(browser):
    return int(one(browser, "#sample").get_attribute("data-sample"))


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()
