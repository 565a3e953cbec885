"""Estimators of images answer questions of certainty as the estimator of their rows does."""

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, PooledRegressor
from diagatt.images import ImageClassifier, ImageRegressor
from diagatt.solvers import Likelihood

QUICK = {"solver": Likelihood(covariance="tied", max_iterations=5), "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def drawn():
    """Images of four patches of 2 × 2 pixels; the bright one decides the response."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(80, 4, 4))
    images[:, :2, 2:] += 2
    return images, images[:, 0, 2] - images[:, 1, 3] + 0.3 * rng.normal(size=80)


@pytest.fixture(scope="module")
def model(drawn):
    images, y = drawn[0][:60], drawn[1][:60]
    model = ImageRegressor(2, estimator=DiagAttRegressor(**QUICK)).fit(images, y)
    return model.calibrate(images, y)


def test_answers_are_those_of_the_rows(model, drawn):
    images, inner = drawn[0][60:], model.estimator_
    rows = model.rows(images)
    np.testing.assert_array_equal(model.predict_interval(images), inner.predict_interval(rows))
    ours, theirs = model.certainty(images, 0.8), inner.certainty(rows, 0.8)
    np.testing.assert_array_equal(ours.posterior, theirs.posterior)
    assert [s.tolist() for s in ours.row_sets] == [s.tolist() for s in theirs.row_sets]
    assert list(model.discoveries(images, 0.3)) == list(inner.discoveries(rows, 0.3))
    assert str(model.summary()) == str(inner.summary())
    model.calibrate_rows(images, model.locate(images))
    assert inner.labelled_rows_.shape == (20, 1, 3)


def test_the_existence_test_takes_images(model, drawn):
    found = model.existence_test(*drawn)
    assert found == model.estimator_.existence_test(model.rows(drawn[0]), drawn[1])


def test_what_the_estimator_inside_lacks_is_not_offered():
    assert not hasattr(ImageRegressor(estimator=PooledRegressor()), "existence_test")
    assert not hasattr(ImageRegressor(), "predict_set")
    assert not hasattr(ImageClassifier(), "predict_interval")
    assert hasattr(ImageClassifier(estimator=DiagAttClassifier()), "predict_set")
