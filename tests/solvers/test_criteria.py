"""Log-likelihood, AIC and BIC against scipy's densities at the estimated dispersion."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from tests.models import classifier, regressor
from tests.solvers.samples import D, ragged

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

WEIGHTS = np.random.default_rng(0).integers(1, 4, 80).astype(float)
# V, b, and D(D + 1)/2 entries of W if the response decides about them.
EFFECTS, SCORES = D + 1, (D + 1) * (D + 2) // 2


def responses(family):
    X, y = ragged(n=80)
    rng, mean = np.random.default_rng(1), np.exp(y / 4)
    return X, {
        "gaussian": lambda: y,
        "gamma": lambda: rng.gamma(4.0, mean / 4),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "bernoulli": lambda: (y > np.median(y)).astype(int),
    }[family]()


def fitted(family, solver, **options):
    face = classifier if family == "bernoulli" else regressor
    X, y = responses(family)
    model = face(solver=solver, family=family, random_state=0, **options)
    return model.fit(X, y, sample_weight=WEIGHTS), X, y


def densities(family, y, mean, phi):
    return {
        "gaussian": lambda: stats.norm.logpdf(y, mean, math.sqrt(phi)),
        "gamma": lambda: stats.gamma.logpdf(y, 1 / phi, scale=phi * mean),
        "poisson": lambda: stats.poisson.logpmf(y, mean),
        "bernoulli": lambda: stats.bernoulli.logpmf(y, mean),
    }[family]()


@pytest.mark.parametrize("solver", ["gradient", "uniform"])
@pytest.mark.parametrize("family", ["gaussian", "gamma", "poisson", "bernoulli"])
def test_the_log_likelihood_of_responses_is_scipys_at_the_estimated_dispersion(family, solver):
    options = {"optimizer": "adam", "max_epochs": 2} if solver == "gradient" else {}
    model, X, y = fitted(family, solver, **options)
    mean = model.predict_proba(X)[:, 1] if family == "bernoulli" else model.predict(X)
    unit = (y / mean - 1) ** 2 if family == "gamma" else (y - mean) ** 2
    phi = np.average(unit, weights=WEIGHTS)
    (line,) = model.criteria_
    expected = WEIGHTS @ densities(family, y, mean, phi)
    assert line["log_likelihood"] == pytest.approx(expected, rel=1e-9)
    count = EFFECTS + (SCORES if solver == "gradient" else 0)
    assert line["n_parameters"] == count
    assert line["aic"] == pytest.approx(2 * count - 2 * expected, rel=1e-9)
    assert line["bic"] == pytest.approx(math.log(WEIGHTS.sum()) * count - 2 * expected, rel=1e-9)


@pytest.mark.parametrize("solver", ["gradient", "uniform"])
def test_the_dispersion_of_the_gamma_family_is_not_one(solver):
    """With φ = 1 the log-likelihood would be another one."""
    model, X, y = fitted("gamma", solver)
    at_one = WEIGHTS @ densities("gamma", y, model.predict(X), 1.0)
    assert model.criteria_[0]["log_likelihood"] > at_one + 10


def test_a_perfect_fit_has_a_finite_likelihood():
    X, _ = ragged(n=80)
    y = np.array([x.mean(axis=0) @ [1.0, 2.0, 3.0] for x in X])
    model = regressor(solver="uniform", ridge=0.0).fit(X, y)
    assert np.isfinite(model.criteria_[0]["bic"])


def test_rows_have_a_likelihood_where_they_have_a_model():
    model, _, _ = fitted("gaussian", "likelihood")
    (line,) = model.criteria_
    assert line["log_likelihood"] == model.log_likelihood_
    distribution = D * (D + 1) // 2 + D  # covariance and mean of background and active rows
    assert line["n_parameters"] == 2 * distribution + EFFECTS
    assert line["aic"] == 2 * line["n_parameters"] - 2 * model.log_likelihood_


def test_unevenness_is_one_minus_relative_entropy():
    model, X, _ = fitted("gaussian", "likelihood")
    relative = []
    for kappa in model.attention(X):
        entropy = -torch.special.xlogy(torch.from_numpy(kappa), torch.from_numpy(kappa)).sum()
        relative.append(float(entropy) / math.log(len(kappa)))
    assert model.unevenness_ == pytest.approx([1 - np.mean(relative)])
    uniform, _, _ = fitted("gaussian", "uniform")
    assert uniform.unevenness_ == pytest.approx([0], abs=1e-12)
