"""Baselines against closed forms."""

import numpy as np
import pytest

from diagatt import RaggedRows
from diagatt.validation.baselines import BASELINES, Part, Task, per_unit


@pytest.mark.parametrize("method", BASELINES)
@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.5, 2.0, 1.0, 3.0, 0.5])])
def test_rows_that_say_nothing_give_the_mean_rate(method, weights):
    """The Poisson estimate of a common rate is Σwy/Σwe."""
    y, exposure = np.array([3.0, 0, 5, 2, 9, 1]), np.array([1.0, 0.5, 2.0, 2.0, 4.0, 1.5])
    same = RaggedRows.from_rows(np.ones((6, 2)))
    new = Part(RaggedRows.from_rows(np.ones((2, 2))), exposure=np.array([1.0, 10.0]))
    train = Part(same, y=y, weights=weights, exposure=exposure)
    found = per_unit(BASELINES[method], train, new, Task(None, "poisson"), 0)
    w = 1.0 if weights is None else weights
    rate = np.sum(w * y) / np.sum(w * exposure)
    np.testing.assert_allclose(found, [rate, 10 * rate], rtol=1e-5)


def test_without_an_exposure_a_method_is_asked_as_it_is():
    parts = Part(RaggedRows.from_rows(np.ones((2, 1))), y=np.ones(2)), Part(None)
    assert per_unit(lambda *given: given, *parts, "task", 7) == (*parts, "task", 7)
