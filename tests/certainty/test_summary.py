"""What a paper reports: columns, names, words, and the same from a file."""

import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.certainty import ContestReport
from diagatt.certainty.summary import Summary, coefficient
from diagatt.solvers import Likelihood, Mixture

COLUMNS = ["head", "feature", "estimate", "se", "low", "high", "p_value"]


@pytest.fixture(scope="module")
def model():
    data = simulate.regression(150, p=4, d=2, mu=(3,), sigma2=(3,), seed=0, dtype=np.float64)
    frames = [pd.DataFrame(np.asarray(x), columns=["age_1", "dose & time"]) for x in data.X]
    Z = pd.DataFrame({"sex": np.arange(150) % 2.0})
    model = DiagAttRegressor(solver=Likelihood(), random_state=0)
    model.fit(frames, data.y, covariates=Z)
    return model.calibrate(frames, data.y, covariates=Z)


def test_the_frame_has_the_columns_and_names_of_a_paper(model):
    frame = model.summary(level=0.9).to_frame()
    assert list(frame.columns) == COLUMNS
    assert list(frame["feature"]) == ["age_1", "dose & time", "intercept", "sex"]
    np.testing.assert_allclose(frame["estimate"][:2], model.value_[0])
    np.testing.assert_allclose(frame["se"], model.value_se_)
    np.testing.assert_allclose(frame["high"] - frame["low"], 2 * 1.6448536 * frame["se"], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-4, 1.0, 1e5, 1e9])
def test_numbers_of_a_line_do_not_run_into_each_other(size):
    lines = [coefficient("head 0", "x0", -0.37162 * size, 0.11441 * size)]
    printed = str(Summary("Model", {"samples": 9}, lines, []))
    line = next(line for line in printed.splitlines() if line.startswith("head 0"))
    assert len(line.split()) == 8  # head, 0, x0, four numbers and p
    assert len(line) <= 79


def test_text_html_and_latex_say_the_same(model):
    summary = model.summary()
    assert summary.facts["samples"] == 150
    assert summary.facts["rows"] == 600
    text, html, latex = str(summary), summary.to_html(), summary.to_latex()
    assert "found (T =" in text
    assert "temperature of row weights" in text
    assert "sandwich" in text
    assert "log score out of fold" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "dose &amp; time" in html
    assert r"dose \& time" in latex
    assert r"age\_1" in latex
    assert latex.count(r"\\") == 1 + len(summary.coefficients)
    assert r"\caption{Coefficients of DiagAttRegressor with 95 \% intervals.}" in latex
    assert "Samples: 150. Rows: 600." in latex
    number = f"{model.value_[0, 0]:.3f}"  # errors of .01 to .1 have three decimals or four
    assert all(number[:-1] in form for form in (text, html, latex))


def test_numbers_of_a_line_have_the_decimals_of_their_error():
    lines = [coefficient("head 0", "x", -1.23456, 0.0321), coefficient("head 0", "y", 20.0, 3.3)]
    text = str(Summary("t", {}, lines, []))
    assert "-1.2346    0.0321   -1.2975   -1.1716   <0.001" in text
    assert "20.00      3.30     13.53     26.47   <0.001" in text
    assert r"\ensuremath{-}1.2346 & 0.0321" in Summary("t", {}, lines, []).to_latex()


def test_a_file_has_the_whole_summary(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    assert str(DiagAttRegressor.load(tmp_path / "m.safetensors").summary()) == str(model.summary())


def test_classes_have_lines_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3, 2))
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 150)]
    model = DiagAttClassifier(solver=Mixture(score_ridge=100.0, n_starts=1), random_state=0)
    with pytest.warns(UserWarning, match="no row of interest"):
        model.fit(X, y)
    frame = model.summary().to_frame()
    assert list(frame["head"].unique()) == [f"{x} {c}" for c in "abc" for x in ("head 0", "shared")]
    assert model.value_se_ is None or np.isfinite(frame["se"]).all()


def test_no_error_is_a_dash():
    for error in (np.nan, 0.0):  # no coefficient is certain
        summary = Summary("t", {}, [coefficient("head 0", "x", 1.0, error)], [])
        assert str(summary).splitlines()[-2].split()[-5:] == ["1.000", *"––––"]
        assert summary.to_frame()[["se", "low", "high", "p_value"]].isna().all(axis=None)


def test_criteria_of_more_parameters_than_samples_are_not_printed():
    line = {"n_heads": 1, "log_likelihood": -9.5, "n_parameters": 30, "aic": 79.0, "bic": 121.0}
    facts = {"samples": 30, "log-likelihood of": "responses"}
    assert "79.00" not in str(Summary("t", facts, [], [line]))
    assert "-9.50" in str(Summary("t", facts, [], [line]))
    for enough in ({"samples": 31}, {"log-likelihood of": "rows and responses"}):
        assert "79.00" in str(Summary("t", facts | enough, [], [line]))


def line(place, weight=0.0, judged=True):
    """Return a line whose log score falls with its place."""
    return {
        "solver": "gradient",
        "what": f"contestant {place}",
        "log_score": -float(place) if judged else None,
        "se": 0.1,
        "auc": 0.5,
        "weight": weight,
        "vote": weight,
        "seconds": 0.25,
    }


def test_a_long_contest_prints_the_best_and_all_that_have_weight():
    judged = [line(place, weight=0.5 if place in (0, 30) else 0.0) for place in range(40)]
    report = ContestReport([*judged, line(40, judged=False), line(41, judged=False)])
    head, *shown, rest = str(report).splitlines()
    assert [text.split("  ")[1].strip() for text in shown] == [
        f"contestant {place}" for place in [*range(10), 30]
    ]
    assert rest == "29 more had lower scores; 2 were dropped after the first folds."
    assert head.split()[-2:] == ["weight", "seconds"]
    assert len(report) == 42
    assert [entry["what"] for entry in report][-1] == "contestant 41"


def test_a_short_contest_prints_everything():
    report = ContestReport([line(0, weight=1.0), line(1)])
    assert len(str(report).splitlines()) == 3
    assert "contestant 1" in report._repr_html_()


def test_nothing_to_compare_prints_the_head_alone():
    assert str(ContestReport([])).split() == [
        "solver",
        "what",
        "log",
        "score",
        "±",
        "gap",
        "weight",
        "seconds",
    ]
