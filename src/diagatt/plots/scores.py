"""How far scores of active rows stand from those of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.plots.canvas import REST, as_weights, axes_or_new, colour, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["scores"]


def scores(
    scores: Sequence[Any], rows: Any, *, head: int = 0, bins: int = 60, ax: Axes | None = None
) -> Axes:
    """Draw the distributions of the scores ψ of active rows and of all other rows.

    The text says how often an active row outscores another row of its own sample,
    ``P(ψ_active > ψ_other)`` over all pairs (ties count half).

    Parameters
    ----------
    scores : n arrays of shape (p_i, R)
        As in ``model.scores(X)``.
    rows : array of shape (n, s), or n collections of row numbers
        The active rows: true ones where known, else ``model.locate(X)[:, [head]]``.
    head : int
    bins : int
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = scores([[1.0, 5.0, 2.0], [4.0, 0.0]], [[1], [0]])
    >>> ax.get_title()
    'active rows score higher in 100.0 % of pairs'
    """
    active, rest, wins, pairs = [], [], 0.0, 0
    for i, (sample, chosen) in enumerate(zip(scores, rows, strict=True)):
        column = as_weights(sample, "scores")[:, head]
        inside = np.zeros(len(column), dtype=bool)
        chosen = np.array(list(np.atleast_1d(chosen)), dtype=int)
        if not np.isin(chosen, np.arange(len(column))).all():
            raise ValueError(f"rows of sample {i} are {chosen}, but it has {len(column)} rows.")
        inside[chosen] = True
        active.append(column[inside])
        rest.append(column[~inside])
        gap = column[inside][:, None] - column[~inside]
        wins, pairs = wins + (gap > 0).sum() + 0.5 * (gap == 0).sum(), pairs + gap.size
    ax = axes_or_new(ax, (5.5, 3.2))
    on, off = np.concatenate(active), np.concatenate(rest)
    edges = np.histogram_bin_edges(np.concatenate([on, off]), bins).tolist()
    ax.hist(off, edges, density=True, color=REST, alpha=0.8, label=f"rest ({len(off):,})")
    ax.hist(on, edges, density=True, color=colour(head), alpha=0.7, label=f"active ({len(on):,})")
    ax.set(xlabel="score", ylabel="density")
    if pairs:
        ax.set_title(
            f"active rows score higher in {100 * wins / pairs:.1f} % of pairs", fontsize=10
        )
    ax.legend(frameon=False, fontsize=9)
    return tidy(ax)
