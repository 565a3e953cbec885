"""Samples without an active row: EM against enumeration, and its optimum."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from diagatt import RaggedRows
from diagatt.scores import get_score_form
from diagatt.segments import segment_sum
from diagatt.solvers import Likelihood, Model
from diagatt.solvers.likelihood.em import EM, Expectation
from diagatt.solvers.likelihood.latent_rows import LatentRows, NoneModel
from tests.solvers.likelihood.latent_rows import em_settings, random_model
from tests.solvers.none import some_without
from tests.solvers.samples import problem_of


def with_none(model, share=0.6, a=-0.4, K=1):
    none = NoneModel(share, torch.full((K,), a, dtype=torch.float64))
    return LatentRows(model.rows, replace(model.response, none=none))


def small_problem(seed=0):
    rng = np.random.default_rng(seed)
    X = RaggedRows.from_samples([rng.standard_normal((p, 2)) for p in (1, 2, 5, 6)])
    return problem_of(X, rng.standard_normal(4), weights=[1.0, 2.0, 0.5, 1.0])


def test_e_step_equals_enumeration():
    problem, model = small_problem(), with_none(random_model(np.random.default_rng(0), 1, 2, 1))
    A, C, response = model.rows.A.numpy(), model.rows.C.numpy(), model.response
    v, b = response.value[0, :, 0].numpy(), float(response.shared[0, 0])
    share, a, sd = response.none.prevalence, float(response.none.value), response.phi**0.5
    total, without, rows = 0.0, 0.0, []
    for i in range(4):
        x = problem.values[problem.offsets[i] : problem.offsets[i + 1]].numpy()
        y, w = float(problem.y[i]), float(problem.weights[i])
        f0, f1 = (multivariate_normal(A[k, :, 0], C[k]).pdf(x).reshape(-1) for k in (0, 1))
        active = share / len(x) * f1 / f0 * f0.prod() * norm(x @ v + b, sd).pdf(y)
        none = (1 - share) * f0.prod() * norm(a + b, sd).pdf(y)
        evidence = active.sum() + none
        total += w * np.log(evidence)
        without += w * none / evidence
        rows.append(active / evidence)
    expectation = Expectation(problem, get_score_form("affine"))
    em = EM(expectation, em_settings())
    assert em.expect(model).log_likelihood == pytest.approx(total, rel=1e-12)
    assert em.expect(model).without == pytest.approx(without, rel=1e-12)
    part = expectation.of_part(problem).run(model.rows, model.response, keep=True)
    np.testing.assert_allclose(torch.cat(part.responsibilities)[:, 0], np.concatenate(rows))


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "multinomial"])
def test_likelihood_never_falls(family):
    rng = np.random.default_rng(3)
    X, z, _ = some_without(120, 0.6, seed=4)
    y, K = {
        "gaussian": (z, 1),
        "bernoulli": (z > 0, 1),
        "poisson": (rng.poisson(np.exp(z / 2)), 1),
        "multinomial": (np.digitize(z, [-0.5, 0.5]), 3),
    }[family]
    problem = problem_of(X, y, family, K)
    settings = em_settings(shrinkage=0.0, ridge=1e-9, tolerance=1e-7)
    em = EM(Expectation(problem, get_score_form("affine")), settings)
    fit = em.run(with_none(random_model(rng, 1, 3, 1, K), K=K), 60)
    values = [h["log_likelihood"] for h in fit.history]
    assert fit.log_likelihood == pytest.approx(max(values), rel=1e-9)
    if family == "gaussian":  # others halve Newton steps that fall
        assert np.all(np.diff(values) >= -1e-7 * abs(values[0]))
    assert fit.log_likelihood > values[0]


def test_share_and_value_of_none_are_at_a_maximum():
    X, y, _ = some_without(150, 0.6, seed=1)
    settings = em_settings(shrinkage=0.0, ridge=1e-12, tolerance=1e-12)
    em = EM(Expectation(problem_of(X, y), get_score_form("affine")), settings)
    model = em.run(with_none(random_model(np.random.default_rng(0), 1, 3, 1)), 1000).model

    def likelihood(share=0.0, a=0.0):
        none = model.response.none
        moved = NoneModel(none.prevalence + share, none.value + a)
        response = replace(model.response, none=moved)
        return em.expect(LatentRows(model.rows, response)).log_likelihood

    for name in ("share", "a"):
        high, low = likelihood(**{name: 1e-3}), likelihood(**{name: -1e-3})
        slope, curvature = (high - low) / 2e-3, (high - 2 * likelihood() + low) / 1e-6
        assert curvature < 0
        assert abs(slope / curvature) < 1e-4  # the Newton step to the maximum


def test_the_fitted_attention_has_the_posterior_of_rows_without_responses():
    X, y, _ = some_without(80, 0.7, seed=2)
    problem = problem_of(X, y)
    fitted = Likelihood(none=True).fit(problem, Model(), seed=0)
    expectation = Expectation(problem, get_score_form("affine"))
    latent = fitted.state
    part = expectation.of_part(problem).run(latent.rows, latent.response, 0.0, keep=True)
    with torch.no_grad():
        kappa = fitted.module.attention(problem.values, problem.offsets)
    np.testing.assert_allclose(kappa, torch.cat(part.responsibilities), rtol=1e-8, atol=1e-12)
    some = segment_sum(kappa, problem.offsets)
    assert 0.5 < float(some.mean()) < 0.9


def test_a_share_of_one_is_the_model_without_none():
    """At π → 1 the likelihood is that of the model in which every sample has a row."""
    problem, plain = small_problem(1), random_model(np.random.default_rng(1), 1, 2, 1)
    em = EM(Expectation(problem, get_score_form("affine")), em_settings())
    both = [em.expect(m).log_likelihood for m in (plain, with_none(plain, share=1 - 1e-12))]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
