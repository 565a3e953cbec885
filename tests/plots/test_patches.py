"""Images: boxes, heat maps and coefficient matrices show what the model says."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from diagatt import DiagAttClassifier, plots
from diagatt.datasets.canvas import digit_canvas
from diagatt.images import ImageClassifier, draw_attention, draw_coefficients
from diagatt.solvers import Gradient
from tests.plots.test_plots import BOXES, WEIGHTS


@pytest.fixture(scope="module")
def canvases():
    """200 training images and a test image of 32×32."""
    return digit_canvas(200, 1, size=32, seed=0)


def test_patches_have_their_places_and_the_colour_of_their_head():
    ax = plots.patches(np.zeros((2, 6, 3)), BOXES, WEIGHTS, true_rows=[0])
    drawn = {round(p.get_x() + 0.5): p for p in ax.patches}
    assert sorted(drawn) == [0, 2, 4]
    for left, (weight, hue) in zip((0, 2, 4), [(0.7, "C0"), (0.2, "C0"), (0.8, "C1")], strict=True):
        expected = to_rgba({"C0": "#0072B2", "C1": "#D55E00"}[hue], 0.3 * weight)
        np.testing.assert_allclose(drawn[left].get_facecolor(), expected)
    assert [drawn[k].get_linestyle() for k in (0, 2, 4)] == ["--", "-", "-"]
    assert len(plots.patches(np.zeros((2, 6)), BOXES, WEIGHTS, head=1).patches) == 3
    with pytest.raises(ValueError, match="head 2 does not exist"):
        plots.patches(np.zeros((2, 6)), BOXES, WEIGHTS, head=2)


def rectangles(axis):
    return [p for p in axis.patches if isinstance(p, Rectangle)]


def test_box_and_heat_of_each_head(canvases):
    train, test = canvases
    solver = Gradient(optimizer="adam", max_epochs=5)
    estimator = DiagAttClassifier(2, solver=solver, random_state=0)
    model = ImageClassifier(estimator=estimator).fit(train.images[:100], train.y[:100])
    image = test.images[0]
    figure = draw_attention(model, image, truth=test.boxes[0])
    boxes, heat = model.boxes([image])[0], model.heatmap([image])[0]
    for head in range(2):
        axis = figure.axes[head]
        true, found = rectangles(axis)
        top, left, bottom, right = boxes[head]
        assert (found.get_y(), found.get_x()) == (top - 0.5, left - 0.5)
        assert (found.get_height(), found.get_width()) == (bottom - top, right - left)
        assert (true.get_y() + 1.5, true.get_x() + 1.5) == tuple(test.corners[0])
        assert (true.get_height(), true.get_width()) == (10, 10)
        np.testing.assert_array_equal(axis.images[1].get_array(), heat[..., head])
    assert draw_coefficients(model).axes[0].get_title() == "head 0"


def test_given_axes_are_used_and_counted(canvases):
    figure = Figure()
    axes = figure.subplots(1, 2)
    train, test = canvases
    estimator = DiagAttClassifier(solver="likelihood", random_state=0)
    fitted = ImageClassifier(estimator=estimator).fit(train.images, train.y)
    image = test.images[0]
    assert draw_attention(fitted, image, axes[0]) is figure
    with pytest.raises(ValueError, match="2 axes for 1 panels"):
        draw_attention(fitted, image, axes)


@pytest.mark.parametrize("dtype", [np.uint8, float])
def test_colour_images_and_constant_ones(dtype):
    rng = np.random.default_rng(0)
    images = (200 * rng.random((40, 8, 8, 3))).astype(dtype)
    images[::2, :4, :4] += 50
    estimator = DiagAttClassifier(solver="likelihood", random_state=0)
    model = ImageClassifier(4, estimator=estimator).fit(images, np.arange(40) % 2)
    figure = draw_attention(model, np.full((8, 8, 3), 7, dtype))
    shown = figure.axes[0].images[0].get_array()
    assert shown.min() >= 0
    assert shown.max() <= 1
    draw_coefficients(model)
