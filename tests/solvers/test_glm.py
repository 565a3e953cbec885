"""The convex part against scikit-learn and its own optimality conditions."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)

from diagatt.families import get_family
from diagatt.solvers import glm
from diagatt.solvers.glm import DivergedError, fit_glm

N, D = 120, 4
IN_SCIKIT_LEARN = ["bernoulli", "gamma", "gaussian", "multinomial", "poisson"]
ALL = [*IN_SCIKIT_LEARN, "binomial", "negative_binomial", "tweedie"]


def data(name, seed=0):
    """Features (n, d), responses (n,) and integer weights (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    z = X @ np.array([0.5, -0.3, 0.2, 0.0]) + 0.4
    y = {
        "gaussian": lambda: z + rng.normal(size=N),
        "bernoulli": lambda: (z + rng.logistic(size=N) > 0).astype(float),
        "multinomial": lambda: (np.digitize(z + rng.normal(size=N), [-0.2, 0.8])).astype(float),
        "poisson": lambda: rng.poisson(np.exp(z)).astype(float),
        "gamma": lambda: rng.gamma(2.0, np.exp(z) / 2),
        "negative_binomial": lambda: rng.poisson(rng.gamma(2.0, np.exp(z) / 2)).astype(float),
        "tweedie": lambda: rng.poisson(np.exp(z)) * rng.gamma(2.0, 0.5, N),
        "binomial": lambda: np.column_stack([rng.binomial(5, 1 / (1 + np.exp(-z))), np.ones(N)]),
    }[name]()
    return X, y, rng.integers(1, 4, size=N).astype(float)


def fit(name, X, y, weights, ridge):
    """Coefficients (d, K) and intercepts (K,) for summed loss + ½ ridge ‖β‖²."""
    features = torch.from_numpy(np.column_stack([X, np.ones(len(X))]))
    penalty = torch.full((X.shape[1] + 1,), ridge / weights.sum(), dtype=torch.float64)
    penalty[-1] = 0
    K = int(y.max()) + 1 if name == "multinomial" else 1
    y, weights = torch.from_numpy(y), torch.from_numpy(weights)
    beta = fit_glm(get_family(name), features, y, weights, penalty, K).numpy()
    return beta[:-1], beta[-1]


def sklearn_model(name, ridge, total_weight):
    """The model of scikit-learn that minimizes the same objective."""
    exact = {"tol": 1e-10, "max_iter": 10_000}
    if name == "gaussian":
        return Ridge(alpha=ridge, tol=1e-12) if ridge else LinearRegression()
    if name in ("bernoulli", "multinomial"):
        return LogisticRegression(C=1 / ridge if ridge else np.inf, **exact)
    model = PoissonRegressor if name == "poisson" else GammaRegressor
    return model(alpha=ridge / total_weight, solver="newton-cholesky", **exact)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("name", IN_SCIKIT_LEARN)
def test_glm_equals_scikit_learn(name, ridge, weighted):
    X, y, weights = data(name)
    weights = weights if weighted else np.ones(N)
    coefficients, intercepts = fit(name, X, y, weights, ridge)
    model = sklearn_model(name, ridge, weights.sum()).fit(X, y, sample_weight=weights)
    expected, constant = np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)
    if name == "multinomial":  # a common shift of all classes is not seen by the likelihood
        constant, intercepts = constant - constant.mean(), intercepts - intercepts.mean()
        expected, coefficients = (
            c - c.mean(axis=1, keepdims=True) for c in (expected, coefficients)
        )
    np.testing.assert_allclose(coefficients, expected, atol=1e-6)
    np.testing.assert_allclose(intercepts, constant, atol=1e-6)


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_the_gradient_vanishes_at_the_optimum(name, start):
    X, y, weights = data(name, seed=1)
    K = 3 if name == "multinomial" else 1
    family, F = get_family(name), torch.from_numpy(np.column_stack([X, np.ones(N)]))
    penalty = torch.tensor([0.1, 0.0, 0.3, 0.0, 0.0], dtype=torch.float64)
    y, w = torch.from_numpy(y), torch.from_numpy(weights)
    first = 0.5 * torch.ones(D + 1, K, dtype=torch.float64) if start else None
    beta = fit_glm(family, F, y, w, penalty, K, first)
    gradient = F.T @ (w[:, None] / w.sum() * family.gradient(y, F @ beta)) + penalty[:, None] * beta
    assert gradient.abs().max() < 1e-9


@pytest.mark.parametrize("name", ALL)
def test_integer_weights_are_repetitions(name):
    X, y, weights = data(name, seed=2)
    again = np.repeat(np.arange(N), weights.astype(int))
    weighted = fit(name, X, y, weights, 1.0)
    repeated = fit(name, X[again], y[again], np.ones(len(again)), 1.0)
    for ours, theirs in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_copied_and_constant_features_give_finite_predictions_of_the_smaller_model(name):
    X, y, weights = data(name)
    singular = np.column_stack([X, X[:, 0], np.zeros(N), np.ones(N)])
    coefficients, intercepts = fit(name, singular, y, weights, 0.0)
    plain, constant = fit(name, X, y, weights, 0.0)
    z, expected = singular @ coefficients + intercepts, X @ plain + constant
    if name == "multinomial":
        z, expected = (a - a.mean(axis=1, keepdims=True) for a in (z, expected))
    np.testing.assert_allclose(z, expected, atol=1e-5)


