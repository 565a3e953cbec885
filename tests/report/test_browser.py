"""The page in a real browser: every control, by pointer and by keyboard."""

from __future__ import annotations

import re
from importlib.resources import files

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from diagatt.report import collect
from tests.report.looking import chosen, count, one, press, sample_numbers, shown_names
from tests.report.reviews import BAD, GOOD


def test_filters_show_exactly_the_samples_they_name(visit, reviews):
    browser, new = visit("text.html"), reviews.data
    samples = collect(reviews.model, new.X, new.y)
    expected = {
        "all": np.ones(len(samples), bool),
        "right": reviews.model.predict(new.X) == new.y,
        "wrong": reviews.model.predict(new.X) != new.y,
        "ambiguous": reviews.model.certainty(new.X).ambiguous.any(axis=1),
    }
    for name, mask in expected.items():
        button = one(browser, f'[data-filter="{name}"]')
        button.click()
        assert button.get_attribute("aria-checked") == "true"
        assert count(browser) == mask.sum() == int(button.text.split()[-1])
        first = np.flatnonzero(mask)
        assert sample_numbers(browser) == list(first[: len(sample_numbers(browser))])
        assert chosen(browser) in first


def test_sorting_by_confidence_and_error(visit, reviews):
    browser, new = visit("text.html"), reviews.data
    samples = collect(reviews.model, new.X, new.y)
    orders = {"sure": -samples.confidence, "unsure": samples.confidence, "error": -samples.error}
    for name, key in orders.items():
        Select(one(browser, "#sort")).select_by_value(name)
        drawn = np.asarray(key)[sample_numbers(browser)]
        assert np.all(np.diff(drawn) >= -1e-3)  # the page rounds to half precision
        assert drawn[0] == pytest.approx(key.min(), abs=1e-3)


def test_search_by_text_name_and_no_result(visit, reviews):
    browser, texts = visit("text.html"), reviews.data.texts
    field = one(browser, "#search")
    field.send_keys("TEDIOUS")
    assert count(browser) == sum("tedious" in text for text in texts) > 0
    field.clear()
    field.send_keys("sample 123")
    assert sample_numbers(browser) == [123]
    field.send_keys("zzz")
    assert count(browser) == 0
    assert one(browser, "#none").is_displayed()
    field.send_keys(Keys.ESCAPE)
    assert count(browser) == len(texts)


def test_text_is_shaded_by_weight_and_tells_its_score(visit, reviews):
    browser, new = visit("text.html"), reviews.data
    weights, scores = reviews.model.attention(new.X)[0][:, 0], reviews.model.scores(new.X)[0][:, 0]
    spans = browser.find_elements(By.CSS_SELECTOR, ".text .row")
    assert [s.text for s in spans] == [new.texts[0][a:b] for a, b in new.spans[0]]
    drawn = browser.execute_script(
        "return arguments[0].map(e => Number(getComputedStyle(e).getPropertyValue('--w')))", spans
    )
    np.testing.assert_allclose(drawn, weights, atol=1e-3)
    best = int(weights.argmax())
    assert "located" in spans[best].get_attribute("class")
    ActionChains(browser).move_to_element(spans[best]).perform()
    tip = one(browser, "#tooltip")
    assert tip.is_displayed()
    told = float(re.search(r"score (\S+?),", tip.text)[1].replace("−", "-"))
    assert told == pytest.approx(scores[best], rel=0.01)
    assert new.texts[0][slice(*new.spans[0][best])] in tip.text
    ActionChains(browser).move_to_element(one(browser, "h1")).perform()
    assert not tip.is_displayed()


def test_heads_one_by_one_and_together(visit, two_heads):
    browser, new = visit("rows.html"), two_heads.data
    weights, located = two_heads.model.attention(new.X)[0], two_heads.model.locate(new.X)[0]

    def columns():
        return browser.find_elements(By.CSS_SELECTOR, ".columns .value")

    assert len(columns()) == weights.size
    assert len(browser.find_elements(By.CSS_SELECTOR, ".columns .row.located")) == len(set(located))
    for head in (0, 1):
        one(browser, f'[data-head="{head}"]').click()
        heights = [float(c.get_attribute("height")) for c in columns()]
        np.testing.assert_allclose(heights, weights[:, head], atol=1e-3)
        marked = browser.find_elements(By.CSS_SELECTOR, ".columns .row.located")
        assert [int(m.get_attribute("data-row")) for m in marked] == [located[head]]
        assert browser.switch_to.active_element.get_attribute("data-head") == str(head)
    press(browser, Keys.ARROW_RIGHT)  # from the last head round to all of them
    assert one(browser, '[data-head="-1"]').get_attribute("aria-checked") == "true"
    one(browser, '[aria-label="Next sample"]').click()
    assert (chosen(browser), len(columns())) == (1, weights.size)
    truth = browser.find_elements(By.CSS_SELECTOR, ".columns .truth")
    assert len(truth) == len(set(new.rows[1]))


