"""Attention weights and scores of rows: of one sample, of all samples, and shared by heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.arguments import Count
from diagatt.plots.canvas import REST, TRUTH, as_weights, axes_or_new, colour, tidy
from diagatt.tables import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def attention(weights: Any, *, true_rows: Any = (), ax: Axes | None = None) -> Axes:
    """Draw the weight κ_jr of every row j as a bar, with the heads side by side.

    Parameters
    ----------
    weights : array of shape (p, R)
        Weights of one sample, such as ``model.attention(X)[i]``.
    true_rows : row indices, optional
        Rows to mark with ▲ below the axis.
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
    for r, (place, width) in enumerate(_bar_places(p, n_heads)):
        ax.bar(place, weights[:, r], width, color=colour(r), label=f"head {r}")
    marked = np.atleast_1d(np.asarray(true_rows, dtype=int))
    if len(marked):
        height = np.full(len(marked), -0.04)
        ax.plot(marked, height, "^", color=TRUTH, ms=6, clip_on=False, label="true row")
    ax.axhline(0.5, color="0.8", lw=0.8, ls=":", zorder=0)
    ax.set(xlim=(-0.7, p - 0.3), ylim=(-0.08, 1.02))
    legend = n_heads > 1 or len(marked) > 0
    return tidy(ax, legend=legend, integer_x=True, xlabel="row", ylabel="attention")


def top_rows(
    weights: Any, *, names: Sequence[str] | None = None, most: Count = 10, ax: Axes | None = None
) -> Axes:
    """List the rows with the largest weights, each with its weight in every head.

    Parameters
    ----------
    weights : array of shape (p, R)
    names : p names of rows, optional
        For example the words of a text; row indices by default.
    most : int
        Count of rows to list.
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
    for r, (place, width) in enumerate(_bar_places(len(best), n_heads)):
        bars = ax.barh(place, weights[best, r], width, color=colour(r), label=f"head {r}")
        ax.bar_label(bars, [f"{w:.3f}" for w in weights[best, r]], padding=4, fontsize=8)
    labels = [f"row {j}" for j in best] if names is None else [str(names[j]) for j in best]
    ax.set_yticks(np.arange(len(best)), labels, parse_math=False)
    ax.set_xticks([0, 0.5, 1])
    ax.invert_yaxis()
    if n_heads > 1:
        ax.legend(frameon=False, fontsize=9, loc="lower right")
    ax.tick_params(axis="y", length=0)
    return tidy(ax, xlabel="attention", xlim=(0, 1.15))


def scores(
    scores: Sequence[Any],
    rows: Any,
    *,
    head: int = 0,
    bins: Count = 60,
    labels: tuple[str, str] = ("active", "rest"),
    ax: Axes | None = None,
) -> Axes:
    """Draw the distributions of the scores ψ of active rows and of all other rows.

    The title says how often an active row outscores another row of its own sample,
    ``P(ψ_active > ψ_other)`` over all pairs (a tie counts half).

    Parameters
    ----------
    scores : n arrays of shape (p_i, R)
        Such as ``model.scores(X)``.
    rows : array of shape (n, s), or n collections of row indices
        The active rows: the true ones if they are known, or else ``model.locate(X)[:, [head]]``.
    head : int
    bins : int
    labels : pair of str
        What the legend calls `rows` and the others; located rows are not known to be active.
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
        chosen = np.array(list(np.atleast_1d(chosen)), dtype=int)
        if not np.isin(chosen, np.arange(len(column))).all():
            raise ValueError(f"rows of sample {i} are {chosen}, but it has {len(column)} rows.")
        inside = np.isin(np.arange(len(column)), chosen)
        active.append(column[inside])
        rest.append(column[~inside])
        gap = column[inside][:, None] - column[~inside]
        wins, pairs = wins + (gap > 0).sum() + 0.5 * (gap == 0).sum(), pairs + gap.size
    ax = axes_or_new(ax, (5.5, 3.2))
    on, off = np.concatenate(active), np.concatenate(rest)
    edges = np.histogram_bin_edges(np.concatenate([on, off]), bins).tolist()
    inner, outer = f"{labels[0]} ({len(on):,})", f"{labels[1]} ({len(off):,})"
    ax.hist(off, edges, density=True, color=REST, alpha=0.8, label=outer)
    ax.hist(on, edges, density=True, color=colour(head), alpha=0.7, label=inner)
    if pairs:
        share = percent(wins / pairs)
        ax.set_title(f"{labels[0]} rows score higher in {share} of pairs", fontsize=10)
    return tidy(ax, legend=True, xlabel="score", ylabel="density")


def heads(weights: Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """Draw how much attention each pair of heads shares, ``mean_i Σ_j min(κ_ijr, κ_ijs)``.

    The value is 1 if two heads weight all rows equally, 0 if they never look at the same row.

    Parameters
    ----------
    weights : n arrays of shape (p_i, R)
        Such as ``model.attention(X)``.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = heads([[[1.0, 0.5], [0.0, 0.5]]])
    >>> ax.images[0].get_array().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    arrays = [as_weights(sample) for sample in weights]
    if not arrays:
        raise ValueError("weights is empty: pass model.attention(X).")
    each = [np.minimum(k[:, :, None], k[:, None, :]).sum(axis=0) for k in arrays]
    shared = np.mean(each, axis=0)  # (R, R)
    ax = axes_or_new(ax, (3.6, 3.2))
    ax.imshow(shared, vmin=0, vmax=1, cmap="Blues")
    names = [f"head {r}" for r in range(len(shared))]
    ax.set_xticks(range(len(shared)), names)
    ax.set_yticks(range(len(shared)), names)
    ax.tick_params(length=0)
    for (r, s), value in np.ndenumerate(shared):
        ink = "white" if value > 0.6 else "black"
        ax.text(s, r, f"{value:.2f}", ha="center", va="center", color=ink)
    ax.set_title("attention shared by two heads", fontsize=10)
    ax.spines[:].set_visible(False)
    return ax


def _bar_places(count: int, n_heads: int) -> list[tuple[np.ndarray, float]]:
    """Return positions and width of the bars of each head: groups of `count`, 0.8 wide."""
    width = 0.8 / n_heads
    return [(np.arange(count) - 0.4 + width * (r + 0.5), width) for r in range(n_heads)]
