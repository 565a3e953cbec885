"""Sandwich standard errors against brute force, closed forms and invariances."""

import numpy as np
import pytest
import torch

from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.families import get_family
from diagatt.segments import segment_sum
from diagatt.solvers import Gradient, Likelihood, Mixture
from diagatt.solvers.likelihood.errors import gaussian_moments
from diagatt.solvers.problem import Samples
from diagatt.solvers.sandwich import MOST_LEVERAGE, Objective, sandwich_errors

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
N, P, D = 60, 4, 2


def responses(family, generator):
    draw = {
        "gaussian": lambda: generator.normal(size=N),
        "bernoulli": lambda: generator.integers(0, 2, N),
        "poisson": lambda: generator.poisson(1.5, N),
        "gamma": lambda: generator.gamma(2.0, size=N),
        "multinomial": lambda: generator.integers(0, 3, N),
    }[family]
    return torch.as_tensor(draw(), dtype=torch.float64)


def random_samples(family, seed=0):
    generator = np.random.default_rng(seed)
    K = 3 if family == "multinomial" else 1
    return Samples(
        get_family(family),
        torch.tensor(generator.normal(size=(N * P, D))),
        torch.arange(N + 1) * P,
        responses(family, generator),
        torch.tensor(generator.uniform(0.5, 2, N)),
        torch.tensor(generator.normal(size=(N, 1))),
        K,
    )


def brute_force(samples, theta, readout, has_phi, ridges):
    """Return the covariance by dense derivatives of the objective in one vector of parameters."""
    K, family = samples.n_outputs, samples.family
    X = samples.values.reshape(N, P, D)

    def unpacked(t):
        W, u, V, b, c, *phi = t.split([3, 2, D * K, K, K, *[1] * has_phi])
        matrix = torch.stack([torch.stack([W[0], W[1]]), torch.stack([W[1], W[2]])])
        return matrix, u, V.reshape(K, D).T, b, c[None], phi[0].exp() if phi else 1.0

    def losses(t):
        W, u, V, b, c, phi = unpacked(t)
        psi = (torch.einsum("npd,de,npe->np", X, W, X) + 2 * X @ u) / D**0.5
        z = torch.einsum("npd,dk->npk", X, V) + (b + samples.covariates @ c)[:, None]
        log_kappa = psi.log_softmax(1)
        if readout == "pooled":
            return family.loss(samples.y, (log_kappa.exp()[:, :, None] * z).sum(1))
        y = samples.y.repeat_interleave(P)
        density = family.log_density(y, z.reshape(N * P, K), phi).reshape(N, P)
        return -(log_kappa + density).logsumexp(1)

    def objective(t):
        W, u, V, *_ = unpacked(t)
        squares = ridges[1] * (W.square().sum() + 2 * u.square().sum())
        return (samples.weights * losses(t)).sum() + 0.5 * (ridges[0] * V.square().sum() + squares)

    jacobian = torch.autograd.functional.jacobian
    J = torch.autograd.functional.hessian(objective, theta)
    S = samples.weights[:, None] * jacobian(losses, theta)
    curvature = torch.autograd.functional.hessian(
        lambda t: objective(t) - (samples.weights * losses(t)).sum(), theta
    )
    inverse = torch.linalg.pinv(J, rtol=1e-9, hermitian=True)
    rank = torch.linalg.matrix_rank(J, rtol=1e-9, hermitian=True)
    q = float(rank - (inverse * curvature).sum())
    slope = torch.autograd.functional.jacobian(
        lambda t: objective(t) - (samples.weights * losses(t)).sum(), theta
    )
    pull = inverse @ slope
    return meat_and_bread(inverse, S, q) + torch.outer(pull, pull), J


def meat_and_bread(inverse, S, q):
    """Sum J⁻¹ s sᵀ J⁻¹/(1 − h), sample by sample; h adds up to q."""
    pulls = np.array([float(s @ inverse @ s) for s in S])
    total = torch.zeros_like(inverse)
    for s, h in zip(S, q * pulls / pulls.sum(), strict=True):
        total += torch.outer(inverse @ s, inverse @ s) / (1 - min(h, MOST_LEVERAGE))
    return total


