"""Samples without a row of interest, for every solver: shares, rows, errors, refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.families import get_family
from diagatt.segments import segment_sum
from diagatt.solvers import Auto, Gradient, Likelihood, Mixture, Model, Refined
from diagatt.solvers.base import with_errors
from diagatt.solvers.problem import Samples
from diagatt.solvers.sandwich import Objective, sandwich_errors
from tests.solvers.none import COEFFICIENTS, some_without
from tests.solvers.samples import problem_of
from tests.solvers.test_sandwich import meat_and_bread

SOLVERS = [Likelihood(none=True), Mixture(none=True, n_starts=1)]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_the_share_is_found(solver, share):
    """Within .05: three of its standard errors, √(π(1 − π)/n) at least, at π = .4."""
    X, y, place = some_without(400, share, seed=5)
    fitted = solver.fit(problem_of(X, y), Model(), seed=0)
    assert abs(fitted.prevalence - np.mean(place >= 0)) < 0.05
    values, offsets = X.to_torch()
    with torch.no_grad():
        some = segment_sum(fitted.module.attention(values, offsets), offsets)
    assert float(some.mean()) == pytest.approx(fitted.prevalence, abs=0.02)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_errors_hold_for_values_of_the_rows_that_are_there(solver):
    X, y, _ = some_without(400, 0.6, seed=6, level=2.0)
    problem = problem_of(X, y)
    fitted = with_errors(solver.fit(problem, Model(), seed=0), problem, Model())
    assert fitted.value_se is not None, fitted.errors_note
    found, se = fitted.module.value[0, :, 0].detach().numpy(), fitted.value_se[:3].numpy()
    assert np.all(np.abs(found - COEFFICIENTS) < 4 * se)
    assert np.all(se < 0.1)
    none = float((fitted.module.none_value + fitted.module.intercept).detach())
    assert none == pytest.approx(2.0, abs=0.15)


def test_gradients_learn_that_there_is_none():
    """A class that is present only with a row: the none-row predicts the other."""
    X, _, place = some_without(300, 0.5, seed=7)
    y = (place >= 0).astype(float)
    fitted = Gradient(none=True).fit(problem_of(X, y, "bernoulli"), Model(), seed=0)
    with torch.no_grad():
        kappa = fitted.module.attention(*X.astype(np.float64).to_torch())
    some = segment_sum(kappa, X.to_torch()[1])[:, 0].numpy()
    assert some[place >= 0].mean() > some[place < 0].mean() + 0.4
    assert fitted.prevalence == pytest.approx(some.mean(), abs=1e-6)


def test_averaged_restarts_average_none():
    X, y, _ = some_without(60, 0.5)
    problem = problem_of(X, y)
    fitted = Gradient(none=True, n_restarts=2).fit(problem, Model(), seed=0)
    module, given = fitted.module, (problem.values, problem.offsets)
    with torch.no_grad():
        mean = []
        for k in (0, 1):
            none = (module.none_score[k : k + 1], 2 * module.none_value[k : k + 1])
            one = DiagonalAttention.with_parameters(
                module.query_key.matrix()[k : k + 1],
                None,
                2 * module.value[k : k + 1],
                module.intercept,
                module.covariate,
                none=none,
                score_form="affine",
            )
            mean.append(one(*given))
        np.testing.assert_allclose(module(*given), (mean[0] + mean[1]) / 2, rtol=1e-9, atol=1e-12)


N, P, D = 60, 4, 2


@pytest.mark.parametrize("readout", ["pooled", "mixture"])
def test_covariance_is_that_of_dense_derivatives(readout, monkeypatch):
    """Parameters are W, u, v, b, ν, a and log φ; anywhere, the check for a minimum is off."""
    monkeypatch.setattr("diagatt.solvers.sandwich.MOST_STEP", np.inf)
    rng, family = np.random.default_rng(0), get_family("gaussian")
    has_phi = readout == "mixture"
    X = torch.tensor(rng.normal(size=(N, P, D)))
    y, w = torch.tensor(rng.normal(size=N)), torch.tensor(rng.uniform(0.5, 2, N))
    offsets, nothing = torch.arange(N + 1) * P, torch.zeros(N, 0, dtype=torch.float64)
    samples = Samples(family, X.reshape(N * P, D), offsets, y, w, nothing)
    theta, ridges = torch.tensor(0.1 * rng.normal(size=10 + has_phi)), (300.0, 400.0)

    def losses(t):
        W, u, v, b, nu, a, *phi = t.split([3, 2, 2, 1, 1, 1, *[1] * has_phi])
        matrix = torch.stack([W[:2], W[1:]])
        psi = (torch.einsum("npd,de,npe->np", X, matrix, X) + 2 * X @ u) / D**0.5
        z = torch.cat([X @ v, a.expand(N, 1)], dim=1) + b
        log_kappa = torch.cat([psi, (nu + np.log(P)).expand(N, 1)], dim=1).log_softmax(1)
        if readout == "pooled":
            return family.loss(y, (log_kappa.exp() * z).sum(1, keepdim=True))
        repeated = y.repeat_interleave(P + 1)
        density = family.log_density(repeated, z.reshape(-1, 1), phi[0].exp())
        return -(log_kappa + density.reshape(N, P + 1)).logsumexp(1)

    def penalty(t):
        W, u, v, _, _, a, *_ = t.split([3, 2, 2, 1, 1, 1, *[1] * has_phi])
        scores = W[0] ** 2 + 2 * W[1] ** 2 + W[2] ** 2 + 2 * u.square().sum()
        return 0.5 * (ridges[0] * (v.square().sum() + a.square().sum()) + ridges[1] * scores).sum()

    hessian = torch.autograd.functional.hessian
    curvature = hessian(penalty, theta)
    J = hessian(lambda t: (w * losses(t)).sum(), theta) + curvature
    S = w[:, None] * torch.autograd.functional.jacobian(losses, theta)
    inverse = torch.linalg.inv(J)
    assert float(torch.linalg.eigvalsh(J)[0]) > 0
    free = len(theta) - float((inverse * curvature).sum())
    pull = inverse @ torch.autograd.functional.jacobian(penalty, theta)
    expected = meat_and_bread(inverse, S, free) + torch.outer(pull, pull)
    query = torch.zeros(1, 3, 3, dtype=torch.float64)
    query[0, :2, :2] = torch.stack([theta[:2], theta[1:3]])
    query[0, :2, 2] = query[0, 2, :2] = theta[3:5]
    module = DiagonalAttention.with_parameters(
        *(query, None, theta[5:7].reshape(1, 2, 1), theta[7:8], torch.zeros(0, 1).double()),
        none=(theta[8:9], theta[9:10, None]),
        **{"score_form": "affine", "readout": readout, "family": family},
    )
    phi = float(theta[-1].exp()) if has_phi else None
    found = sandwich_errors(module, samples, phi, Objective(lambda m, _: m.penalty(*ridges)))
    assert found.covariance is not None, found.note
    np.testing.assert_allclose(found.covariance, expected[5:8, 5:8], rtol=1e-7, atol=1e-12)


def test_latent_rows_have_the_errors_of_any_other_writing_of_the_model():
    """The same likelihood in means and Cholesky factors, by dense derivatives at its maximum."""
    rng, n = np.random.default_rng(1), 150
    X, has = rng.normal(size=(n, 4, 2)), rng.random(n) < 0.6
    X[has, 0] = 1.5 * X[has, 0] + [2.5, -1.0]
    y = np.where(has, X[:, 0] @ [1.0, -1.0], -1.0) + 0.4 * rng.normal(size=n)
    solver = Likelihood(shrinkage=0.0, tolerance=1e-13, max_iterations=3000, none=True)
    rows = torch.tensor(X.reshape(-1, 2))
    beside = (torch.arange(n + 1) * 4, torch.tensor(y), torch.ones(n).double())
    problem = Samples(get_family("gaussian"), rows, *beside, torch.zeros(n, 0).double())
    model = Model(ridge=1e-9)
    fitted = with_errors(solver.fit(problem, model, seed=0), problem, model)
    latent, X, y = fitted.state, torch.tensor(X), torch.tensor(y)

    def chol(parts):
        return torch.stack([torch.stack([parts[0], 0 * parts[0]]), parts[1:]])

    def losses(t):
        m0, m1, l0, l1, v, (b, s, rho, a) = t.split([2, 2, 3, 3, 2, 4])
        log_f = [
            torch.distributions.MultivariateNormal(m, scale_tril=chol(part)).log_prob(X)
            for m, part in ((m0, l0), (m1, l1))
        ]
        sd, log_pi = (s / 2).exp(), torch.nn.functional.logsigmoid(-rho)
        density = torch.distributions.Normal(X @ v + b, sd).log_prob(y[:, None])
        rows = log_f[1] - log_f[0] + density + log_pi - np.log(4)
        none = torch.distributions.Normal(a + b, sd).log_prob(y) + log_pi + rho
        return -(log_f[0].sum(1) + torch.cat([rows, none[:, None]], dim=1).logsumexp(1))

    L, none = torch.linalg.cholesky(latent.rows.C), latent.response.none
    triangles = [torch.stack([c[0, 0], c[1, 0], c[1, 1]]) for c in L]
    means = [latent.rows.A[k, :, 0] for k in (0, 1)]
    response = [latent.response.value[0, :, 0], latent.response.shared[0]]
    odds = -torch.tensor([none.prevalence]).double().logit()
    phi = torch.tensor([latent.response.phi]).double().log()
    theta = torch.cat([*means, *triangles, *response, phi, odds, none.value]).double()
    J = torch.autograd.functional.hessian(lambda t: losses(t).sum(), theta)
    S = torch.autograd.functional.jacobian(losses, theta)
    inverse = torch.linalg.inv(J)
    assert float((inverse @ S.sum(0)).abs().max()) < 1e-3
    covariance = meat_and_bread(inverse, S, len(theta))
    np.testing.assert_allclose(fitted.value_se, covariance.diagonal()[10:13].sqrt(), rtol=2e-3)


@pytest.mark.parametrize(
    ("solver", "model", "words"),
    [
        (Mixture(none=True), Model(2), "one head"),
        (Gradient(none=True), Model(2), "one head"),
        (Likelihood(none=True), Model(2), "one head"),
        (Auto([Mixture(none=True)]), Model(), "cannot compete"),
        (Refined(Likelihood(none=True), Gradient()), Model(), "both steps"),
    ],
)
def test_what_is_not_provided_for_is_refused(solver, model, words):
    X, y, _ = some_without(20, 0.5)
    assert words in solver.refuse(problem_of(X, y), model)


def test_weights_of_rows_are_refused():
    X, y, _ = some_without(20, 0.5)
    problem = problem_of(X, y)
    weighted = replace(problem, log_prior=torch.zeros(problem.n_rows).double())
    assert "row weights" in Mixture(none=True).refuse(weighted, Model())


def test_refined_goes_on_with_none():
    X, y, _ = some_without(60, 0.5)
    fitted = Refined(Likelihood(none=True)).fit(problem_of(X, y), Model(), seed=0)
    assert fitted.module.has_none
    assert 0.2 < fitted.prevalence < 0.8
