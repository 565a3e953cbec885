"""What all figures share: an axes to draw on, colours, and the check of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by colour-blind eyes (Okabe and Ito); one a head, in order.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#777777")
REST = "0.65"
TRUTH = "#222222"


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or those of a new pyplot figure (so that notebooks show it)."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Axes) -> Axes:
    """Leave out the frame's upper and right sides."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def whole_ticks(ax: Axes) -> None:
    """Ticks of the horizontal axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def colour(head: int) -> str:
    """The colour of a head."""
    return COLOURS[head % len(COLOURS)]


def as_weights(weights: Any, name: str = "weights") -> np.ndarray:
    """Numbers of one sample's rows, (p, R); a 1-D array is one head."""
    array = np.asarray(weights, dtype=float)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} must be of one sample, shape (rows, heads), got {array.shape}: "
            "pass model.attention(X)[i]."
        )
    return array


def strongest_head(weights: np.ndarray, head: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Weight to shade each row by, and the head whose colour it has.

    For ``head=None`` each row has its largest weight over heads.
    """
    if head is None:
        chosen = weights.argmax(axis=1)
    elif 0 <= head < weights.shape[1]:
        chosen = np.full(len(weights), head)
    else:
        raise ValueError(
            f"head {head} does not exist: there are heads 0 to {weights.shape[1] - 1}."
        )
    return weights[np.arange(len(weights)), chosen], chosen
