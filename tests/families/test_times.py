"""Families of times to an event: derivatives, likelihoods of scipy, risk sets by brute force."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch.autograd.functional import hessian, jacobian

from diagatt.families import Cox, get_family
from diagatt.families.risk_sets import RiskSets

LAWS = {
    "weibull": lambda z, sigma: stats.weibull_min(1 / sigma, scale=np.exp(z)),
    "lognormal": lambda z, sigma: stats.lognorm(sigma, scale=np.exp(z)),
    "loglogistic": lambda z, sigma: stats.fisk(1 / sigma, scale=np.exp(z)),
}
SIGMA = 0.7
# Entry, lower, upper: exact, right-censored, between two times, before a time, after an entry.
Y = np.array(
    [
        [0, 1.5, 1.5],
        [0, 0.2, 0.2],
        [0, 2.0, np.inf],
        [0, 1.0, 3.0],
        [0, 0.0, 0.8],
        [0.5, 1.5, 1.5],
        [0.5, 2.0, np.inf],
    ]
)


@pytest.fixture(params=sorted(LAWS))
def family(request):
    return get_family(request.param).with_shape(torch.tensor([SIGMA], dtype=torch.float64))


def example():
    rng = np.random.default_rng(0)
    return torch.from_numpy(Y), torch.from_numpy(rng.normal(size=(len(Y), 1)))


def test_gradient_and_curvature_are_derivatives_of_the_loss(family):
    y, z = example()
    gradient, curvature = family.gradient(y, z), family.curvature(y, z)
    for i in range(len(y)):

        def loss(zi, i=i):
            return family.loss(y[i : i + 1], zi[None])[0]

        torch.testing.assert_close(gradient[i], jacobian(loss, z[i]))
        torch.testing.assert_close(curvature[i], hessian(loss, z[i]))


def test_gradient_equals_a_difference_quotient(family):
    y, z = example()
    quotient = (family.loss(y, z + 1e-6) - family.loss(y, z - 1e-6)) / 2e-6
    torch.testing.assert_close(family.gradient(y, z)[:, 0], quotient, rtol=1e-6, atol=1e-8)


def test_the_density_is_that_of_scipy(family):
    y, z = example()
    expected = []
    for (entry, lower, upper), location in zip(Y, z[:, 0].numpy(), strict=True):
        law = LAWS[family.name](location, SIGMA)
        if lower == upper:
            value = law.logpdf(lower)
        else:
            value = np.log(law.sf(lower) - (0 if np.isinf(upper) else law.sf(upper)))
        expected.append(value - (law.logsf(entry) if entry else 0.0))
    np.testing.assert_allclose(family.log_density(y, z), expected, rtol=1e-10)


def test_survival_is_that_of_scipy(family):
    times, z = torch.tensor([0.1, 1.0, 4.0]), torch.tensor([[0.3], [-0.5]])
    ours = family.log_survival(times[None], z)
    for i, location in enumerate(z[:, 0].tolist()):
        np.testing.assert_allclose(ours[i], LAWS[family.name](location, SIGMA).logsf(times), 1e-6)


def test_deviances_are_not_negative_and_reached(family):
    y, _ = example()
    y = y[:5]  # without entries
    grid = torch.linspace(-6, 6, 4001, dtype=torch.float64)
    losses = family.loss(y.repeat(len(grid), 1), grid.repeat_interleave(5)[:, None])
    best = losses.reshape(len(grid), 5).amin(dim=0)
    gap = best - family.saturated_loss(y)
    assert (gap >= -1e-12).all()
    assert (gap < 1e-2).all()


def test_extreme_predictors_stay_finite(family):
    for dtype in (torch.float32, torch.float64):
        y = torch.from_numpy(Y).to(dtype)
        for z in (-30.0, 30.0):
            given = torch.full((len(y), 1), z, dtype=dtype)
            for quantity in (family.loss, family.gradient, family.curvature):
                result = quantity(y, given)
                assert result.dtype == dtype
                assert torch.isfinite(result).all(), (quantity.__name__, z)


def test_valid_times(family):
    assert family.is_valid(torch.from_numpy(Y)).all()
    wrong = torch.tensor([[0, -1, -1], [2, 1, 1], [0, 2, 1], [0, np.nan, 1], [1, 1, 1.0]])
    assert not family.is_valid(wrong).any()
    assert not Cox().is_valid(torch.tensor([[0, 1.0, 2.0]])).any()


# ---------------------------------------------------------------------- Cox


def cohort(n=40, entries=False):
    rng = np.random.default_rng(1)
    stop = rng.integers(3, 12, n) / 2.0  # many ties
    entry = rng.integers(0, 3, n) / 2.0 if entries else np.zeros(n)
    event, weights = rng.random(n) < 0.6, rng.integers(1, 4, n).astype(float)
    arrays = (entry, stop, event, weights, rng.normal(size=n))
    return tuple(map(torch.from_numpy, arrays))


def by_definition(entry, stop, event, weights, z, ties):
    """Sum over event times, over the samples at risk and over ties, one by one."""
    total = 0.0
    for t in torch.unique(stop[event]):
        at_risk, ending = (entry < t) & (stop >= t), event & (stop == t)
        mass = weights * torch.exp(z)
        m = int(ending.sum())
        total -= (weights * z)[ending].sum()
        for k in range(m):
            share = k / m if ties == "efron" else 0.0
            charge = weights[ending].mean() if ties == "efron" else weights[ending][k]
            total += charge * torch.log(mass[at_risk].sum() - share * mass[ending].sum())
    return total


@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_the_partial_likelihood_is_its_definition(ties, entries):
    *who, z = cohort(entries=entries)
    risk = RiskSets(*who, ties)
    torch.testing.assert_close(risk.loss(z), by_definition(*who, z, ties))
    expected = jacobian(lambda z: by_definition(*who, z, ties), z)
    torch.testing.assert_close(risk.gradient(z), expected)
    features = torch.stack([z, z.square(), torch.ones_like(z)], dim=1)
    beta = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64)
    expected = hessian(lambda b: by_definition(*who, features @ b, ties), beta)
    torch.testing.assert_close(risk.hessian(features @ beta, features), expected)


def test_huge_predictors_do_not_overflow():
    *who, z = cohort()
    risk = RiskSets(*who)
    torch.testing.assert_close(risk.gradient(z + 5000), risk.gradient(z))
    assert torch.isfinite(risk.loss(200 * z))


def test_integer_weights_are_repetitions_under_breslow_ties():
    entry, stop, event, weights, z = cohort()
    each = torch.repeat_interleave(torch.arange(len(z)), weights.long())
    twice = RiskSets(entry[each], stop[each], event[each], torch.ones(len(each)), "breslow")
    once = RiskSets(entry, stop, event, weights, "breslow")
    torch.testing.assert_close(once.loss(z), twice.loss(z[each]))


def test_the_likelihood_given_breslow_s_baseline_has_the_partial_likelihood_s_gradient():
    entry, stop, event, weights, z = cohort(entries=True)
    y = torch.stack([entry, stop, torch.where(event, stop, torch.inf)], dim=1)
    family = Cox("breslow").refined(y, z[:, None], weights)
    pointwise = weights * family.gradient(y, z[:, None])[:, 0]
    coupled = family.couple(y, weights).gradient(z)
    torch.testing.assert_close(pointwise, coupled)
    curvature = hessian(lambda s: (weights * family.loss(y, s[:, None])).sum(), z)
    torch.testing.assert_close(
        (weights * family.curvature(y, z[:, None])[:, 0, 0]).diag(), curvature
    )


@pytest.mark.parametrize("entries", [False, True])
def test_score_residuals_are_derivatives_in_the_weights(entries):
    """Lin and Wei's residual of a sample is what a change of its weight does to the slope."""
    entry, stop, event, weights, z = cohort(entries=entries)
    features = torch.stack([z, z.square()], dim=1)

    def slope(w):
        return features.T @ RiskSets(entry, stop, event, w, "breslow").gradient(z)

    found = RiskSets(entry, stop, event, weights, "breslow").scores(z, features)
    h = 1e-6
    for i in range(len(z)):
        step = torch.zeros_like(weights)
        step[i] = h
        quotient = (slope(weights + step) - slope(weights - step)) / (2 * h)
        torch.testing.assert_close(found[i], weights[i] * quotient, rtol=1e-6, atol=1e-8)
    for ties in ("efron", "breslow"):
        risk = RiskSets(entry, stop, event, weights, ties)
        total = features.T @ risk.gradient(z)
        torch.testing.assert_close(risk.scores(z, features).sum(dim=0), total)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_losses_far_from_the_times_have_the_derivatives_they_claim(name):
    family = get_family(name).with_shape(torch.tensor([0.2], dtype=torch.float64))
    y = torch.tensor([[0.0, 1e9, 1e9], [0.0, 1e9, np.inf]], dtype=torch.float64)
    z = torch.zeros(2, 1, dtype=torch.float64)  # u = 104: e to this power is no use
    quotient = (family.loss(y, z + 1e-4) - family.loss(y, z - 1e-4)) / 2e-4
    torch.testing.assert_close(family.gradient(y, z)[:, 0], quotient, rtol=1e-6, atol=0)
    slopes = [family.gradient(y, z + side)[:, 0] for side in (1e-4, -1e-4)]
    curvature = (slopes[0] - slopes[1]) / 2e-4
    torch.testing.assert_close(family.curvature(y, z)[:, 0, 0], curvature, rtol=1e-6, atol=1e-9)