@pytest.mark.parametrize(
    ("family", "readout"),
    [
        ("gaussian", "pooled"),
        ("gaussian", "mixture"),
        ("bernoulli", "mixture"),
        ("poisson", "mixture"),
        ("gamma", "mixture"),
        ("gamma", "pooled"),
        ("multinomial", "pooled"),
        ("multinomial", "mixture"),
    ],
)
def test_covariance_is_that_of_dense_derivatives(family, readout, monkeypatch):
    """Anywhere, also away from the minimum, where the check for it is switched off."""
    monkeypatch.setattr("diagatt.solvers.sandwich.MOST_STEP", np.inf)
    samples = random_samples(family)
    K, has_phi = samples.n_outputs, readout == "mixture" and samples.family.has_dispersion
    generator = np.random.default_rng(1)
    theta = torch.tensor(0.1 * generator.normal(size=5 + D * K + 2 * K + has_phi))
    if K > 1:  # what all classes share is 0 at every minimum
        theta[5 : 5 + D * K] -= theta[5 : 5 + D * K].reshape(K, D).mean(dim=0).repeat(K)
    ridges = (300.0, 400.0)  # convex enough to be invertible anywhere
    expected, J = brute_force(samples, theta, readout, has_phi, ridges)
    if float(torch.linalg.eigvalsh(J)[0]) < -1e-9:
        pytest.fail("the design of this test is not convex enough")
    W = torch.zeros(1, 3, 3, dtype=torch.float64)
    W[0, 0, 0], W[0, 0, 1], W[0, 1, 0], W[0, 1, 1] = theta[0], theta[1], theta[1], theta[2]
    W[0, :2, 2] = W[0, 2, :2] = theta[3:5]
    value, b, c = theta[5 : 5 + D * K].reshape(1, K, D).mT, theta[5 + D * K :][:K], None
    c = theta[5 + D * K + K :][:K][None]
    module = DiagonalAttention.with_parameters(
        W, None, value.contiguous(), b, c, score_form="affine", readout=readout, family=family
    )
    phi = float(theta[-1].exp()) if has_phi else None
    found = sandwich_errors(module, samples, phi, Objective(lambda m, _: m.penalty(*ridges)))
    start = 5
    order = [
        i
        for k in range(K)
        for i in (*range(start + k * D, start + (k + 1) * D), start + D * K + k,
                  start + D * K + K + k)
    ]  # fmt: skip
    wanted = expected[order][:, order]
    assert found.covariance is not None, found.note
    np.testing.assert_allclose(found.covariance, wanted, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("grouped", [False, True])
def test_one_row_samples_have_the_robust_errors_of_least_squares(grouped):
    """The closed forms of White and of Liang and Zeger, with scores enlarged by leverage."""
    generator = np.random.default_rng(0)
    X, n = generator.normal(size=(80, 3)), 80
    y = X @ [1.0, 0.0, -1.0] + generator.normal(size=n) * (1 + X[:, 0] ** 2)
    groups = np.arange(n) // 4 if grouped else None
    model = DiagAttRegressor(ridge=0.0).fit(X, y, groups=groups)
    F = np.c_[X, np.ones(n)]
    residual = y - model.predict(X)
    scores = F * residual[:, None]
    if grouped:
        scores = np.sqrt(20 / 19) * np.add.reduceat(scores, np.arange(0, n, 4))
    bread = torch.from_numpy(np.linalg.inv(F.T @ F))
    covariance = meat_and_bread(bread, torch.from_numpy(scores), 4)
    np.testing.assert_allclose(model.value_se_, np.sqrt(np.diag(covariance)), rtol=1e-6)


def test_shrunk_estimates_say_how_far_they_were_pulled():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 2))
    y = X @ [1.0, -2.0] + generator.normal(size=60)
    model = DiagAttRegressor(ridge=50.0).fit(X, y)
    F, penalty = np.c_[X, np.ones(60)], np.diag([50.0, 50.0, 0.0])
    inverse = np.linalg.inv(F.T @ F + penalty)
    scores = F * (y - model.predict(X))[:, None]
    free = 3 - np.trace(inverse @ penalty)
    variance = meat_and_bread(torch.from_numpy(inverse), torch.from_numpy(scores), free).numpy()
    pull = inverse @ penalty @ np.r_[model.value_[0], model.intercept_]
    np.testing.assert_allclose(model.value_se_, np.sqrt(np.diag(variance) + pull**2), rtol=1e-6)


