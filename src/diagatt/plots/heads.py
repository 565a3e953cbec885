"""Whether heads look at the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.plots.canvas import as_weights, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["heads"]


def heads(weights: Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """Draw how much attention each two heads share, ``mean_i Σ_j min(κ_ijr, κ_ijs)``.

    1 where two heads weigh all rows alike, 0 where they never look at the same row.

    Parameters
    ----------
    weights : n arrays of shape (p_i, R)
        As in ``model.attention(X)``.
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
    shared = np.mean(
        [np.minimum(k[:, :, None], k[:, None, :]).sum(axis=0) for k in arrays], axis=0
    )  # (R, R)
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