def test_picture_has_a_box_for_every_row(visit, patches):
    browser, new = visit("image.html"), patches.data
    boxes = browser.find_elements(By.CSS_SELECTOR, ".picture-view .row")
    assert len(boxes) == len(new.boxes[0])
    located = one(browser, ".picture-view .row.located")
    row = patches.model.locate(new.X)[0, 0]
    drawn = [int(located.get_attribute(k)) for k in ("y", "x", "height", "width")]
    assert drawn == new.boxes[0][row].tolist()
    ActionChains(browser).move_to_element(located).perform()
    assert one(browser, "#tooltip").text.startswith(f"row {row}")
    one(browser, ".patch").click()  # opens the sample the patch comes from
    name = one(browser, ".patch").get_attribute("title")
    assert name.startswith(one(browser, "#sample h2").text)


def test_keyboard_alone(visit, reviews):
    browser = visit("text.html")
    press(browser, "/")
    assert browser.switch_to.active_element.get_attribute("id") == "search"
    press(browser, "dismal", Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "list"
    fitting = [i for i, text in enumerate(reviews.data.texts) if "dismal" in text]
    assert chosen(browser) == fitting[0]
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
    assert chosen(browser) == fitting[1]
    press(browser, Keys.END)
    assert chosen(browser) == fitting[-1]
    press(browser, Keys.HOME, Keys.PAGE_DOWN)
    assert chosen(browser) in fitting[1:]
    active = one(browser, "#list").get_attribute("aria-activedescendant")
    assert one(browser, f"#{active}").get_attribute("aria-selected") == "true"
    press(browser, Keys.TAB, Keys.TAB, Keys.TAB)  # two buttons, then the row with the most weight
    row = browser.switch_to.active_element
    assert "located" in row.get_attribute("class")
    assert "score" in row.get_attribute("aria-label")
    before = int(row.get_attribute("data-row"))
    press(browser, Keys.ARROW_LEFT)
    assert int(browser.switch_to.active_element.get_attribute("data-row")) == before - 1
    assert one(browser, "#tooltip").text.startswith(f"row {before - 1}")
    one(browser, '[data-filter="all"]').click()
    press(browser, Keys.ARROW_RIGHT)
    assert one(browser, '[data-filter="right"]').get_attribute("aria-checked") == "true"


def test_top_words_are_the_words_that_decide_and_search(visit):
    browser = visit("text.html")
    groups = browser.find_elements(By.CSS_SELECTOR, ".group")
    assert [g.find_element(By.TAG_NAME, "h3").text for g in groups] == [
        "predicted negative",
        "predicted positive",
    ]
    first = [g.find_element(By.CSS_SELECTOR, "button") for g in groups]
    words = [button.text for button in first]
    assert words[0] in BAD
    assert words[1] in GOOD
    first[1].click()
    assert one(browser, "#search").get_attribute("value") == words[1]
    assert count(browser) > 0


def test_only_what_is_in_sight_is_drawn(visit, reviews):
    browser = visit("text.html")
    one(browser, "#list").send_keys(Keys.END)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    places = [place for place, _ in shown_names(browser)]
    assert places[-1] == len(reviews.data.texts) - 1
    assert len(places) < 40
    assert one(browser, f"#option-{places[-1]}").is_displayed()


def test_no_message_in_the_console(visit):
    for name in ("text.html", "rows.html", "image.html", "hostile.html"):
        assert visit(name).get_log("browser") == []


def test_shares_are_never_rounded_to_all_or_nothing(visit):
    scripts = files("diagatt.report").joinpath("data.js").read_text(encoding="utf-8")
    own = re.search(r"function percent\(share\) \{.*?\n\}", scripts, re.DOTALL)[0]
    asked = f"{own}\nreturn [1, 0.9998, 0.5, 1e-5, 0].map(percent)"
    said = visit("text.html").execute_script(asked)
    assert said == ["100 %", "> 99.9 %", "50.0 %", "< 0.1 %", "0 %"]
