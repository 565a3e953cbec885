"""One fitted pipeline for many tests."""

import pytest

from diagatt.datasets.canvas import digit_canvas
from diagatt.images import ImageClassifier


@pytest.fixture(scope="session")
def canvases():
    """450 training and 200 test images of 32×32."""
    return digit_canvas(450, 200, size=32, seed=0)


@pytest.fixture(scope="session")
def fitted(canvases):
    """The default classifier on them."""
    train, _ = canvases
    return ImageClassifier((8, 8), random_state=0).fit(train.images[:200], train.y[:200])
