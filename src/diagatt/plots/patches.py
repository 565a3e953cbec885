"""Patches shaded over their image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.plots.canvas import as_weights, axes_or_new, colour, strongest_head

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["patches"]


def patches(
    image: Any,
    boxes: Any,
    weights: Any,
    *,
    head: int | None = None,
    true_rows: Any = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw an image with a box for every row, the stronger the larger its weight.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, 3)
    boxes : array of shape (p, 4)
        Row j is the patch (top, left, height, width), in pixels.
    weights : array of shape (p, R)
    head : int, optional
        Show this head; by default each row has its largest weight.
    true_rows : row numbers, optional
        Dashed.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> ax = patches(np.zeros((4, 8)), [(0, 0, 4, 4), (0, 4, 4, 4)], [0.2, 0.8])
    >>> len(ax.patches)
    2
    """
    from matplotlib.patches import Rectangle

    array, boxes = as_weights(weights), np.asarray(boxes)
    if boxes.shape != (len(array), 4):
        raise ValueError(f"boxes have shape {boxes.shape}, {len(array)} rows need (rows, 4).")
    shade, chosen = strongest_head(array, head)
    ax = axes_or_new(ax, (4, 4))
    pixels = np.asarray(image)
    ax.imshow(pixels, cmap="gray" if pixels.ndim == 2 else None, interpolation="nearest")
    for j in np.argsort(shade, kind="stable"):  # the strongest on top
        top, left, height, width = boxes[j]
        hue, weight = colour(chosen[j]), float(np.clip(shade[j], 0, 1))
        ax.add_patch(
            Rectangle(
                (left - 0.5, top - 0.5),
                width,
                height,
                facecolor=(hue, 0.3 * weight),
                edgecolor=(hue, 0.12 + 0.88 * weight),
                linewidth=0.6 + 2.4 * weight,
                linestyle="--" if j in np.atleast_1d(true_rows) else "-",
            )
        )
    ax.set_axis_off()
    return ax
