"""Figures of a fit: training, coefficients, predictions and calibration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from diagatt import plots
from tests.plots.test_plots import SUMMARY


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


def test_found_and_missed_samples_are_drawn_apart():
    ax = plots.observed_predicted([1.0, 2, 3], [1.0, 2, 4], found=[True, True, False])
    assert [len(line.get_xdata()) for line in ax.lines] == [2, 2, 1]


def test_bars_of_a_calibration_are_wilsons_intervals():
    """A share of 0 or 1 is not known without error; nothing lies beyond 0 and 1."""
    from statsmodels.stats.proportion import proportion_confint

    happened, probability = np.repeat([0, 1, 0, 1], [10, 4, 6, 10]), np.repeat([0.1, 0.5, 0.9], 10)
    ax = plots.calibration(happened, probability, n_bins=3)
    bars = ax.collections[0].get_segments()
    for bar, count in zip(bars, (0, 4, 10), strict=True):
        known = proportion_confint(count, 10, method="wilson")
        np.testing.assert_allclose(bar[:, 1], known, atol=1e-15)  # the ends are at most 1


@pytest.mark.parametrize("largest", [35_320.0, 0.1818, 1.0])
def test_numbers_below_predictions_do_not_overlap(largest):
    y = np.linspace(0, largest, 20)
    ax = plots.observed_predicted(y, y)
    ax.figure.canvas.draw()
    shown = [label for label in ax.get_xticklabels() if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    gaps = [right.x0 - left.x1 for left, right in pairwise(boxes)]
    assert min(gaps) > 3
