"""One contract for all families: derivatives, link, perfect prediction, likelihood, range."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from scipy.special import huber, logsumexp, rel_entr
from sklearn.metrics import (
    log_loss,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    mean_tweedie_deviance,
)
from torch.autograd.functional import hessian, jacobian

from diagatt.families import FAMILIES, Times, check_response, get_family
from diagatt.solvers.problem import Samples

N, CLASSES = 12, 3

#: Responses that a family may produce, boundary included.
RESPONSES = {
    "gaussian": lambda rng: rng.normal(size=N),
    "bernoulli": lambda rng: np.arange(N) % 2.0,
    "multinomial": lambda rng: np.arange(N) % float(CLASSES),
    "poisson": lambda rng: np.r_[0.0, rng.poisson(3, N - 1)],
    "gamma": lambda rng: np.r_[1e-3, rng.gamma(2, size=N - 1)],
    "negative_binomial": lambda rng: np.r_[0.0, rng.poisson(3, N - 1)],
    "binomial": lambda rng: np.column_stack([np.arange(N) % 4, 1 + np.arange(N) % 3]) * 1.0,
    "tweedie": lambda rng: np.r_[0.0, rng.gamma(2, size=N - 1)],
    "quantile": lambda rng: rng.normal(size=N),
    "huber": lambda rng: 2 * rng.normal(size=N),
    "ordinal": lambda rng: np.arange(N) % float(CLASSES),
}
WRONG = {
    "gaussian": [np.nan, np.inf],
    "bernoulli": [-1.0, 0.5, 2.0, np.nan, np.inf],
    "multinomial": [-1.0, 0.5, np.nan, np.inf],
    "poisson": [-0.5, np.nan, np.inf],
    "gamma": [0.0, -1.0, np.nan, np.inf],
    "negative_binomial": [-1.0, 0.5, np.nan, np.inf],
    "binomial": [-1.0, np.nan, np.inf],
    "tweedie": [-0.5, np.nan, np.inf],
    "quantile": [np.nan, np.inf],
    "huber": [np.nan, np.inf],
    "ordinal": [-1.0, 0.5, np.nan, np.inf],
}
# Shapes of the families that have one: α; s and a width of nothing; σ; gaps of thresholds.
SHAPES = {
    "negative_binomial": [0.7],
    "quantile": [1.0, 1e-9],
    "huber": [0.8],
    "ordinal": [1.3],
}
LOG_LINK = ("poisson", "gamma", "negative_binomial", "tweedie")
WITH_DISPERSION = ("gaussian", "gamma", "tweedie", "quantile", "huber")


@pytest.fixture(params=sorted(RESPONSES))
def family(request):
    name = request.param
    numbers = {"quantile": "(0.3)", "tweedie": "(1.6)"}
    found = get_family(name + numbers.get(name, ""))
    if name in SHAPES:
        found = found.with_shape(torch.tensor(SHAPES[name], dtype=torch.float64))
    return found


def example(family, seed=0):
    """Responses (n,) and predictors (n, K) of moderate size."""
    rng = np.random.default_rng(seed)
    K = CLASSES if family.name == "multinomial" else 1
    y = torch.from_numpy(RESPONSES[family.name](rng))
    return y, torch.from_numpy(rng.normal(size=(N, K)))


def test_every_family_has_an_example():
    others = {name for name, family in FAMILIES.items() if isinstance(family, Times)}
    assert set(FAMILIES) - others == set(RESPONSES) == set(WRONG)  # `test_times` has the others


def test_gradient_and_curvature_are_derivatives_of_the_loss(family):
    y, z = example(family)
    gradient, curvature = family.gradient(y, z), family.curvature(y, z)
    for i in range(N):

        def loss(zi, i=i):
            return family.loss(y[i : i + 1], zi[None])[0]

        torch.testing.assert_close(gradient[i], jacobian(loss, z[i]))
        torch.testing.assert_close(curvature[i], hessian(loss, z[i]))


def test_gradient_equals_a_difference_quotient(family):
    y, z = example(family, seed=1)
    h = 1e-6
    for k in range(z.shape[1]):
        step = torch.zeros_like(z)
        step[:, k] = h
        quotient = (family.loss(y, z + step) - family.loss(y, z - step)) / (2 * h)
        torch.testing.assert_close(family.gradient(y, z)[:, k], quotient, rtol=1e-6, atol=1e-8)


def test_link_undoes_the_inverse_link(family):
    _, z = example(family)
    if family.name == "multinomial":
        z = z - z.mean(dim=1, keepdim=True)  # a common shift is not seen
    torch.testing.assert_close(family.link(family.inverse_link(z)), family.widened(z))
    mean = family.inverse_link(z)
    torch.testing.assert_close(family.inverse_link(family.link(mean)), mean)


def test_the_mean_is_where_the_expected_gradient_vanishes(family):
    """E ∂ℓ/∂z = 0 at the true predictor: the loss is proper and the link belongs to it."""
    if family.name == "multinomial":
        z = torch.tensor([[0.3, -1.0, 0.5]], dtype=torch.float64)
        p = family.inverse_link(z)[0]
        total = sum(p[k] * family.gradient(torch.tensor([float(k)]), z)[0] for k in range(len(p)))
        torch.testing.assert_close(total, torch.zeros(3, dtype=torch.float64))
    elif family.name == "ordinal":
        z = torch.tensor([[0.3]], dtype=torch.float64)
        p = family.inverse_link(z)[0]
        total = sum(p[k] * family.gradient(torch.tensor([float(k)]), z)[0, 0] for k in range(3))
        assert total.abs() < 1e-15
    elif family.name == "quantile":  # below the predictor with probability τ
        y, z = torch.tensor([-1.0, 1.0]).double(), torch.zeros(2, 1).double()
        total = torch.tensor([0.3, 0.7], dtype=torch.float64) @ family.gradient(y, z)[:, 0]
        assert total.abs() < 1e-8
    elif family.name == "huber":  # of any symmetric distribution around the predictor
        y, z = torch.tensor([-3.0, -0.1, 0.1, 3.0]).double(), torch.zeros(4, 1).double()
        assert family.gradient(y, z).sum().abs() < 1e-15
    elif family.name == "binomial":
        _, z = example(family)
        mean = family.inverse_link(z)
        gradient = family.gradient(torch.cat([7 * mean, 7 * (1 - mean)], dim=1), z)
        torch.testing.assert_close(gradient, torch.zeros_like(z))
    else:  # gradients are affine in y: E ∂ℓ(y, z) = ∂ℓ(E y, z)
        _, z = example(family)
        mean = family.inverse_link(z)[:, 0]
        torch.testing.assert_close(family.gradient(mean, z), torch.zeros_like(z))


def test_perfect_prediction_has_the_smallest_loss(family):
    y, z = example(family)
    smallest = family.saturated_loss(y)
    assert (family.loss(y, z) >= smallest - 1e-12).all()
    assert (family.deviance(y, z) >= -1e-12).all()
    if family.name == "multinomial":
        perfect = 200 * torch.nn.functional.one_hot(y.long(), CLASSES).double()
    elif family.name == "ordinal":  # both logits of a class in the middle are far off
        above = torch.stack([y > 0, y > 1], dim=1)
        perfect = 200 * (2 * above.double() - 1)
    elif family.name == "bernoulli":
        perfect = 200 * (2 * y - 1)[:, None]
    else:
        seen = family.observed(y)
        inside = seen > 0 if family.has_log_link else torch.ones(N, dtype=bool)
        inside &= (seen > 0) & (seen < 1) if family.name == "binomial" else True
        # A count of 0: z → −∞.
        perfect = torch.full((N, 1), -100.0, dtype=torch.float64)
        perfect[inside] = family.link(seen[inside, None])
    torch.testing.assert_close(family.loss(y, perfect), smallest)


def test_deviance_equals_that_of_scikit_learn(family):
    y, z = example(family)
    mean = family.inverse_link(z).numpy()
    expected = {
        "gaussian": lambda: mean_squared_error(y, mean[:, 0]),
        "bernoulli": lambda: 2 * log_loss(y, mean[:, 0]),
        "multinomial": lambda: 2 * log_loss(y, mean),
        "poisson": lambda: mean_poisson_deviance(y, mean[:, 0]),
        "gamma": lambda: mean_gamma_deviance(y, mean[:, 0]),
        "negative_binomial": lambda: negative_binomial_deviance(y.numpy(), mean[:, 0]),
        "binomial": lambda: binomial_deviance(y.numpy(), mean[:, 0]),
        "tweedie": lambda: mean_tweedie_deviance(y, mean[:, 0], power=1.6),
        "quantile": lambda: 2 * mean_pinball_loss(y, mean[:, 0], alpha=0.3),
        "huber": lambda: 2 * huber(1.35 * 0.8, y.numpy() - mean[:, 0]).mean(),
        "ordinal": lambda: 2 * log_loss(y, mean),
    }[family.name]()
    rel = 1e-7 if family.name == "quantile" else 1e-12  # its kink is rounded
    assert family.deviance(y, z).mean().item() == pytest.approx(expected, rel=rel)


def negative_binomial_deviance(y, mean, alpha=0.7):
    from statsmodels.genmod.families import NegativeBinomial

    return NegativeBinomial(alpha=alpha).resid_dev(y, mean).__pow__(2).mean()


def binomial_deviance(y, mean):
    n, share = y.sum(axis=1), y[:, 0] / y.sum(axis=1)
    return 2 * (n * (rel_entr(share, mean) + rel_entr(1 - share, 1 - mean))).mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_predictors_stay_finite(family, dtype):
    y, _ = example(family)
    K = CLASSES if family.name == "multinomial" else 1
    largest = 80.0 if family.has_log_link else 1e4  # e⁸⁰ is near float32's end
    for sign in (-1, 1):
        z = torch.zeros(N, K, dtype=dtype)
        z[:, 0] = sign * largest
        for quantity in (family.loss, family.gradient, family.curvature, family.deviance):
            result = quantity(y.to(dtype), z)
            assert result.dtype == dtype
            assert torch.isfinite(result).all(), quantity.__name__


def test_curvature_is_positive_semidefinite_and_within_its_bound(family):
    rng = np.random.default_rng(0)
    K = CLASSES if family.name == "multinomial" else 1
    z = torch.from_numpy(3 * rng.normal(size=(500, K)))
    made = RESPONSES[family.name](rng)
    y = torch.from_numpy(np.resize(made, (500, *made.shape[1:])))
    eigenvalues = torch.linalg.eigvalsh(family.curvature(y, z))
    assert eigenvalues.min() >= -1e-12
    bound = family.curvature_bound
    if bound is not None:
        assert eigenvalues.max() <= bound + 1e-12


def test_bound_of_the_multinomial_is_attained():
    z = torch.tensor([[20.0, 20.0, -20.0]], dtype=torch.float64)  # two equally likely classes
    family = get_family("multinomial")
    largest = torch.linalg.eigvalsh(family.curvature(torch.zeros(1), z)).max()
    assert largest.item() == pytest.approx(family.curvature_bound)


LIKELIHOODS = {
    "gaussian": lambda y, mean, phi: stats.norm.logpdf(y, mean[:, 0], phi**0.5),
    "bernoulli": lambda y, mean, phi: stats.bernoulli.logpmf(y, mean[:, 0]),
    "multinomial": lambda y, mean, phi: np.log(mean[np.arange(len(y)), y.astype(int)]),
    "poisson": lambda y, mean, phi: stats.poisson.logpmf(y, mean[:, 0]),
    "gamma": lambda y, mean, phi: stats.gamma.logpdf(y, 1 / phi, scale=phi * mean[:, 0]),
    "negative_binomial": lambda y, mean, phi: stats.nbinom.logpmf(
        y, 1 / 0.7, 1 / (1 + 0.7 * mean[:, 0])
    ),
    "binomial": lambda y, mean, phi: stats.binom.logpmf(y[:, 0], y.sum(axis=1), mean[:, 0]),
    "tweedie": lambda y, mean, phi: tweedie_log_density(y, mean[:, 0], phi),
    "quantile": lambda y, mean, phi: asymmetric_laplace(y - mean[:, 0], 0.3, phi),
    "huber": lambda y, mean, phi: huber_density(y - mean[:, 0], 1.35 * 0.8, phi),
    "ordinal": lambda y, mean, phi: np.log(mean[np.arange(len(y)), y.astype(int)]),
}


def tweedie_log_density(y, mean, phi, power=1.6):
    """Sum over the Poisson number of gamma amounts."""
    rate = mean ** (2 - power) / (phi * (2 - power))
    shape, scale = (2 - power) / (power - 1), phi * (power - 1) * mean ** (power - 1)
    found = []
    for one, r, s in zip(y, rate, scale, strict=True):
        counts = np.arange(1, 400)
        each = stats.poisson.logpmf(counts, r) + stats.gamma.logpdf(one, counts * shape, scale=s)
        found.append(-r if one == 0 else logsumexp(each))
    return np.array(found)


def asymmetric_laplace(r, level, phi):
    pinball = np.where(r > 0, level * r, (level - 1) * r)
    return np.log(level * (1 - level) / phi) - pinball / phi


def huber_density(r, cut, phi):
    total = quad(lambda x: np.exp(-huber(cut, x) / phi), -60, 60, points=[-cut, cut], limit=200)[0]
    return -huber(cut, r) / phi - np.log(total)


@pytest.mark.parametrize("phi", [0.3, 1.0, 2.5])
def test_loss_and_normalizer_make_the_log_likelihood(family, phi):
    if family.name not in WITH_DISPERSION:
        phi = 1.0
    y, z = example(family)
    ours = -family.loss(y, z) / phi + family.log_normalizer(y, phi)
    expected = LIKELIHOODS[family.name](y.numpy(), family.inverse_link(z).numpy(), phi)
    rounded = 1e-7 if family.name in ("quantile", "huber") else 1e-11  # kinks; a quadrature
    np.testing.assert_allclose(ours, expected, rtol=rounded, atol=rounded / 10)


@pytest.mark.parametrize("name", WITH_DISPERSION)
def test_dispersion_averages_to_phi(name):
    family, phi, rng = get_family(name), 0.4, np.random.default_rng(0)
    z = rng.normal(size=200_000)
    if name == "gaussian":
        y = z + phi**0.5 * rng.normal(size=len(z))
    elif name == "gamma":
        y = rng.gamma(1 / phi, phi * np.exp(z))
    elif name == "tweedie":  # p = 1.5
        counts = rng.poisson(np.exp(z / 2) / (0.5 * phi))
        y = rng.gamma(counts.clip(1e-9), 0.5 * phi * np.exp(z / 2))
    elif name == "quantile":  # τ = ½
        family = family.with_shape(torch.tensor([1.0, 1e-9]))
        y = z + rng.laplace(scale=2 * phi, size=len(z))
    else:  # a cut far out leaves the normal distribution
        family = family.with_shape(torch.tensor([10.0]))
        y = z + phi**0.5 * rng.normal(size=len(z))
    dispersion = family.unit_dispersion(torch.from_numpy(y), torch.from_numpy(z)[:, None])
    assert dispersion.mean().item() == pytest.approx(phi, rel=0.02)


def test_scale_of_the_gaussian_is_the_weighted_variance():
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=50), rng.integers(1, 4, size=50)
    scale = get_family("gaussian").scale(torch.from_numpy(y), torch.from_numpy(w).double())
    assert scale == pytest.approx(np.var(np.repeat(y, w)))
    assert get_family("gaussian").scale(torch.ones(5), torch.ones(5)) == 1.0  # a constant y


def test_integer_weights_are_repetitions(family):
    y, z = example(family)
    w = torch.from_numpy(np.random.default_rng(0).integers(1, 5, size=N))

    def problem(y, weights):
        offsets = torch.arange(len(y) + 1)
        empty = torch.empty(len(y), 0)
        return Samples(family, torch.zeros(len(y), 1), offsets, y, weights, empty, z.shape[1])

    repeated = torch.repeat_interleave(torch.arange(N), w)
    weighted = problem(y, w.double()).mean_loss(z)
    plain = problem(y[repeated], torch.ones(len(repeated)).double()).mean_loss(z[repeated])
    torch.testing.assert_close(weighted, plain)


def test_valid_responses_pass_and_others_are_named(family):
    y, _ = example(family)
    check_response(family, y)
    for wrong in WRONG[family.name]:
        spoiled = y.clone()
        spoiled[4] = wrong
        with pytest.raises(ValueError, match=r"y\[4\] = .* outside the range") as error:
            check_response(family, spoiled)
        assert family.response_range in str(error.value)
        assert f"{wrong:g}" in str(error.value)
        assert "choose another family" in str(error.value)


def test_an_unknown_family_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown family 'cauchy'.*gaussian.*poisson"):
        get_family("cauchy")
