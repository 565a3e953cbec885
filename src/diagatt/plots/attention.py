"""Attention of one sample: all rows and heads, and its top rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.plots.canvas import TRUTH, as_weights, axes_or_new, colour, tidy, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["attention", "top_rows"]


def attention(weights: Any, *, true_rows: Any = (), ax: Axes | None = None) -> Axes:
    """Draw the weight κ_jr of every row j as a column, heads beside each other.

    Parameters
    ----------
    weights : array of shape (p, R)
        Of one sample, as in ``model.attention(X)[i]``.
    true_rows : row numbers, optional
        Marked with ▲ below the line.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> ax = attention(np.array([[0.9, 0.0], [0.1, 1.0]]), true_rows=[0])
    >>> len(ax.patches)
    4
    """
    weights = as_weights(weights)
    p, n_heads = weights.shape
    ax = axes_or_new(ax, (7, 2.6))
    width = 0.8 / n_heads
    for r in range(n_heads):
        place = np.arange(p) - 0.4 + width * (r + 0.5)
        ax.bar(place, weights[:, r], width, color=colour(r), label=f"head {r}")
    marked = np.atleast_1d(np.asarray(true_rows, dtype=int))
    if len(marked):
        height = np.full(len(marked), -0.04)
        ax.plot(marked, height, "^", color=TRUTH, ms=6, clip_on=False, label="true row")
    ax.axhline(0.5, color="0.8", lw=0.8, ls=":", zorder=0)
    ax.set(xlabel="row", ylabel="attention", xlim=(-0.7, p - 0.3), ylim=(-0.08, 1.02))
    whole_ticks(ax)
    if n_heads > 1 or len(marked):
        ax.legend(frameon=False, fontsize=9)
    return tidy(ax)


def top_rows(
    weights: Any, *, names: Sequence[str] | None = None, most: int = 10, ax: Axes | None = None
) -> Axes:
    """List the rows with the largest weights, each with its weight in every head.

    Parameters
    ----------
    weights : array of shape (p, R)
    names : p names of rows, optional
        For example the words of a text; numbers by default.
    most : int
        Rows to list.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> ax = top_rows(np.array([0.1, 0.7, 0.2]), names=["a", "good", "film"], most=2)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['good', 'film']
    """
    weights = as_weights(weights)
    p, n_heads = weights.shape
    if names is not None and len(names) != p:
        raise ValueError(f"names has {len(names)} entries, the sample has {p} rows.")
    best = np.argsort(-weights.max(axis=1), kind="stable")[:most]
    ax = axes_or_new(ax, (5, 0.8 + 0.3 * len(best)))
    width = 0.8 / n_heads
    for r in range(n_heads):
        place = np.arange(len(best)) - 0.4 + width * (r + 0.5)
        bars = ax.barh(place, weights[best, r], width, color=colour(r), label=f"head {r}")
        ax.bar_label(bars, [f"{w:.3f}" for w in weights[best, r]], padding=4, fontsize=8)
    labels = [f"row {j}" for j in best] if names is None else [str(names[j]) for j in best]
    ax.set_yticks(np.arange(len(best)), labels, parse_math=False)
    ax.set(xlabel="attention", xlim=(0, 1.15))
    ax.set_xticks([0, 0.5, 1])
    ax.invert_yaxis()
    if n_heads > 1:
        ax.legend(frameon=False, fontsize=9, loc="lower right")
    ax.tick_params(axis="y", length=0)
    return tidy(ax)