def test_least_squares_with_more_features_than_samples_is_the_one_of_least_norm():
    rng = np.random.default_rng(0)
    F, y = rng.normal(size=(5, 9)), rng.normal(size=5)
    penalty, ones = torch.zeros(9), torch.ones(5)
    beta = fit_glm(get_family("gaussian"), torch.from_numpy(F), torch.from_numpy(y), ones, penalty)
    np.testing.assert_allclose(beta[:, 0], np.linalg.lstsq(F, y)[0], atol=1e-8)


def test_separable_classes_with_a_penalty_have_a_finite_solution():
    x = np.linspace(-1, 1, 20)[:, None]
    y = (x[:, 0] > 0).astype(float)
    coefficients, intercept = fit("bernoulli", x, y, np.ones(20), 1e-3)
    model = LogisticRegression(C=1e3, tol=1e-12, max_iter=10_000).fit(x, y)
    np.testing.assert_allclose(coefficients[:, 0], model.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(intercept, model.intercept_, atol=1e-5)


def test_separable_classes_without_a_penalty_stop_at_a_finite_point():
    x = np.linspace(-1, 1, 20)[:, None]
    coefficients, _ = fit("bernoulli", x, (x[:, 0] > 0).astype(float), np.ones(20), 0.0)
    assert np.isfinite(coefficients).all()
    assert coefficients[0, 0] > 10


def test_features_whose_squares_overflow_are_refused_with_advice():
    F = torch.full((3, 1), 1e200, dtype=torch.float64)
    with pytest.raises(DivergedError, match="overflow: standardize the rows"):
        fit_glm(get_family("gaussian"), F, torch.ones(3), torch.ones(3), torch.zeros(1))


@pytest.mark.parametrize("name", ALL)
def test_the_method_for_wide_models_finds_the_same_minimum(name, monkeypatch):
    X, y, weights = data(name, seed=3)
    K = 3 if name == "multinomial" else 1
    F, penalty = torch.from_numpy(X), torch.full((D,), 0.1, dtype=torch.float64)
    arguments = (get_family(name), F, torch.from_numpy(y), torch.from_numpy(weights), penalty, K)
    newton = fit_glm(*arguments)
    monkeypatch.setattr(glm, "NEWTON_COEFFICIENTS", 0)
    monkeypatch.setattr(glm, "QUADRATIC_COEFFICIENTS", 0)
    wide = fit_glm(*arguments)
    assert not torch.equal(wide, newton)  # L-BFGS did it
    torch.testing.assert_close(wide, newton, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "multinomial"])
def test_more_features_than_samples_are_fitted_in_their_span(name):
    """The gradient of the penalized loss vanishes."""
    _, y, weights = data(name)
    wide = np.random.default_rng(1).normal(size=(N, 2 * N)) + 1
    family, K = get_family(name), 3 if name == "multinomial" else 1
    given = [torch.from_numpy(part) for part in (wide, y, weights)]
    fits = glm.LinearFits(given[0], given[2])
    for ridge in (0.3, 30.0):
        coef, intercept = fits.fit(family, given[1], ridge, K)
        slope = given[2][:, None] * family.gradient(given[1], given[0] @ coef + intercept)
        np.testing.assert_allclose(given[0].T @ slope + ridge * coef, 0, atol=1e-6)
        np.testing.assert_allclose(slope.sum(dim=0), 0, atol=1e-6)
        found = glm.fit_linear(family, *given, ridge, K)
        np.testing.assert_allclose(coef, found[0], atol=1e-8)


@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "poisson", "multinomial"])
@pytest.mark.parametrize("width", [3, 2 * N])
def test_trials_along_falling_ridges_end_at_the_optimum(name, width):
    """Their objective is that of a fit to rounding, up to the square of the last gain."""
    _, y, weights = (torch.from_numpy(part) for part in data(name))
    features = torch.from_numpy(np.random.default_rng(2).normal(size=(N, width)))
    family, K = get_family(name), 3 if name == "multinomial" else 1
    fits = glm.LinearFits(features, weights)

    def objective(coef, intercept, ridge):
        loss = (weights * family.loss(y, features @ coef + intercept)).sum()
        return float(loss + 0.5 * ridge * coef.square().sum())

    for ridge in (100.0, 10.0, 1.0, 0.1):
        tried = objective(*fits.fit(family, y, ridge, K, is_trial=True), ridge)
        best = objective(*glm.fit_linear(family, features, y, weights, ridge, K), ridge)
        assert best - 1e-9 * abs(best) <= tried <= best + 1e-7 * abs(best)
