"""Figures: drawn where asked, showing the numbers they were given."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.offsetbox import TextArea

from diagatt import plots
from diagatt.estimators.summary import Summary, coefficient
from diagatt.plots.words import _pieces

WEIGHTS = np.array([[0.7, 0.1], [0.2, 0.1], [0.1, 0.8]])
LINES = [coefficient("head 0", "x0", 2.0, 0.5), coefficient("head 0", "$x_1", -1.0, np.nan)]
SUMMARY = Summary("t", {}, LINES, [])
CALLS = {
    "attention": lambda ax: plots.attention(WEIGHTS, true_rows=[2], ax=ax),
    "top_rows": lambda ax: plots.top_rows(WEIGHTS, ax=ax),
    "words": lambda ax: plots.words("a $b$ c", [(0, 1), (2, 5), (6, 7)], WEIGHTS, ax=ax),
    "patches": lambda ax: plots.patches(np.zeros((2, 6)), _boxes(), WEIGHTS, ax=ax),
    "scores": lambda ax: plots.scores([WEIGHTS, -WEIGHTS], [[0], [1]], head=1, ax=ax),
    "history": lambda ax: plots.history([[{"epoch": 1, "loss": 2.0}]], ax=ax),
    "observed_predicted": lambda ax: plots.observed_predicted([1.0, 2], [1.0, 3], ax=ax),
    "calibration": lambda ax: plots.calibration([0, 1], [0.2, 0.9], ax=ax),
    "coefficients": lambda ax: plots.coefficients(SUMMARY, ax=ax),
    "heads": lambda ax: plots.heads([WEIGHTS], ax=ax),
}


def _boxes():
    return [(0, 0, 2, 2), (0, 2, 2, 2), (0, 4, 2, 2)]


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


def test_attention_columns_have_the_weights_as_heights():
    ax = plots.attention(WEIGHTS, true_rows=[2])
    heights = np.array([bar.get_height() for bar in ax.patches]).reshape(2, 3).T
    np.testing.assert_array_equal(heights, WEIGHTS)
    assert ax.lines[0].get_xdata().tolist() == [2]


def test_top_rows_are_sorted_by_their_largest_weight():
    ax = plots.top_rows(WEIGHTS, names=["a", "$b", "c"], most=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a", "$b"]
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, 3).T
    np.testing.assert_array_equal(widths, WEIGHTS[[2, 0, 1]])
    with pytest.raises(ValueError, match="names has 2 entries, the sample has 3 rows"):
        plots.top_rows(WEIGHTS, names=["a", "b"])


def _areas(ax):
    return [box for box in ax.figure.findobj(TextArea) if box.get_text()]


def test_words_are_shaded_by_weight_and_wrapped_within_the_axes():
    text = "some words before the end " * 8 + "end"
    spans = [(26 * k, 26 * k + 4) for k in range(8)]
    weights = np.linspace(0, 1, 8)
    ax = plots.words(text, spans, weights)
    ax.figure.canvas.draw()
    shaded = [a for a in _areas(ax) if a._text.get_bbox_patch() is not None]
    assert [a.get_text() for a in shaded] == ["some"] * 8
    opacity = [a._text.get_bbox_patch().get_facecolor()[3] for a in shaded]
    np.testing.assert_allclose(opacity, 0.62 * weights)
    frame = ax.get_window_extent()
    for area in _areas(ax):
        extent = area._text.get_window_extent()
        assert extent.x1 <= frame.x1 + 2, "a line is longer than the axes"
    assert "".join(a.get_text() for a in _areas(ax)).replace(" ", "") == text.replace(" ", "")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.lists(st.tuples(*[st.integers(0, 30)] * 2), max_size=6))
def test_pieces_put_together_are_the_text(text, pairs):
    spans = [tuple(sorted((min(a, len(text)), min(b, len(text))))) for a, b in pairs]
    pieces = _pieces(text, spans, len(spans))
    assert "".join(piece for piece, _ in pieces) == text
    for piece, row in pieces:
        if row is not None:
            assert piece == text[slice(*spans[row])]


def test_words_refuse_spans_outside_the_text():
    with pytest.raises(ValueError, match=r"row 1: span \(2, 9\) is outside"):
        plots.words("abc", [(0, 1), (2, 9)], [0.5, 0.5])
    with pytest.raises(ValueError, match="1 spans for 2 rows"):
        plots.words("abc", [(0, 1)], [0.5, 0.5])


def test_patches_have_their_places_and_the_colour_of_their_head():
    ax = plots.patches(np.zeros((2, 6, 3)), _boxes(), WEIGHTS, true_rows=[0])
    drawn = {round(p.get_x() + 0.5): p for p in ax.patches}
    assert sorted(drawn) == [0, 2, 4]
    for left, (weight, hue) in zip((0, 2, 4), [(0.7, "C0"), (0.2, "C0"), (0.8, "C1")], strict=True):
        expected = to_rgba({"C0": "#0072B2", "C1": "#D55E00"}[hue], 0.3 * weight)
        np.testing.assert_allclose(drawn[left].get_facecolor(), expected)
    assert [drawn[k].get_linestyle() for k in (0, 2, 4)] == ["--", "-", "-"]
    assert len(plots.patches(np.zeros((2, 6)), _boxes(), WEIGHTS, head=1).patches) == 3
    with pytest.raises(ValueError, match="head 2 does not exist"):
        plots.patches(np.zeros((2, 6)), _boxes(), WEIGHTS, head=2)


def test_scores_count_pairs_as_brute_force_does():
    rng = np.random.default_rng(0)
    sample = [rng.integers(0, 5, size=(p, 2)).astype(float) for p in (3, 5, 4)]
    rows = [[0], [1, 2], [3]]
    wins = [
        (s[a, 1] > s[b, 1]) + 0.5 * (s[a, 1] == s[b, 1])
        for s, on in zip(sample, rows, strict=True)
        for a in on
        for b in range(len(s))
        if b not in on
    ]
    title = plots.scores(sample, rows, head=1).get_title()
    assert title == f"active rows score higher in {100 * np.mean(wins):.1f} % of pairs"
    with pytest.raises(ValueError, match="rows of sample 0"):
        plots.scores(sample, [[3], [0], [0]])


def test_history_draws_every_restart_and_the_held_out_loss():
    run = [{"epoch": k, "loss": 4.0 - k, "validation_loss": (k - 2) ** 2} for k in (1, 2, 3)]
    ax = plots.history([run, run[:2]])
    curves = [line.get_ydata().tolist() if len(line.get_xdata()) > 1 else None for line in ax.lines]
    assert curves == [[3.0, 2.0, 1.0], [1, 0, 1], None, [3.0, 2.0], [1, 0], None]
    assert ax.lines[2].get_xdata() == [2], "the best epoch is ringed"
    likelihood = [{"iteration": 1, "log_likelihood": -5.0}]
    assert plots.history([likelihood]).get_ylabel() == "log-likelihood"
    assert plots.history([likelihood, [{"epoch": 1, "loss": 1.0}]]).get_ylabel() == "loss"
    with pytest.raises(ValueError, match="empty"):
        plots.history([[]])


def test_calibrated_probabilities_lie_on_the_diagonal():
    rng = np.random.default_rng(0)
    probability = rng.uniform(size=40_000)
    ax = plots.calibration(rng.uniform(size=40_000) < probability, probability)
    x, share = ax.lines[1].get_data()
    np.testing.assert_allclose(share, x, atol=0.02)
    assert float(ax.get_title().split()[-1]) < 0.01
    with pytest.raises(ValueError, match="0 or 1"):
        plots.calibration([0, 2], [0.1, 0.2])


def test_coefficients_have_wald_intervals_where_errors_are_known():
    ax = plots.coefficients(SUMMARY, level=0.95)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["head 0  x0", "head 0  $x_1"]
    interval = ax.lines[1].get_xdata()
    np.testing.assert_allclose(interval, [2 - 1.959964 * 0.5, 2 + 1.959964 * 0.5], rtol=1e-6)
    assert len(ax.lines) == 4  # point and interval, point alone, the line at zero
    assert len(plots.coefficients(SUMMARY, most=1).get_yticks()) == 1


def test_heads_share_all_of_their_attention_with_themselves():
    rng = np.random.default_rng(0)
    weights = [rng.dirichlet(np.ones(p), size=3).T for p in (2, 5, 9)]
    shared = plots.heads(weights).images[0].get_array()
    np.testing.assert_allclose(np.diag(shared), 1)
    np.testing.assert_allclose(shared, shared.T)
    by_hand = np.mean([sum(min(a, b) for a, b in k[:, [0, 2]]) for k in weights])
    assert shared[0, 2] == pytest.approx(by_hand)


def test_found_and_missed_samples_are_drawn_apart():
    ax = plots.observed_predicted([1.0, 2, 3], [1.0, 2, 4], found=[True, True, False])
    assert [len(line.get_xdata()) for line in ax.lines] == [2, 2, 1]


def test_weights_of_many_samples_are_refused():
    with pytest.raises(ValueError, match="of one sample"):
        plots.attention(np.zeros((2, 3, 1)))


def test_the_example_runs(monkeypatch):
    monkeypatch.setattr("sys.argv", ["plot_attention.py"])
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "plot_attention.py"))
    assert len(plt.get_fignums()) == 4
