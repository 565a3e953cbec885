"""Hostile data stays data: no script runs, no request leaves, text is shown as it is."""

from __future__ import annotations

import json

from selenium.webdriver.common.by import By

from tests.report.hostile import HOSTILE
from tests.report.looking import chosen


def requests(browser) -> list[str]:
    """Addresses the browser asked for since the last look, by its own log."""
    entries = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        entry["params"]["request"]["url"]
        for entry in entries
        if entry["method"] == "Network.requestWillBeSent"
    ]


def codes(browser, selector: str) -> list[int]:
    """UTF-16 units of an element's text: no transport in between can repair them."""
    return browser.execute_script(
        "const text = document.querySelector(arguments[0]).textContent;"
        "return Array.from({length: text.length}, (_, k) => text.charCodeAt(k))",
        selector,
    )


def units(text: str) -> list[int]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return [raw[k] + 256 * raw[k + 1] for k in range(0, len(raw), 2)]


def test_the_log_would_show_a_request(browser, tmp_path):
    """The oracle of the next test: a page that does ask is caught."""
    page = tmp_path / "asks.html"
    page.write_text("<img src='http://127.0.0.1:9/leak.png'>")
    browser.get_log("performance")
    browser.get(page.as_uri())
    assert "http://127.0.0.1:9/leak.png" in requests(browser)


def test_pages_ask_the_network_nothing(visit):
    for name in ("text.html", "rows.html", "image.html", "hostile.html"):
        asked = requests(visit(name))
        assert asked, "the page itself is in the log"
        assert all(url.startswith(("file:", "data:")) for url in asked)


def test_hostile_strings_are_shown_verbatim_and_never_run(visit, hostile):
    browser = visit("hostile.html")
    assert units(browser.title.strip()) == units(HOSTILE[1].strip())
    for i, text in enumerate(HOSTILE):
        assert chosen(browser) == i
        assert codes(browser, ".text") == units(text)
        assert codes(browser, "#sample h2") == units(text)
        predicted = str(hostile.model.predict(hostile.X[i : i + 1])[0])
        assert codes(browser, ".answer dd") == units(predicted)
        for row in browser.find_elements(By.CSS_SELECTOR, ".text .row"):
            browser.execute_script("arguments[0].focus()", row)
        browser.find_element(By.CSS_SELECTOR, '[aria-label="Next sample"]').click()
    assert browser.execute_script("return window.hacked") is None
    # Only elements of ours: nothing in the data became an element or an attribute.
    assert browser.execute_script("return document.scripts.length") == 2
    assert browser.find_elements(By.CSS_SELECTOR, "img, iframe, [onerror], [onmouseover]") == []
    assert all(url.startswith(("file:", "data:")) for url in requests(browser))


def test_policy_stops_scripts_that_are_not_the_pages_own(visit):
    browser = visit("text.html")
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
        "document.body.append(s);"
        "const handler = '<p onclick=\"window.hacked = 2\" id=p>p</p>';"
        "document.body.insertAdjacentHTML('beforeend', handler);"
        "document.getElementById('p').click()"
    )
    assert browser.execute_script("return window.hacked") is None
    assert any(
        "Content Security Policy" in entry["message"] for entry in browser.get_log("browser")
    )
