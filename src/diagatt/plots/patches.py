"""Images: rows as boxes, attention as a heat map, and coefficient matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.plots.canvas import as_weights, axes_or_new, colour, strongest_head

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEAT, BOX, TRUTH = "#ff7f0e", "#d62728", "#17becf"


def patches(
    image: Any,
    boxes: Any,
    weights: Any,
    *,
    head: int | None = None,
    true_rows: Any = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw an image with one box per row; the larger its weight, the stronger the box.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, 3)
    boxes : array of shape (p, 4)
        Row j is the patch (top, left, height, width), in pixels.
    weights : array of shape (p, R)
    head : int, optional
        Show this head; by default each row has its largest weight.
    true_rows : row indices, optional
        Rows whose boxes are dashed.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> ax = patches(np.zeros((4, 8)), [(0, 0, 4, 4), (0, 4, 4, 4)], [0.2, 0.8])
    >>> len(ax.patches)
    2
    """
    array, boxes = as_weights(weights), np.asarray(boxes)
    if boxes.shape != (len(array), 4):
        raise ValueError(f"boxes have shape {boxes.shape}, {len(array)} rows need (rows, 4).")
    shade, chosen = strongest_head(array, head)
    ax = axes_or_new(ax, (4, 4))
    _show(ax, np.asarray(image))
    for j in np.argsort(shade, kind="stable"):  # the strongest on top
        top, left, height, width = boxes[j]
        hue, weight = colour(chosen[j]), float(np.clip(shade[j], 0, 1))
        _box(
            *(ax, top, left, top + height, left + width),
            facecolor=(hue, 0.3 * weight),
            edgecolor=(hue, 0.12 + 0.88 * weight),
            linewidth=0.6 + 2.4 * weight,
            linestyle="--" if j in np.atleast_1d(true_rows) else "-",
        )
    ax.set_axis_off()
    return ax


def draw_attention(model: Any, image: Any, axes: Any = None, truth: Any = None) -> Figure:
    """Draw an image with the heat map and the patch of interest of each head.

    The shade is `heatmap`: the probability that a pixel lies in the head's patch of interest.
    The solid box is the patch of `locate`, with its attention weight above the panel.

    Parameters
    ----------
    model : fitted ImageClassifier or ImageRegressor
        Its estimator must have attention weights.
    image : array, path or PIL image
    axes : matplotlib axes, one per head, optional
        Panels of a new figure by default.
    truth : (top, left, bottom, right), optional
        The true place, drawn as a dashed box that is one pixel wider.

    Examples
    --------
    >>> from diagatt import DiagAttClassifier
    >>> from diagatt.datasets.canvas import digit_canvas
    >>> from diagatt.images import ImageClassifier
    >>> train, test = digit_canvas(300, 1, size=24, seed=0)
    >>> quick = DiagAttClassifier(solver="likelihood", random_state=0)
    >>> model = ImageClassifier(estimator=quick).fit(train.images, train.y)
    >>> figure = draw_attention(model, test.images[0])
    >>> figure.axes[0].get_title()[:14]
    'head 0: weight'
    """
    from matplotlib.colors import LinearSegmentedColormap

    from diagatt.kinds.image.reading import read_image

    pixels = read_image(image, model.channels, model.max_pixels)
    heat = model.heatmap([image])[0]  # (H, W, R)
    boxes, located = model.boxes([image])[0], model.locate([image])[0]
    weights = model.attention([image])[0][located, np.arange(len(located))]
    ramp = [(HEAT, 0.0), (HEAT, 0.4)]  # the image stays visible under the heat
    heat_colours = LinearSegmentedColormap.from_list("heat", ramp)
    figure, panels = _panels(axes, len(located))
    for head, axis in enumerate(panels):
        _show(axis, pixels)
        here = heat[..., head]
        shade = axis.imshow(here, cmap=heat_colours, vmin=0, vmax=float(here.max()))
        figure.colorbar(shade, ax=axis, fraction=0.046, pad=0.03, label="attention")
        if truth is not None:
            wider = np.add(truth, [-1, -1, 1, 1])  # else one box would hide the other
            _box(axis, *wider, fill=False, edgecolor=TRUTH, ls=(0, (3, 1.5)), lw=1.5)
        _box(axis, *boxes[head], fill=False, edgecolor=BOX, linewidth=1.8)
        axis.set(xticks=[], yticks=[])
        axis.set_title(f"head {head}: weight {weights[head]:.2f}", fontsize=10)
    return figure


def draw_coefficients(model: Any, axes: Any = None) -> Figure:
    """Draw the coefficient matrices V_k, one panel per head and class; zero is white.

    Every restart of an average has its own panels; colour channels are summed.

    Parameters
    ----------
    model : fitted ImageClassifier or ImageRegressor
    axes : matplotlib axes, one per matrix, optional
    """
    matrices = model.coefficient_matrices()
    if model.patches_.n_channels_ > 1:
        matrices = matrices.sum(axis=-1)
    labels = [f"head {k}" for k in range(len(matrices))]
    if matrices.ndim == 4:
        labels = [f"{head}, class {c}" for head in labels for c in model.classes_]
    matrices = matrices.reshape(-1, *matrices.shape[-2:])
    figure, panels = _panels(axes, len(matrices))
    bound = float(np.abs(matrices).max()) or 1.0
    for matrix, axis, label in zip(matrices, panels, labels, strict=True):
        picture = axis.imshow(matrix, cmap="RdBu_r", vmin=-bound, vmax=bound)
        axis.set(xticks=[], yticks=[])
        axis.set_title(label, fontsize=10)
    figure.colorbar(picture, ax=list(panels), fraction=0.046, pad=0.03, label="coefficient")
    return figure


def _panels(axes: Any, count: int) -> tuple[Any, np.ndarray]:
    """Return a figure and its panels: the given ones, or new ones that pyplot does not know."""
    if axes is None:
        from matplotlib.figure import Figure

        across = min(count, 5)
        down = -(-count // across)
        figure = Figure(figsize=(3.6 * across, 3.2 * down), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for unused in axes[count:]:
            unused.set_axis_off()
        axes = axes[:count]
    panels = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(panels) != count:
        raise ValueError(f"{len(panels)} axes for {count} panels: pass one axes per panel.")
    return panels[0].figure, panels


def _show(axis: Axes, pixels: np.ndarray) -> None:
    """Show an image, stretched to its own range and without its opacity."""
    if pixels.ndim == 3:
        pixels = pixels[..., 0] if pixels.shape[2] < 3 else pixels[..., :3]
    low, high = float(pixels.min()), float(pixels.max())
    stretched = (pixels - low) / ((high - low) or 1.0)
    axis.imshow(stretched, cmap="gray", vmin=0, vmax=1, interpolation="nearest")


def _box(axis: Axes, top: float, left: float, bottom: float, right: float, **style: Any) -> None:
    from matplotlib.patches import Rectangle

    corner = (float(left) - 0.5, float(top) - 0.5)  # pixels are centred at whole numbers
    axis.add_patch(Rectangle(corner, float(right - left), float(bottom - top), **style))
