"""Missing entries are integrated out: the E-step against densities of observed entries."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from diagatt import simulate
from diagatt.scores import get_score_form
from diagatt.solvers.base import Model
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.likelihood.em import EM, Expectation
from diagatt.solvers.likelihood.latent_rows import NoneModel
from tests.closeness import assert_equal_up_to_rounding
from tests.solvers.likelihood.latent_rows import em_settings, random_model
from tests.solvers.samples import problem_of

D = 3
AFFINE = get_score_form("affine")


def incomplete(share=0.3, n=12, family="gaussian", seed=0, **given):
    """A few samples with missing entries; one row misses all."""
    rng = np.random.default_rng(seed)
    data = simulate.regression(n, p=(2, 5), d=D, mu=2.0, sigma2=3.0, seed=seed)
    y = data.y / data.y.std()
    y = y if family == "gaussian" else y > 0 if family == "bernoulli" else rng.poisson(np.exp(y))
    problem = problem_of(data.X, y, family, **given)
    missing = torch.from_numpy(rng.random(problem.values.shape) < share)
    missing[1] = True
    values = torch.where(missing, torch.nan, problem.values)  # these must not be used
    return replace(problem, values=values.nan_to_num(1e3), missing=missing)


def density(x, missing, mean, C):
    """The density of the observed entries of a row."""
    o = ~missing
    if not o.any():
        return 1.0
    return multivariate_normal(mean[o], C[np.ix_(o, o)]).pdf(x[o])


def of_z(x, missing, mean, C, v):
    """Mean and standard deviation of x·v of an active row, from its joint covariance."""
    o, m = ~missing, missing
    gain = C[np.ix_(m, o)] @ np.linalg.inv(C[np.ix_(o, o)])
    filled = x.copy()
    filled[m] = mean[m] + gain @ (x[o] - mean[o])
    left = C[np.ix_(m, m)] - gain @ C[np.ix_(o, m)]
    return filled @ v, np.sqrt(max(v[m] @ left @ v[m], 0))


def brute_force(problem, model, family):
    """The log-likelihood of observed entries and responses, sample by sample, row by row."""
    A, C = model.rows.A[:, :, 0].numpy(), model.rows.C.numpy()
    v, b = model.response.value[0, :, 0].numpy(), float(model.response.shared[0, 0])
    phi, total = model.response.phi, 0.0
    response = {
        "gaussian": lambda y, z: norm.pdf(y, z, np.sqrt(phi)),
        "bernoulli": lambda y, z: (1 / (1 + np.exp(-z))) ** y * (1 / (1 + np.exp(z))) ** (1 - y),
    }[family]
    none = model.response.none
    for i in range(problem.n_samples):
        at = slice(int(problem.offsets[i]), int(problem.offsets[i + 1]))
        X, M, y = problem.values[at].numpy(), problem.missing[at].numpy(), float(problem.y[i])
        background = np.array([density(*row, A[0], C[0]) for row in zip(X, M, strict=True)])
        terms = []
        for x, missing, f0 in zip(X, M, background, strict=True):
            m, s = of_z(x, missing, A[1], C[1], v)
            if family == "gaussian":
                p = norm.pdf(y, m + b, np.sqrt(phi + s**2))
            elif s == 0:
                p = response(y, m + b)
            else:
                integrand = lambda z: response(y, z + b) * norm.pdf(z, m, s)  # noqa: E731, B023
                p = quad(integrand, m - 9 * s, m + 9 * s, epsabs=1e-13)[0]
            terms.append(density(x, missing, A[1], C[1]) / f0 * p)
        mean = np.mean(terms)
        if none is not None:
            z0 = b + float(none.value[0])
            mean = none.prevalence * mean + (1 - none.prevalence) * response(y, z0)
        total += float(problem.weights[i]) * (np.log(mean) + np.log(background).sum())
    return total


@pytest.mark.parametrize("none", [False, True])
@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_the_likelihood_is_that_of_observed_entries(family, none):
    weights = np.random.default_rng(1).uniform(0.5, 2, 12)
    problem = incomplete(family=family, weights=weights)
    model = random_model(np.random.default_rng(2), 1, D, 1)
    if family == "bernoulli":
        model = replace(model, response=replace(model.response, phi=1.0))
    if none:
        own = NoneModel(0.7, torch.tensor([0.4], dtype=torch.float64))
        model = replace(model, response=replace(model.response, none=own))
    em = EM(Expectation(problem, AFFINE), em_settings(none=none))
    ours, theirs = em.expect(model).log_likelihood, brute_force(problem, model, family)
    if family == "gaussian":
        assert_equal_up_to_rounding(ours, theirs, 10_000)
    else:  # nine nodes
        assert ours == pytest.approx(theirs, abs=1e-4)


def test_what_stands_in_missing_entries_is_not_looked_at():
    problem, model = incomplete(), random_model(np.random.default_rng(2), 1, D, 1)
    other = replace(problem, values=torch.where(problem.missing, -7.0, problem.values))
    both = [Expectation(p, AFFINE).run(model.rows, model.response).sums() for p in (problem, other)]
    for one, two in zip(*both, strict=True):
        assert_equal_up_to_rounding(one, two, 0)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
def test_nothing_missing_is_the_ordinary_e_step(family):
    problem, model = incomplete(family=family), random_model(np.random.default_rng(2), 1, D, 1)
    values = torch.where(problem.missing, 0.5, problem.values)
    nothing = replace(problem, values=values, missing=torch.zeros_like(problem.missing))
    plain = replace(nothing, missing=None)
    ours, theirs = (EM(Expectation(p, AFFINE), em_settings()) for p in (nothing, plain))
    one, two = ours.expect(model), theirs.expect(model)
    assert_equal_up_to_rounding(one.log_likelihood, two.log_likelihood, 1000)
    assert_equal_up_to_rounding(one.moments, two.moments, 1000)
    for a, b in zip(
        ours.maximize(one, model.response).tensors().values(),
        theirs.maximize(two, model.response).tensors().values(),
        strict=True,
    ):
        assert_equal_up_to_rounding(a, b, 100_000)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
def test_the_likelihood_never_falls(family):
    problem = incomplete(n=80, family=family)
    em = EM(Expectation(problem, AFFINE), em_settings(shrinkage=0.0, ridge=1e-9, tolerance=1e-7))
    fit = em.run(random_model(np.random.default_rng(3), 1, D, 1), 40)
    values = np.array([line["log_likelihood"] for line in fit.history])
    assert fit.log_likelihood > values[0]
    if family == "gaussian":
        assert np.all(np.diff(values) >= -1e-7 * abs(values[0]))
    else:  # a step that lowers it is taken back
        assert fit.log_likelihood == pytest.approx(values.max(), rel=1e-6)


def test_em_ends_where_the_brute_force_likelihood_is_flat():
    problem = incomplete(n=30, share=0.2)
    em = EM(Expectation(problem, AFFINE), em_settings(shrinkage=0.0, ridge=1e-12, tolerance=1e-11))
    model = em.run(random_model(np.random.default_rng(0), 1, D, 1), 600).model

    def moved(change, k):
        value = model.response.value.clone()
        value[0, k, 0] += change
        response = replace(model.response, value=value)
        return brute_force(problem, replace(model, response=response), "gaussian")

    for k in range(D):
        slope = (moved(1e-4, k) - moved(-1e-4, k)) / 2e-4
        curvature = (moved(1e-2, k) - 2 * moved(0, k) + moved(-1e-2, k)) / 1e-4
        assert abs(slope / curvature) < 1e-3  # how far from the optimum, in units of V


@pytest.mark.slow
def test_standard_errors_are_those_of_the_observed_likelihood():
    """Louis' information in V and b is minus the curvature of the brute-force likelihood."""
    problem = incomplete(n=30, share=0.2)
    solver = Likelihood(shrinkage=0.0, tolerance=1e-10, max_iterations=500)
    fitted = solver.fit(problem, Model(1, ridge=1e-9), seed=0)
    model, size = fitted.state, D + 1

    def value(move):
        own = model.response.value.clone()
        own[0, :, 0] += torch.from_numpy(move[:D])
        shared = model.response.shared + float(move[D])
        response = replace(model.response, value=own, shared=shared)
        return brute_force(problem, replace(model, response=response), "gaussian")

    h, eye = 1e-3, np.eye(size)
    information = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            signs = [(a, b) for a in (1, -1) for b in (1, -1)]
            terms = [a * b * value(h * (a * eye[i] + b * eye[j])) for a, b in signs]
            information[i, j] = -sum(terms) / (4 * h * h)
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(fitted.value_se.numpy(), errors, rtol=1e-3)
    assert "rows taken as known" in solver.errors(fitted, problem, Model(1)).note