def test_copies_in_one_group_are_no_new_samples():
    data = simulate.regression(120, p=4, d=2, mu=(2,), sigma2=(3,), seed=0, dtype=np.float64)
    X, y = list(data.X), np.asarray(data.y)
    solver = Mixture(n_starts=1)
    once = DiagAttRegressor(solver=solver, ridge=0.0, random_state=0).fit(X, y)
    weights = np.full(240, 0.5)
    groups = np.tile(np.arange(120), 2)
    twice = DiagAttRegressor(solver=solver, ridge=0.0, random_state=0)
    twice.fit(X + X, np.r_[y, y], sample_weight=weights, groups=groups)
    ratio = twice.value_se_ / once.value_se_
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)  # corrections for n differ, no more
    assert 0.9 < ratio[0] < 1.1


def test_factors_of_full_rank_have_the_errors_of_a_free_matrix(monkeypatch):
    """Without the correction for free parameters, which they count differently."""
    monkeypatch.setattr("diagatt.solvers.sandwich.MOST_LEVERAGE", 0.0)
    data = simulate.regression(150, p=4, d=2, mu=(2,), sigma2=(3,), seed=1, dtype=np.float64)
    free = DiagAttRegressor(solver=Gradient(), score_form="quadratic", random_state=0)
    free.fit(data.X, data.y)
    problem = free._problem(data.X, data.y, None, None)
    objective = Objective(lambda m, _: m.penalty(1.0, 0.1 * problem.scale))
    W = torch.tensor((free.query_key_ + free.query_key_.swapaxes(1, 2)) / 2)
    parts = (torch.tensor(free.value_)[:, :, None], torch.tensor([float(free.intercept_)]))
    none, eye = torch.zeros(0, 1).double(), torch.eye(2).double()[None]
    ours = [
        sandwich_errors(
            DiagonalAttention.with_parameters(
                query, key, *parts, none, score_form="quadratic", coupling="distinct"
            ),
            problem, None, objective,
        )
        for query, key in ((W, None), (W, eye))
    ]  # fmt: skip
    assert ours[0].covariance is not None, ours[0].note
    np.testing.assert_allclose(ours[0].covariance.diagonal().sqrt(), free.value_se_, rtol=1e-6)
    np.testing.assert_allclose(ours[1].covariance, ours[0].covariance, rtol=1e-4)


def test_latent_rows_have_the_errors_of_any_other_writing_of_the_model():
    """The same likelihood in means and Cholesky factors, by dense derivatives at its maximum."""
    data = simulate.regression(120, p=4, d=2, mu=(2.5,), sigma2=(3,), seed=2, dtype=np.float64)
    solver = Likelihood(shrinkage=0.0, tolerance=1e-13, max_iterations=2000)
    model = DiagAttRegressor(solver=solver, ridge=1e-9, random_state=0).fit(data.X, data.y)
    latent = model._state
    X = torch.tensor(np.stack(list(data.X)))
    y = torch.tensor(np.asarray(data.y))

    def chol(parts):
        return torch.stack([torch.stack([parts[0], 0 * parts[0]]), parts[1:]])

    def losses(t):
        m0, m1, l0, l1, v, (b, s) = t.split([2, 2, 3, 3, 2, 2])
        log_f = [
            torch.distributions.MultivariateNormal(m, scale_tril=chol(part)).log_prob(X)
            for m, part in ((m0, l0), (m1, l1))
        ]
        density = torch.distributions.Normal(X @ v + b, (s / 2).exp()).log_prob(y[:, None])
        return -(log_f[0].sum(1) + (log_f[1] - log_f[0] + density).logsumexp(1))

    L = torch.linalg.cholesky(latent.rows.C)
    triangles = [torch.stack([c[0, 0], c[1, 0], c[1, 1]]) for c in L]
    means = [latent.rows.A[k, :, 0] for k in (0, 1)]
    response = [latent.response.value[0, :, 0], latent.response.shared[0]]
    phi = torch.tensor([latent.response.phi]).log()
    theta = torch.cat([*means, *triangles, *response, phi]).double()
    J = torch.autograd.functional.hessian(lambda t: losses(t).sum(), theta)
    S = torch.autograd.functional.jacobian(losses, theta)
    assert float((torch.linalg.inv(J) @ S.sum(0)).abs().max()) < 1e-3
    inverse = torch.linalg.inv(J)
    covariance = meat_and_bread(inverse, S, len(theta))
    expected = covariance.diagonal()[10:13].sqrt()
    np.testing.assert_allclose(model.value_se_, expected, rtol=1e-3)


