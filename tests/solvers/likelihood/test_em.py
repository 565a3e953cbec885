"""EM: the likelihood never falls, and ends where its gradient vanishes."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from diagatt import RaggedRows, simulate
from diagatt.scores import get_score_form
from diagatt.solvers.likelihood.em import EM, Expectation
from diagatt.solvers.likelihood.latent_rows import LatentRows, ResponseModel
from tests.models import regressor
from tests.solvers.likelihood.latent_rows import em_settings, random_model
from tests.solvers.samples import problem_of


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "gamma", "multinomial"])
@pytest.mark.parametrize("R", [1, 2])
def test_likelihood_never_falls(family, R):
    rng = np.random.default_rng(3)
    data = simulate.regression(120, p=(4, 9), d=3, s=R, mu=3.0, sigma2=3.0, seed=R)
    z = (data.y - data.y.mean()) / data.y.std()
    y, K = {
        "gaussian": (z, 1),
        "bernoulli": (z > 0, 1),
        "poisson": (rng.poisson(np.exp(z)), 1),
        "gamma": (rng.gamma(2, np.exp(z) / 2) + 1e-3, 1),
        "multinomial": (np.digitize(z, [-0.5, 0.5]), 3),
    }[family]
    problem = problem_of(data.X, y, family, K)
    settings = em_settings(shrinkage=0.0, ridge=1e-9, tolerance=1e-7)
    expectation = Expectation(problem, get_score_form("affine"))
    em = EM(expectation, settings)
    fit = em.run(random_model(rng, R, 3, 1, K), 60)
    values = [h["log_likelihood"] for h in fit.history]
    kept = np.maximum.accumulate(values)
    # A step that lowers the likelihood is taken back at once; gaussian steps never do.
    assert fit.log_likelihood == pytest.approx(kept[-1], rel=1e-9)
    if family == "gaussian":
        assert np.all(np.diff(values) >= -1e-7 * abs(values[0]))
    assert fit.log_likelihood > values[0]


def test_m_step_is_stationary():
    """At convergence the numerical gradient of the exact likelihood in V and b vanishes."""
    data = simulate.regression(80, p=5, d=2, mu=(3.0,), sigma2=(3.0,), seed=0)
    problem = problem_of(data.X, data.y)
    settings = em_settings(shrinkage=0.0, ridge=1e-12, tolerance=1e-13)
    expectation = Expectation(problem, get_score_form("affine"))
    em = EM(expectation, settings)
    model = em.run(random_model(np.random.default_rng(0), 1, 2, 1), 500).model

    def likelihood(change: float, k: int) -> float:
        value = model.response.value.clone()
        value[0, k, 0] += change
        response = ResponseModel(value, model.response.shared, model.response.phi)
        return em.expect(LatentRows(model.rows, response)).log_likelihood

    for k in range(2):
        slope = (likelihood(1e-4, k) - likelihood(-1e-4, k)) / 2e-4
        curvature = (likelihood(1e-2, k) - 2 * likelihood(0, k) + likelihood(-1e-2, k)) / 1e-4
        assert abs(slope / curvature) < 1e-4  # how far from the optimum, in units of V


@pytest.mark.slow
def test_standard_errors_match_the_spread_over_replications():
    base = simulate.regression(10, p=6, d=3, mu=(2.0,), sigma2=(3.0,), seed=1)
    estimates, errors = [], []
    for k in range(40):
        data = base.draw(300, seed=(k, 7))
        model = regressor(solver="likelihood", random_state=0).fit(data.X, data.y)
        estimates.append(model.value_[0])
        errors.append(model.value_se_[:3])
    ratio = np.mean(errors, axis=0) / np.std(estimates, axis=0)
    assert np.all((ratio > 0.7) & (ratio < 1.4))


def enumerate_posterior(problem, context, model, distinct=True):
    """Log-likelihood and responsibilities by brute force over all assignments."""
    R = model.rows.n_heads
    A, C = model.rows.A.numpy(), model.rows.C.numpy()
    value, b = model.response.value[:, :, 0].numpy(), float(model.response.shared[0, 0])
    total, parts = 0.0, []
    for i in range(problem.n_samples):
        x = problem.values[problem.offsets[i] : problem.offsets[i + 1]].numpy()
        c = context[i].numpy()
        log_f = np.array(
            [multivariate_normal(A[k] @ c, C[k]).logpdf(x).reshape(-1) for k in range(R + 1)]
        )  # (R + 1, p)
        terms, rows = [], []
        for chosen in itertools.product(range(len(x)), repeat=R):
            if distinct and len(set(chosen)) < R:
                continue
            z = b + sum(x[j] @ value[k] for k, j in enumerate(chosen))
            ratio = sum(log_f[k + 1, j] - log_f[0, j] for k, j in enumerate(chosen))
            terms.append(ratio + norm(z, np.sqrt(model.response.phi)).logpdf(float(problem.y[i])))
            rows.append(chosen)
        terms = np.array(terms)
        evidence = np.logaddexp.reduce(terms)
        total += log_f[0].sum() + evidence - np.log(len(terms))
        r = np.zeros((len(x), R))
        for weight, chosen in zip(np.exp(terms - evidence), rows, strict=True):
            for k, j in enumerate(chosen):
                r[j, k] += weight
        parts.append(r)
    return total, np.concatenate(parts)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("score_form", ["affine", "contextual"])
@pytest.mark.parametrize("R", [1, 2, 3])
def test_e_step_equals_enumeration(R, score_form, distinct):
    rng = np.random.default_rng(R)
    X = RaggedRows.from_samples([rng.standard_normal((p, 2)) for p in (R, R + 1, 5, 6)])
    problem = problem_of(X, rng.standard_normal(4))
    form = get_score_form(score_form)
    context = form.context(problem.values, problem.offsets)
    model = random_model(rng, R, 2, context.shape[1])
    expectation = Expectation(problem, form, distinct)
    expected = EM(expectation, em_settings()).expect(model)
    value, r = enumerate_posterior(problem, context, model, distinct)
    assert expected.log_likelihood == pytest.approx(value, rel=1e-10)
    kept = expectation.of_part(problem).run(model.rows, model.response, keep=True)
    np.testing.assert_allclose(torch.cat(kept.responsibilities), r, atol=1e-9)
    x = X.values
    np.testing.assert_allclose(expected.xx[0], x.T @ (r[:, :1] * x), atol=1e-8)
