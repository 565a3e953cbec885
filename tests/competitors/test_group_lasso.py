import sys

import numpy as np
import pytest

from diagatt.competitors.group_lasso import (
    GroupLassoClassifier,
    GroupLassoRegressor,
    fit_group_lasso,
    row_design,
    uncentred,
)
from tests.estimators.samples import ragged, responses

X = ragged(n=70, d=3, longest=4)
PADDED = X.to_padded()[0].reshape(70, -1)
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=70)
WEIGHTS /= WEIGHTS.sum()


def loss(kind, y, z):
    return 0.5 * (y - z) ** 2 if kind == "quadratic" else np.logaddexp(0, -y * z)


def slope(kind, y, z):
    return z - y if kind == "quadratic" else -y / (1 + np.exp(y * z))


def objective(kind, y, coef, intercept, alpha):
    z = PADDED @ coef.ravel() + intercept
    return WEIGHTS @ loss(kind, y, z) + alpha * np.linalg.norm(coef, axis=1).sum()


def fista(kind, y, alpha, steps=5000):
    """Accelerated proximal gradient on coefficients and intercept; independent of skglm."""
    design = np.hstack([PADDED, np.ones((70, 1))])
    step = 1 / np.linalg.norm(np.sqrt(WEIGHTS)[:, None] * design, 2) ** 2
    beta = ahead = np.zeros(design.shape[1])
    t = 1.0
    for _ in range(steps):
        u = ahead - step * design.T @ (WEIGHTS * slope(kind, y, design @ ahead))
        rows = u[:-1].reshape(-1, 3)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows * np.maximum(0, 1 - alpha * step / np.maximum(norms, 1e-300))
        new = np.append(rows.ravel(), u[-1])
        t, momentum = (1 + np.sqrt(1 + 4 * t**2)) / 2, t
        beta, ahead = new, new + (momentum - 1) / t * (new - beta)
    return beta[:-1].reshape(-1, 3), beta[-1]


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("kind", ["quadratic", "logistic"])
def test_objective_equals_that_of_proximal_gradient(kind, alpha):
    y = responses(X)
    y = np.where(y > 0, 1.0, -1.0) if kind == "logistic" else y
    design = row_design(X.values, X.offsets, WEIGHTS, 4)
    ours = uncentred(fit_group_lasso(design, y, alpha, kind == "logistic"), design)
    independent = fista(kind, y, alpha)
    least = objective(kind, y, *independent, alpha)
    assert objective(kind, y, *ours, alpha) == pytest.approx(least, abs=1e-9, rel=1e-9)
    np.testing.assert_allclose(ours[0], independent[0], atol=1e-5)


@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize("kind", ["quadratic", "logistic"])
def test_the_gradient_of_chosen_rows_is_at_rounding_level(kind, alpha):
    y = responses(X)
    y = np.where(y > 0, 1.0, -1.0) if kind == "logistic" else y
    design = row_design(X.values, X.offsets, WEIGHTS, 4)
    coef, intercept = uncentred(fit_group_lasso(design, y, alpha, kind == "logistic"), design)
    weighted = WEIGHTS * slope(kind, y, PADDED @ coef.ravel() + intercept)
    gradient = (PADDED.T @ weighted).reshape(-1, 3)
    norms = np.linalg.norm(coef, axis=1, keepdims=True)
    chosen = norms[:, 0] > 0
    assert chosen.any()
    distance = gradient[chosen] + alpha * coef[chosen] / norms[chosen]
    terms = np.abs(PADDED).T @ np.abs(weighted)  # what is added up, and may round
    assert np.abs(distance).max() <= 100 * np.finfo(float).eps * terms.max()


def test_estimator_minimizes_the_objective_of_its_docstring():
    y = responses(X)
    model = GroupLassoRegressor(0.05).fit(X, y, WEIGHTS)
    coef, intercept = fista("quadratic", y, 0.05)
    np.testing.assert_allclose(model.coef_[0], coef, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), PADDED @ coef.ravel() + intercept, atol=1e-5)


def test_large_penalty_leaves_the_mean():
    y = responses(X)
    model = GroupLassoRegressor(100.0).fit(X, y)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(X), y.mean())


def test_classes_are_fitted_against_the_rest_and_normalized():
    y = responses(X, "three")
    model = GroupLassoClassifier(0.01).fit(X, y)
    sigmoids = []
    for c in model.classes_:
        binary = GroupLassoClassifier(0.01).fit(X, y == c)
        sigmoids.append(binary.predict_proba(X)[:, 1])
    expected = np.stack(sigmoids, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-6)


def test_located_rows_are_shared_and_have_the_largest_norms():
    model = GroupLassoRegressor(0.01, n_located=2).fit(X, responses(X))
    order = np.argsort(-np.linalg.norm(model.coef_[0], axis=1))
    full = X.lengths == 4
    assert (model.locate(X)[full] == order[:2]).all()
    assert model.locate(X)[X.lengths == 1].tolist() == [[0, -1]] * int((X.lengths == 1).sum())


def test_path_from_large_to_small_penalties_is_that_of_cold_starts():
    y = responses(X)
    model = GroupLassoRegressor("auto", random_state=0).fit(X, y)
    assert [r["alpha_"] for r in model.selection_] == [1.0, 0.1, 0.01]
    cold = GroupLassoRegressor(model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-8)


def test_position_without_variance_gets_no_coefficients():
    samples = [np.vstack([s[:1], np.ones((1, 3))]) for s in X]
    model = GroupLassoRegressor(0.01).fit(samples, responses(X))
    np.testing.assert_array_equal(model.coef_[0, 1], 0)


def test_missing_skglm_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "skglm.penalties", None)
    with pytest.raises(ImportError, match=r"pip install 'diagatt\[baselines\]'"):
        GroupLassoRegressor().fit(X, responses(X))
