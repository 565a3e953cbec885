"""Phone, dark colours, and ten thousand samples."""

from __future__ import annotations

import sys
import time

import pytest
from selenium.webdriver.common.by import By

from diagatt import DiagAttRegressor, simulate
from diagatt.report import write_page
from tests.report.looking import chosen, count, one
from tests.report.reviews import make_reviews

NAMES = ("text.html", "rows.html", "image.html", "hostile.html")


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_sticks_out_on_a_narrow_screen(visit, width):
    for name in NAMES:
        browser = visit(name, width, 844)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_tap_on_a_phone_brings_the_sample_into_sight(visit):
    browser = visit("text.html", 390, 844)
    top = one(browser, "#list").rect
    assert one(browser, "#sample").rect["y"] >= top["y"] + top["height"]
    one(browser, "#option-2").click()
    assert chosen(browser) == 2
    place = browser.execute_script(
        "return document.querySelector('.text').getBoundingClientRect().top"
    )
    assert 0 <= place < 844


def test_dark_colours_follow_the_reader(visit):
    def brightness(selector, which):
        colour = one(browser, selector).value_of_css_property(which)
        return sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])

    for colours, sign in (("light", 1), ("dark", -1)):
        browser = visit("text.html", colours=colours)
        paper, ink = brightness("body", "background-color"), brightness("h1", "color")
        assert sign * (paper - ink) > 400


@pytest.fixture(scope="module")
def large_pages(pages, reviews):
    """Ten thousand samples: reviews, and matrices of a hundred rows with two heads."""
    new = make_reviews(10_000, seed=2, noise=0.9)
    write_page(
        pages / "large-text.html", reviews.model, new.X, new.y, texts=new.texts, spans=new.spans
    )
    train = simulate.regression(400, p=100, d=4, mu=(4, 3), sigma2=(4, 3), seed=0)
    model = DiagAttRegressor(n_heads=2, solver="likelihood", random_state=0)
    new = train.draw(10_000, seed=1)
    write_page(pages / "large-rows.html", model.fit(train.X, train.y), new.X, new.y)
    return pages


def test_chips_of_ten_thousand_samples_stay_in_one_line(visit, large_pages):
    browser = visit("large-text.html", 1280, 900)
    chips = browser.find_elements(By.CSS_SELECTOR, "#filters > button")
    assert len({round(chip.rect["y"]) for chip in chips}) == 1
    tools, last = one(browser, ".tools").rect, chips[-1].rect
    assert last["x"] + last["width"] <= tools["x"] + tools["width"]


TIMED = """
const [work, done] = arguments, start = performance.now();
({
  filter: () => document.querySelector('[data-filter="ambiguous"]').click(),
  search: () => {
    const field = document.getElementById('search');
    field.value = '77';
    field.dispatchEvent(new Event('input'));
  },
  sort: () => {
    const menu = document.getElementById('sort');
    menu.value = 'unsure';
    menu.dispatchEvent(new Event('change'));
  },
  all: () => document.querySelector('[data-filter="all"]').click(),
})[work]();
requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
"""


@pytest.mark.parametrize("name", ["large-text.html", "large-rows.html"])
def test_ten_thousand_samples(visit, large_pages, name, capsys):
    size = (large_pages / name).stat().st_size
    start = time.perf_counter()
    browser = visit(name)
    wall = time.perf_counter() - start
    ready = browser.execute_script("return performance.getEntriesByName('ready')[0].startTime")
    assert size <= 20_000_000
    assert count(browser) == 10_000
    assert browser.execute_script("return document.getElementsByTagName('*').length") < 2000
    took = {}
    for work in ("filter", "all", "sort", "search"):
        took[work] = browser.execute_async_script(TIMED, work)
        assert len(browser.find_elements(By.CSS_SELECTOR, "[role=option]")) < 40
    with capsys.disabled():
        times = ", ".join(f"{work} {ms:.0f} ms" for work, ms in took.items())
        print(
            f"\n{name}: 10,000 samples, {size / 1e6:.1f} MB, ready after {ready / 1000:.2f} s "
            f"({wall:.2f} s with the driver), {times}",
            file=sys.stderr,  # what pytest's workers pass on
        )
