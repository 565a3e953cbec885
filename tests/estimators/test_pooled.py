import numpy as np
import pytest
import torch
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge

from diagatt.estimators.pooled import PooledClassifier, PooledRegressor, row_contributions
from diagatt.families import get_family
from diagatt.solvers import glm
from diagatt.solvers.glm import fit_linear
from tests.estimators.samples import ragged, responses

X = ragged(n=80)
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=80)


def pooled(kind):
    means = np.array([s.mean(axis=0) for s in X])
    largest = np.array([s.max(axis=0) for s in X])
    return {"mean": means, "max": largest, "mean+max": np.hstack([means, largest])}[kind]


@pytest.mark.parametrize("pool", ["mean", "max", "mean+max"])
def test_regression_is_ridge_on_pooled_rows(pool):
    y = responses(X)
    model = PooledRegressor(pool, ridge=0.7).fit(X, y, WEIGHTS)
    oracle = Ridge(alpha=0.7).fit(pooled(pool), y, WEIGHTS)
    np.testing.assert_allclose(model.coef_[0], oracle.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.predict(X), oracle.predict(pooled(pool)), rtol=1e-8)


@pytest.mark.parametrize(
    ("family", "Model"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)]
)
def test_log_link_families_are_scikit_learns(family, Model):
    y = responses(X, family)
    model = PooledRegressor(family=family, ridge=0.7).fit(X, y, WEIGHTS)
    # Its penalty stands beside the mean loss, ours beside the sum.
    oracle = Model(alpha=0.7 / WEIGHTS.sum(), tol=1e-10, max_iter=10000)
    oracle.fit(pooled("mean"), y, WEIGHTS)
    np.testing.assert_allclose(model.predict(X), oracle.predict(pooled("mean")), rtol=1e-5)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_classification_is_logistic_regression_on_pooled_rows(kind):
    y = responses(X, kind)
    model = PooledClassifier(ridge=0.5).fit(X, y, WEIGHTS)
    oracle = LogisticRegression(C=2.0, tol=1e-12, max_iter=100000)
    oracle.fit(pooled("mean"), y, WEIGHTS)
    expected = oracle.predict_proba(pooled("mean"))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-5, atol=1e-8)
    assert model.predict(X).tolist() == oracle.predict(pooled("mean")).tolist()


@pytest.mark.parametrize("pool", ["mean", "max", "mean+max"])
@pytest.mark.parametrize("kind", ["gaussian", "three"])
def test_contributions_of_rows_add_up_to_the_predictor(pool, kind):
    Model = PooledRegressor if kind == "gaussian" else PooledClassifier
    model = Model(pool).fit(X, responses(X, kind))
    values, offsets = X.to_torch()
    parts = row_contributions(values, offsets, pool, torch.from_numpy(model.coef_).T)
    total = np.add.reduceat(parts.numpy(), X.offsets[:-1]) + model.intercept_
    np.testing.assert_allclose(total, model._predictor(values, offsets).numpy(), atol=1e-10)


def test_the_row_that_contributes_most_comes_first():
    samples = [np.array([[0.1, 0.0], [-9.0, 0.0], [3.0, 0.0]]), np.array([[1.0, 5.0]])]
    many = [np.random.default_rng(0).normal(size=(2, 2)) for _ in range(50)]
    model = PooledRegressor(n_located=3).fit(many, [s[:, 0].mean() for s in many])
    assert model.locate(samples).tolist() == [[1, 2, 0], [0, -1, -1]]


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "multinomial"])
def test_wide_problems_by_lbfgs_agree_with_newton(family, monkeypatch):
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.normal(size=(50, 6)) + 3)
    K = 3 if family == "multinomial" else 1
    y = torch.from_numpy(rng.integers(0, max(2, K), size=50).astype(float))
    problem = (get_family(family), features, y, torch.ones(50), 0.5, K)
    newton = fit_linear(*problem)
    for name in ("NEWTON_COEFFICIENTS", "QUADRATIC_COEFFICIENTS"):
        monkeypatch.setattr(glm, name, 0)
    for by_newton, by_lbfgs in zip(newton, fit_linear(*problem), strict=True):
        torch.testing.assert_close(by_newton, by_lbfgs, atol=1e-5, rtol=1e-5)


def test_unknown_pool_is_refused():
    with pytest.raises(ValueError, match=r"pool must be 'mean', .*, got 'median'"):
        PooledRegressor("median").fit(X, responses(X))
