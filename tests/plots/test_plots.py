"""All figures: drawn where asked, never shown."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from diagatt import DiagAttSurvival, plots
from diagatt.certainty import Certainty
from diagatt.certainty.summary import Summary, coefficient
from diagatt.lifetimes import make_times

WEIGHTS = np.array([[0.7, 0.1], [0.2, 0.1], [0.1, 0.8]])
LINES = [coefficient("head 0", "x0", 2.0, 0.5), coefficient("head 0", "$x_1", -1.0, np.nan)]
SUMMARY = Summary("t", {}, LINES, [])
CONTEST = [
    {"solver": "mixture", "what": "unit rows", "log_score": -0.5, "se": 0.0, "weight": 1.0},
    {"solver": "uniform", "what": "unit rows", "log_score": -0.7, "se": 0.1, "weight": 0.0},
    {"solver": "gradient", "what": "unit rows", "log_score": None, "se": None, "weight": 0.0},
]
CERTAINTY = Certainty(np.array([[0], [2]]), np.array([[0.9], [0.4]]), *[np.ones((2, 1))] * 2, [])
TIMES = {"time": [1.0, 2.0, 3.0, 4.0], "event": [True, True, True, False]}
COX = DiagAttSurvival(solver="uniform").fit(np.arange(8.0).reshape(4, 2) % 3, make_times(**TIMES))
BOXES = [(0, 0, 2, 2), (0, 2, 2, 2), (0, 4, 2, 2)]
CALLS = {
    "attention": lambda ax: plots.attention(WEIGHTS, true_rows=[2], ax=ax),
    "top_rows": lambda ax: plots.top_rows(WEIGHTS, ax=ax),
    "words": lambda ax: plots.words("a $b$ c", [(0, 1), (2, 5), (6, 7)], WEIGHTS, ax=ax),
    "patches": lambda ax: plots.patches(np.zeros((2, 6)), BOXES, WEIGHTS, ax=ax),
    "scores": lambda ax: plots.scores([WEIGHTS, -WEIGHTS], [[0], [1]], head=1, ax=ax),
    "history": lambda ax: plots.history([[{"epoch": 1, "loss": 2.0}]], ax=ax),
    "observed_predicted": lambda ax: plots.observed_predicted([1.0, 2], [1.0, 3], ax=ax),
    "calibration": lambda ax: plots.calibration([0, 1], [0.2, 0.9], ax=ax),
    "coefficients": lambda ax: plots.coefficients(SUMMARY, ax=ax),
    "contest": lambda ax: plots.contest(CONTEST, ax=ax),
    "row_reliability": lambda ax: plots.row_reliability(CERTAINTY, [0, 1], ax=ax),
    "heads": lambda ax: plots.heads([WEIGHTS], ax=ax),
    "roc": lambda ax: plots.roc([0, 1], [0.2, 0.9], ax=ax),
    "confusion": lambda ax: plots.confusion(["a", "b"], ["a", "a"], ax=ax),
    "slide": lambda ax: plots.slide([[0, 0], [256, 0]], [0.2, 1.8], 256, ax=ax),
    "survival_by_risk": lambda ax: plots.survival_by_risk(TIMES, [4, 3, 2, 1], n_groups=2, ax=ax),
    "baseline_hazard": lambda ax: plots.baseline_hazard(COX, ax=ax),
    "hazard_ratios": lambda ax: plots.hazard_ratios(COX, np.eye(COX.n_features_in_), ax=ax),
}


def test_every_figure_is_tried_here():
    assert set(CALLS) == set(plots.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_draws_on_the_axes_given_and_never_shows(name, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_: pytest.fail("show was called"))
    figure, (other, ax) = plt.subplots(1, 2)
    plt.sca(other)
    assert CALLS[name](ax) is ax
    assert plt.gca() is other, "the current axes changed"
    assert not other.has_data()
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


@pytest.mark.parametrize("name", CALLS)
def test_makes_one_figure_if_no_axes_are_given(name):
    ax = CALLS[name](None)
    assert plt.get_fignums() == [ax.figure.number]
    ax.figure.canvas.draw()


def test_the_example_runs(monkeypatch):
    monkeypatch.setattr("sys.argv", ["plot_attention.py"])
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "plot_attention.py"))
    assert len(plt.get_fignums()) == 4
