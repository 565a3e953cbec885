"""Predictions against responses: numbers, and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.metrics import rmse
from diagatt.plots.canvas import COLOURS, axes_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration", "observed_predicted"]


def observed_predicted(
    y: Any, prediction: Any, *, found: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw predictions against responses, with the line on which they are equal.

    Parameters
    ----------
    y, prediction : array of shape (n,)
    found : bool array of shape (n,), optional
        Samples whose rows were found (or any other split); the others are drawn in another
        colour, on top.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = observed_predicted([1.0, 2.0], [1.0, 4.0])
    >>> ax.get_title()
    'RMSE 1.414'
    """
    y, prediction = np.asarray(y, dtype=float), np.asarray(prediction, dtype=float)
    error = rmse(y, prediction)
    ax = axes_or_new(ax, (4.4, 4.2))
    low, high = min(y.min(), prediction.min()), max(y.max(), prediction.max())
    ax.plot([low, high], [low, high], color="0.6", lw=1, zorder=0)
    if found is None:
        ax.plot(y, prediction, ".", color=COLOURS[0], ms=4, alpha=0.7)
    else:
        hit = np.asarray(found, dtype=bool)
        ax.plot(y[hit], prediction[hit], ".", color=COLOURS[0], ms=4, alpha=0.7, label="found")
        ax.plot(y[~hit], prediction[~hit], ".", color=COLOURS[1], ms=5, label="missed")
        ax.legend(frameon=False, fontsize=9)
    ax.set(xlabel="observed", ylabel="predicted")
    ax.set_title(f"RMSE {error:.4g}", fontsize=10)
    return tidy(ax)


def calibration(
    correct: Any, probability: Any, *, n_bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw how often events happen that were given a probability, in bins of equal count.

    The title is the expected calibration error, ``Σ_b n_b/n · |mean y − mean p|`` over the bins.

    Parameters
    ----------
    correct : array of shape (n,), 0 or 1
        Whether the event happened, such as ``y == model.classes_[1]``.
    probability : array of shape (n,)
        That it was given, such as ``model.predict_proba(X)[:, 1]``.
    n_bins : int
    ax : matplotlib Axes, optional
        Bars are ±2 standard errors of a share.

    Examples
    --------
    >>> ax = calibration([0, 1, 1, 1], [0.25, 0.25, 1.0, 1.0], n_bins=2)
    >>> ax.get_title()
    'calibration error 0.125'
    """
    happened, given = np.asarray(correct, dtype=float), np.asarray(probability, dtype=float)
    if happened.ndim != 1 or happened.shape != given.shape or len(happened) == 0:
        raise ValueError(
            f"correct and probability must be 1-D of one length, got {happened.shape} and "
            f"{given.shape}."
        )
    if not (np.isin(happened, (0, 1)).all() and ((given >= 0) & (given <= 1)).all()):
        raise ValueError("correct must be 0 or 1, probability between 0 and 1.")
    parts = np.array_split(np.argsort(given, kind="stable"), min(n_bins, len(given)))
    size = np.array([len(part) for part in parts])
    x = np.array([given[part].mean() for part in parts])
    share = np.array([happened[part].mean() for part in parts])
    ax = axes_or_new(ax, (4.4, 4.2))
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
    spread = 2 * np.sqrt(share * (1 - share) / size)
    ax.errorbar(x, share, spread, fmt="o-", color=COLOURS[0], ms=5, lw=1, capsize=2)
    ax.set(xlabel="predicted probability", ylabel="share that happened")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    error = float((size * np.abs(share - x)).sum() / size.sum())
    ax.set_title(f"calibration error {error:.3f}", fontsize=10)
    return tidy(ax)
