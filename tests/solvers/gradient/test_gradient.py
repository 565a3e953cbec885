"""The gradient solver through the estimators: bounds, warm starts, weights, refusals."""

import numpy as np
import pytest
import torch

from tests.models import classifier, regressor
from tests.solvers.gradient.training import gradient_regressor
from tests.solvers.samples import ragged

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.mark.parametrize("parameterization", ["full", "factored", "psd"])
def test_bounds_hold_after_training(parameterization):
    X, y = ragged()
    bounds = {"value_bound": 0.7, "score_bound": 0.2, "rank": 2}
    model = gradient_regressor(
        n_heads=2, parameterization=parameterization, learning_rate=0.1, **bounds
    ).fit(X, y)
    assert np.linalg.norm(model.value_) <= 0.7 + 1e-9
    assert np.linalg.norm(model.query_key_, 2, axis=(1, 2)).max() <= 0.2 + 1e-9
    assert np.linalg.matrix_rank(model.query_key_, tol=1e-8).max() <= 2


def test_rank_of_a_full_matrix_is_kept_by_default_settings():
    X, y = ragged()
    model = gradient_regressor(rank=1).fit(X, y)
    assert np.linalg.matrix_rank(model.query_key_, tol=1e-8).tolist() == [1]


@pytest.mark.parametrize(
    "option",
    [
        {"row_dropout": 0.1},
        {"value_dropout": 0.1},
        {"validation_fraction": 0.1},
        {"value_bound": 1.0},
        {"rank": 1},
    ],
)
def test_lbfgs_refuses_what_needs_batches(option):
    X, y = ragged()
    model = gradient_regressor(optimizer="lbfgs", **option)
    with pytest.raises(ValueError, match=r"takes no row_dropout.*use optimizer='adam'"):
        model.fit(X, y)


@pytest.mark.parametrize("n_restarts", [1, 2])
def test_warm_start_continues_where_the_fit_ended(n_restarts):
    X, y = ragged()
    model = gradient_regressor(
        optimizer="adam", max_epochs=5, batch_size=None, warm_start=True, n_restarts=n_restarts
    )
    first = [history[-1]["loss"] for history in model.fit(X, y).history_]
    before = model.predict(X)
    second = [history[0]["loss"] for history in model.fit(X, y).history_]
    if n_restarts == 1:  # the first entry of a full batch is the loss at the start
        assert second[0] == pytest.approx(0.5 * np.mean((y - before) ** 2))
    assert np.mean(second) < np.mean(first) + 1e-3
    cold = gradient_regressor(optimizer="adam", max_epochs=5, batch_size=None).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < np.mean((cold.predict(X) - y) ** 2)


def test_warm_start_at_an_optimum_stays_there():
    X, y = ragged()
    model = gradient_regressor(warm_start=True, max_epochs=5000).fit(X, y)
    before = model.predict(X)
    np.testing.assert_allclose(model.fit(X, y).predict(X), before, atol=1e-4)


def test_warm_start_with_another_number_of_heads_is_refused():
    X, y = ragged()
    model = gradient_regressor(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start continues a fit of the same n_heads"):
        model.set_params(n_heads=2).fit(X, y)


@pytest.mark.parametrize("estimator", [regressor, classifier])
def test_a_doubled_sample_is_a_sample_of_weight_two(estimator):
    X, y = ragged()
    if estimator is classifier:
        y = (y > np.median(y)).astype(int)
    again = np.r_[np.arange(40), np.arange(0, 40, 3)]
    weights = np.bincount(again).astype(float)
    model = estimator(2, solver="gradient", random_state=0, max_epochs=5000)
    weighted = model.fit(X, y, sample_weight=weights).to_module()
    doubled = model.fit(X[again], y[again]).to_module()
    values, offsets = X.to_torch()
    torch.testing.assert_close(
        weighted(values, offsets), doubled(values, offsets), rtol=1e-4, atol=1e-4
    )


def test_a_sample_of_weight_zero_is_absent():
    X, y = ragged()
    weights = np.ones(40)
    weights[::4] = 0
    present = weights > 0
    spoiled = np.where(present, y, 1e6)
    model = gradient_regressor()
    expected = model.fit(X[present], y[present]).predict(X)
    np.testing.assert_allclose(model.fit(X, spoiled, sample_weight=weights).predict(X), expected)
