"""Where an image model looked: heat map and patch box over the image, one panel per head."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.kinds.answers import answer
from diagatt.kinds.image.reading import read_image

__all__ = ["draw_attention", "draw_coefficients"]

HEAT, BOX, TRUTH = "#ff7f0e", "#d62728", "#17becf"


def draw_attention(model: Any, image: Any, axes: Any = None, truth: Any = None) -> Any:
    """Draw an image with each head's heat map and box.

    The shade is `heatmap`: how probable it is that a pixel lies in the head's patch of interest.
    The solid box is the patch of `locate`, with its attention weight above the panel.

    Parameters
    ----------
    model : fitted ImageClassifier or ImageRegressor
        With an estimator that has attention weights.
    image : array, path or PIL image
    axes : matplotlib axes, one per head, optional
        A new figure by default.
    truth : (top, left, bottom, right), optional
        Where the thing of interest is known to stand: a dashed box, drawn one pixel wider.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from diagatt.datasets.canvas import digit_canvas
    >>> from diagatt.images import ImageClassifier
    >>> train, test = digit_canvas(300, 1, size=24, seed=0)
    >>> model = ImageClassifier(random_state=0).fit(train.images, train.y)
    >>> figure = draw_attention(model, test.images[0])
    >>> figure.axes[0].get_title()
    'head 0: weight 1.00'
    """
    pixels = read_image(image, model.channels, model.max_pixels)
    found = answer(model, [image])
    if found.located_weights is None:
        raise TypeError(f"{type(found.estimator).__name__} has no attention weights to draw.")
    (heat,) = model.patches_.inverse(found.weights, [image])  # (H, W, R)
    (boxes,), (weights,) = found.prepared.boxes(found.located), found.located_weights
    figure, panels = _panels(axes, len(boxes))
    for head, axis in enumerate(panels):
        _show(axis, pixels)
        shade = _shade(axis, heat[..., head])
        figure.colorbar(shade, ax=axis, fraction=0.046, pad=0.03, label="attention")
        if truth is not None:
            wider = np.add(truth, [-1, -1, 1, 1])  # else one box would hide the other
            _box(axis, wider, TRUTH, (0, (3, 1.5)), 1.5)
        _box(axis, boxes[head], BOX, "-", 1.8)
        axis.set_title(f"head {head}: weight {weights[head]:.2f}", fontsize=10)
    return figure


def draw_coefficients(model: Any, axes: Any = None) -> Any:
    """Draw the coefficient matrices V_k, one panel per head and class; zero is white.

    If restarts were averaged, those of all restarts are drawn. Colour channels are summed.

    Parameters
    ----------
    model : fitted ImageClassifier or ImageRegressor
    axes : matplotlib axes, one per matrix, optional

    Returns
    -------
    matplotlib Figure
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
    """Return figure and panels: those given, or new ones outside pyplot's global state."""
    if axes is None:
        from matplotlib.figure import Figure

        across = min(count, 5)
        down = -(-count // across)
        figure = Figure(figsize=(3.6 * across, 3.2 * down), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for unused in panels[count:]:
            unused.set_axis_off()
        return figure, panels[:count]
    panels = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(panels) != count:
        raise ValueError(f"{len(panels)} axes for {count} panels: pass one per panel.")
    return panels[0].figure, panels


def _show(axis: Any, pixels: np.ndarray) -> None:
    """Show the image, stretched to its own range; opacity is left out."""
    if pixels.ndim == 3:
        pixels = pixels[..., 0] if pixels.shape[2] < 3 else pixels[..., :3]
    low, high = float(pixels.min()), float(pixels.max())
    stretched = (pixels - low) / ((high - low) or 1.0)
    axis.imshow(stretched, cmap="gray", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[])


def _shade(axis: Any, heat: np.ndarray) -> Any:
    """Shade in orange, the more opaque the hotter; the colour bar says what opacity means."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    red, green, blue, _ = to_rgba(HEAT)
    ramp = [(red, green, blue, 0.0), (red, green, blue, 0.4)]  # the image shines through
    colours = LinearSegmentedColormap.from_list("heat", ramp)
    return axis.imshow(heat, cmap=colours, vmin=0, vmax=float(heat.max()))


def _box(axis: Any, box: Any, colour: str, style: Any, width: float) -> None:
    from matplotlib.patches import Rectangle

    top, left, bottom, right = (float(v) for v in box)
    corner, sides = (left - 0.5, top - 0.5), (right - left, bottom - top)  # pixels are centred
    axis.add_patch(
        Rectangle(corner, *sides, fill=False, edgecolor=colour, linestyle=style, linewidth=width)
    )
