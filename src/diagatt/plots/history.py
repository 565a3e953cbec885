"""How training went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from diagatt.plots.canvas import axes_or_new, colour, tidy, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["history"]


def history(history: Sequence[Sequence[dict]], *, ax: Axes | None = None) -> Axes:
    """Draw loss, validation loss or log-likelihood by epoch or iteration, a line a restart.

    Parameters
    ----------
    history : list of lists of dicts
        As in ``model.history_``. Where the last stage of a fit speaks of another quantity than
        the first (a likelihood fit trained on by gradients), that of the last is drawn.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = history([[{"epoch": 1, "loss": 4.0}, {"epoch": 2, "loss": 3.0}]])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('epoch', 'loss')
    """
    runs = [run for run in history if len(run)]
    if not runs:
        raise ValueError("the history is empty: this fit had no iterations.")
    time = next(iter(runs[-1][0]))  # "epoch" or "iteration"
    value = "loss" if "loss" in runs[-1][0] else "log_likelihood"
    ax = axes_or_new(ax, (5.5, 3.2))
    drawn = [run for run in runs if value in run[0]]
    for k, run in enumerate(drawn):
        steps = [entry[time] for entry in run]
        name = value.replace("_", "-") if len(drawn) == 1 else f"restart {k}"
        ax.plot(steps, [entry[value] for entry in run], color=colour(k), marker=".", label=name)
        if "validation_loss" in run[0]:
            held = [entry["validation_loss"] for entry in run]
            ax.plot(steps, held, color=colour(k), ls="--", label="held out" if k == 0 else None)
            best = int(np.argmin(held))
            ax.plot(steps[best], held[best], "o", color=colour(k), mfc="none", ms=8)
    ax.set(xlabel=time, ylabel=value.replace("_", "-"))
    whole_ticks(ax)
    if len(drawn) > 1 or "validation_loss" in drawn[0][0]:
        ax.legend(frameon=False, fontsize=9)
    return tidy(ax)