def test_moments_of_products_are_those_of_many_draws():
    mean, C = torch.tensor([0.5, -1.0]), torch.tensor([[1.0, 0.3], [0.3, 2.0]])
    draws = np.random.default_rng(0).multivariate_normal(mean, C, 400_000)
    a, b = np.triu_indices(2)
    T = np.c_[draws[:, a] * draws[:, b], draws]
    expected, covariance = gaussian_moments(mean, C)
    np.testing.assert_allclose(T.mean(axis=0), expected, atol=0.02)
    np.testing.assert_allclose(np.cov(T.T), covariance, atol=0.15)


def test_no_errors_where_none_can_be_trusted():
    data = simulate.regression(40, p=4, d=6, mu=(2,), sigma2=(3,), seed=0)
    few = DiagAttRegressor(solver=Mixture(score_ridge=0.01, linear_ridge=0.01, n_starts=1))
    few.fit(data.X, data.y)
    assert few.value_se_ is None
    assert "too few" in few.errors_note_ or "not at a minimum" in few.errors_note_
    short = DiagAttRegressor(solver=Gradient(optimizer="adam", max_epochs=1), random_state=0)
    assert short.fit(data.X, data.y).value_se_ is None
    several = DiagAttRegressor(solver=Gradient(n_restarts=2, max_epochs=5, optimizer="adam"))
    assert "restarts" in several.fit(data.X, data.y).errors_note_


def test_several_classes_have_errors_each():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 3, 2))
    y = (X[:, 0, 0] + generator.normal(size=200) > 0) + (X[:, 0, 1] > 0).astype(int)
    model = DiagAttClassifier(solver=Mixture(score_ridge=100.0, n_starts=1), random_state=0)
    assert model.fit(X, y).value_se_.shape == (3, 3)


def test_few_groups_have_no_errors_of_independent_samples():
    data = simulate.regression(120, p=4, d=3, mu=(3,), sigma2=(3,), seed=0, dtype=np.float64)
    for solver in (Likelihood(), Likelihood(covariance="tied")):
        model = DiagAttRegressor(solver=solver, random_state=0)
        model.fit(data.X, data.y, groups=np.arange(120) % 4)
        assert model.value_se_ is None
        assert "groups" in model.errors_note_


def test_sums_within_samples_are_twice_differentiable():
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    offsets = torch.tensor([0, 2, 5])
    assert torch.autograd.gradgradcheck(lambda t: segment_sum(t**3, offsets), (x,))


@pytest.mark.parametrize("solver", [Likelihood(), Mixture(n_starts=1)])
def test_an_offset_of_a_gaussian_response_is_a_part_of_it(solver):
    data = simulate.regression(120, p=4, d=2, mu=(3,), sigma2=(3,), seed=0, dtype=np.float64)
    known = 3 * np.random.default_rng(0).normal(size=120)
    model = DiagAttRegressor(solver=solver, random_state=0)
    without = model.fit(data.X, data.y).value_se_
    beside = model.fit(data.X, data.y + known, offset=known).value_se_
    np.testing.assert_allclose(beside, without, rtol=0.02)


@pytest.mark.parametrize(
    ("solver", "classes"),
    [
        (Likelihood(), False),
        (Mixture(n_starts=1), False),
        (Mixture(n_starts=1), True),
        (Gradient(), True),
    ],
)
def test_a_constant_feature_has_no_error_and_leaves_the_others_theirs(solver, classes):
    data = simulate.regression(150, p=4, d=2, mu=(2.5,), sigma2=(2,), seed=0, dtype=np.float64)
    X, y = data.X.values.reshape(150, 4, 2), data.y
    if classes:
        y = np.digitize(y + np.random.default_rng(0).logistic(size=150), np.quantile(y, [0.3, 0.6]))
    found = []
    for samples in (X, np.concatenate([X[:, :, :1], np.full((150, 4, 1), 7.0), X[:, :, 1:]], 2)):
        model = (DiagAttClassifier if classes else DiagAttRegressor)(solver=solver, random_state=0)
        model.fit(samples, y)
        assert "sandwich" in model.errors_note_
        found.append(np.atleast_2d(model.value_se_))
    without, beside = found
    assert np.isnan(beside[:, 1]).all()
    # Scores are divided by √d, so that penalized ones differ a little.
    np.testing.assert_allclose(np.delete(beside, 1, axis=1), without, rtol=0.15)
