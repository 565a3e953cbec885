"""What all figures share: axes to draw on, colours, the check of weights, and image files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One colour per head, in order; distinguishable with colour blindness (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#777777")
REST = "0.65"  # rows that are not active
TRUTH = "#222222"


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or the axes of a new pyplot figure (so that notebooks show it)."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Axes, *, legend: bool = False, integer_x: bool = False, **labels: Any) -> Axes:
    """Hide the upper and right sides of the frame, and set labels, ticks and legend."""
    ax.set(**labels)
    ax.spines[["top", "right"]].set_visible(False)
    if integer_x:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if legend:
        ax.legend(frameon=False, fontsize=9)
    return ax


def colour(head: int) -> str:
    """Return the colour of a head."""
    return COLOURS[head % len(COLOURS)]


def as_weights(weights: Any, name: str = "weights") -> np.ndarray:
    """Return weights or scores of one sample's rows as (p, R); a 1-D array is one head."""
    array = np.asarray(weights, dtype=float)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} must be those of one sample, shape (rows, heads), got {array.shape}: "
            "pass model.attention(X)[i]."
        )
    return array


def strongest_head(weights: np.ndarray, head: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight that shades each row, and the head whose colour the row gets.

    With ``head=None`` each row gets its largest weight over all heads.
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


def figure_bytes(figure: Figure, kind: str, *, dpi: float) -> bytes:
    """Return a figure as PNG, PDF or SVG and close it; equal figures give equal bytes."""
    import matplotlib.pyplot as plt

    out = io.BytesIO()
    # Otherwise an SVG contains the date and random names of its parts.
    metadata = {"Date": None} if kind == "svg" else {}
    with plt.rc_context({"svg.hashsalt": "diagatt"}):
        figure.savefig(out, format=kind, dpi=dpi, metadata=metadata)
    plt.close(figure)  # pyplot would keep it as long as the process lives
    return out.getvalue()
