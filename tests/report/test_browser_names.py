"""Names, words and verdicts of the page, in a real browser."""

from __future__ import annotations

import numpy as np
import pytest
from selenium.webdriver.common.by import By

from diagatt import DiagAttRegressor, RaggedRows, simulate
from diagatt.report import write_page
from diagatt.report.page import UNTESTED, verdict
from tests.report.looking import one

LONG = "TCGA-OR-A5J1-01Z-00-DX1.600C7D8C-F04C-4125-AF14-B1E76DC01A1E-"
FEATURES = ["gene_093_expression", "CD8A", "LYZ"]


@pytest.fixture(scope="module")
def named(pages):
    """A page of numbers whose samples, rows and features have names; a row of interest is there."""
    data = simulate.regression(60, p=5, d=3, mu=(4,), sigma2=(4,), seed=0)
    ids = [f"{LONG}{i:03d}" for i in range(60)]
    rows = [f"cell-{j}" for j in range(300)]
    X = RaggedRows(data.X.values, data.X.offsets, FEATURES, ids, rows)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(X, data.y)
    write_page(pages / "named.html", model, X, data.y, ids=ids)
    return model, X


def inside(browser, selector, frame):
    """Whether all of an element lies inside another, from left to right."""
    own, outer = (one(browser, s).rect for s in (selector, frame))
    left, right = own["x"] - outer["x"], own["x"] + own["width"] - outer["x"] - outer["width"]
    return left >= 0 and right <= 1


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_id_does_not_push_the_prediction_out(visit, named, width):
    browser = visit("named.html", width, 900)
    assert inside(browser, "#option-0 .predicted", "#list")
    predicted = one(browser, "#option-0 .predicted")
    widths = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert browser.execute_script(widths, predicted) <= 1  # nothing of it is cut off
    model, X = named
    told = float(predicted.text.replace("−", "-"))
    assert told == pytest.approx(model.predict(X)[0], rel=1e-3)
    assert one(browser, "#option-3 .id").text.endswith("-003")  # the end tells samples apart
    assert one(browser, "#option-3 .name").get_attribute("title").startswith(LONG)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_rows_are_called_by_their_ids_and_features_by_their_names(visit, named):
    model, X = named
    browser = visit("named.html")
    row = int(model.locate(X)[0, 0])
    name = f"cell-{row}"
    assert one(browser, ".located-rows dt").text == name
    distance = (X[0][row] - X.values.mean(axis=0)) / X.values.std(axis=0)
    best = int(np.abs(distance).argmax())
    said = one(browser, ".located-rows dd").text.split(", ")[0]
    assert said == f"{FEATURES[best]} {distance[best]:+.1f}".replace("-", "−")
    assert one(browser, "tbody td").text == name
    assert one(browser, "tbody td").get_attribute("title") == f"row {row}"
    label = one(browser, ".columns .row.located").get_attribute("aria-label")
    assert label.startswith(f"{name} · row {row}; attention ")
    shown = {e.text for e in browser.find_elements(By.CSS_SELECTOR, "#groups .label")}
    assert shown == set(FEATURES)


def test_confidence_is_of_classes_and_attention_of_rows(visit, named):
    browser = visit("named.html")
    words = one(browser, "body").text.lower()
    assert "confiden" not in words
    assert "weight" not in one(browser, "#explorer").text.lower()
    assert "attention" in [e.text for e in browser.find_elements(By.CSS_SELECTOR, ".answer dt")]
    browser = visit("text.html")
    assert "confidence" in [e.text for e in browser.find_elements(By.CSS_SELECTOR, ".answer dt")]
    assert "deviance" not in one(browser, "body").text.lower()
    assert "Log score" in one(browser, ".metrics").text


def test_the_verdict_stands_at_the_top(visit, named):
    browser = visit("named.html")
    said = one(browser, "header .verdict")
    assert said.text == UNTESTED  # by the likelihood solver
    assert said.rect["y"] < one(browser, "#explorer").rect["y"]


def test_scores_that_are_means_over_restarts_are_not_shown(visit):
    browser = visit("image.html")
    assert not browser.find_elements(By.CSS_SELECTOR, "th.score")
    browser = visit("rows.html")
    assert browser.find_elements(By.CSS_SELECTOR, "th.score")


@pytest.mark.parametrize("page", ["text.html", "rows.html", "image.html", "named.html"])
def test_no_chip_wraps_alone_on_a_desktop(visit, named, page):
    browser = visit(page, 1280, 900)
    for selector in (".metrics > div", "#filters > button"):
        tops = {round(e.rect["y"]) for e in browser.find_elements(By.CSS_SELECTOR, selector)}
        assert len(tops) == 1, selector
    assert inside(browser, "#filters > button:last-child", ".tools")


def test_what_the_verdict_says():
    class Model:
        has_row_of_interest_ = None

    model = Model()
    assert verdict(model) is None
    model.has_row_of_interest_ = False
    assert verdict(model) == (
        "none",
        "No row of interest was found: do not read located rows as an answer.",
    )
    model.existence_ = {"p_value": 0.2}
    assert "(p = 0.200)" in verdict(model)[1]
    model.has_row_of_interest_, model.existence_, model.unevenness_ = None, None, [0.5]
    assert verdict(model) == ("untested", UNTESTED)
    model.has_row_of_interest_, model.existence_ = True, {"p_value": 1e-5}
    found, sentence = verdict(model)
    assert found == "found"
    assert sentence.startswith("A row of interest was found (p < 0.001): attention to single rows")


def test_numbers_after_features_are_explained_where_they_stand(visit, named):
    legend = one(visit("named.html"), ".legend").text
    assert "standard deviations from the mean of all rows" in legend
