"""Many fits at once: against the module's own losses, finite differences and single fits."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt.scores import get_score_form
from diagatt.solvers.auto import many, shared_rows
from diagatt.solvers.auto.many import LEAST_RIDGE, ManyFits, Penalties
from diagatt.solvers.auto.shared_rows import SharedRows
from diagatt.solvers.problem import Samples
from tests.solvers.auto.samples import problem, repeated

FAMILIES = ["gaussian", "bernoulli", "multinomial", "poisson"]
every_family = pytest.mark.parametrize("family", FAMILIES)
MIXED = ["pooled", "mixture", "pooled", "mixture"]
QUADRATIC = [Penalties(*p) for p in [(1, 0.5, 1), (10, 5, 0.1), (3, 50, 2), (0.3, 0.2, 10)]]
LINEAR = [p._replace(quadratic=math.inf) for p in QUADRATIC]
HEADS = {"two heads": 2, "three linear heads": 3}
KINDS = {
    "mixed quadratic": (MIXED, QUADRATIC),
    "mixed linear": (MIXED, LINEAR),
    "pooled": (["pooled"] * 4, QUADRATIC),
    "mixture": (["mixture"] * 4, QUADRATIC),
    "uniform": (["uniform"] * 4, LINEAR),
    "two heads": (["pooled"] * 4, QUADRATIC),
    "three linear heads": (["pooled"] * 4, LINEAR),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
N_FREE = 1


def weights_of(n, M, seed=0):
    """Folds: some samples are held out, others count twice."""
    return torch.from_numpy(np.random.default_rng(seed).choice([0.0, 1.0, 1.0, 2.0], size=(n, M)))


def fits_of(family, kind, n=12, q=2, samples=None, weights=None):
    readouts, penalties = KINDS[kind]
    given: Samples = problem(family, n, q=q) if samples is None else samples
    own = weights_of(given.n_samples, len(readouts)) if weights is None else weights
    free, how = min(N_FREE, given.n_covariates), {"coupling": "independent"}
    how |= {"n_heads": HEADS[kind]} if kind in HEADS else {}
    return ManyFits(SharedRows(given), penalties, own, readouts, free, **how)


def drawn(fits, seed=1, scale=0.5):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(fits._ridges.shape, generator=generator, dtype=torch.float64)


def everything(fits):
    return torch.arange(len(fits.penalties))


def by_hand(fits, theta):
    """The penalized losses of the fits, from the modules that they become."""
    s, totals = fits.samples, []
    given = (s.values, s.offsets, s.covariates)
    for m, (module, phi) in enumerate(fits.fitted(theta)):
        assert module.score_form is get_score_form("affine")
        w, (quadratic, linear, value) = fits.weights[:, m], fits.penalties[m]
        if module.readout == "mixture":
            losses = s.family.log_normalizer(s.y, 1.0) - module.log_density(s.y, *given, phi or 1.0)
        else:
            losses = s.family.loss(s.y, module(*given))
        ridge = module.penalty(value, 0.0 if math.isinf(quadratic) else quadratic, linear)
        free = module.intercept.square().sum() + module.covariate[:N_FREE].square().sum()
        bound = module.covariate[N_FREE:].square().sum()
        totals.append((w * losses).sum() + ridge + 0.5 * (LEAST_RIDGE * free + value * bound))
    return torch.stack(totals).detach()


@every_family
@every_kind
def test_the_objective_is_the_penalized_loss_of_the_modules(family, kind):
    fits = fits_of(family, kind)
    theta = drawn(fits)
    if kind == "uniform":
        assert fits.n_score_parameters == 0
    found, _ = fits._objective(theta, everything(fits))
    np.testing.assert_allclose(found, by_hand(fits, theta), rtol=1e-9)


@every_family
@every_kind
def test_slopes_agree_with_finite_differences(family, kind):
    fits = fits_of(family, kind)
    theta, which, step = drawn(fits), everything(fits), 1e-6
    _, slope = fits._objective(theta, which)
    for p in range(theta.shape[1]):
        ahead, behind = theta.clone(), theta.clone()
        ahead[:, p] += step
        behind[:, p] -= step
        rise = fits._objective(ahead, which)[0] - fits._objective(behind, which)[0]
        expected = rise / (2 * step)
        np.testing.assert_allclose(slope[:, p], expected, rtol=1e-5, atol=1e-6)


def test_a_dispersion_at_its_floor_only_rises():
    """Below the floor the objective is flat, and no slope leads further down."""
    fits = fits_of("gaussian", "mixture")
    theta = drawn(fits)
    theta[:, -1] = math.log(many.LEAST_DISPERSION) - 1
    value, slope = fits._objective(theta, everything(fits))
    lower = theta.clone()
    lower[:, -1] -= 3
    torch.testing.assert_close(fits._objective(lower, everything(fits))[0], value)
    assert bool((slope[:, -1] <= 0).all())
    assert [phi for _, phi in fits.fitted(theta)] == [many.LEAST_DISPERSION] * 4


@every_kind
def test_some_of_the_problems_alone(kind):
    fits = fits_of("bernoulli", kind)
    theta, which = drawn(fits), torch.tensor([3, 0])
    every = fits._objective(theta, everything(fits))
    some = fits._objective(theta[which], which)
    for a, b in zip(some, every, strict=True):
        torch.testing.assert_close(a, b[which])


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("kind", ["mixed quadratic", "mixed linear", "uniform"])
def test_fits_do_not_feel_each_other(family, kind):
    """Every fit ends where it ends alone, up to the rounding of sums that its path amplifies."""
    fits = fits_of(family, kind, q=0)
    together = fits.fit()
    for m in range(4):
        alone = ManyFits(
            fits.shared, [fits.penalties[m]], fits.weights[:, m : m + 1], [fits.readouts[m]]
        ).fit()
        np.testing.assert_allclose(together[m], alone[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["mixed quadratic", "uniform"])
def test_a_sample_of_weight_2_is_two_samples(kind):
    samples = problem("bernoulli", 14)
    counts = [1, 2] * 7
    once = torch.tensor(counts, dtype=torch.float64)[:, None].expand(-1, 4)
    ours = fits_of("bernoulli", kind, samples=samples, weights=once).fit()
    copies = repeated(samples, counts)
    ones = torch.ones(copies.n_samples, 4, dtype=torch.float64)
    theirs = fits_of("bernoulli", kind, samples=copies, weights=ones).fit()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_samples_of_weight_0_do_not_matter():
    samples = problem("gaussian", 16)
    w = torch.ones(16, 4, dtype=torch.float64)
    w[10:] = 0.0
    ours = fits_of("gaussian", "mixed quadratic", samples=samples, weights=w).fit()
    part = samples.take(torch.arange(10))
    theirs = fits_of("gaussian", "mixed quadratic", samples=part, weights=w[:10]).fit()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@every_family
@every_kind
def test_fits_end_where_slopes_are_small(family, kind, monkeypatch):
    monkeypatch.setattr(many, "MOST_STEPS", 300)
    monkeypatch.setattr(many, "TOLERANCE", 1e-10)
    fits = fits_of(family, kind)
    theta, which = fits.fit(), everything(fits)
    if fits._has_dispersion:  # pooled fits do not use theirs, and a floor is no stationary point
        theta[:, -1].clamp_(min=math.log(many.LEAST_DISPERSION))
    value, slope = fits._objective(theta, which)
    if fits._has_dispersion:
        slope = slope[:, :-1]
    assert bool((slope.abs().amax(dim=1) < 2e-3 * value.abs().clamp(min=1)).all())
    nothing = torch.zeros_like(theta)
    assert bool((value < fits._objective(nothing, which)[0]).all())


def test_scores_are_the_quadratic_form():
    samples = problem("gaussian", n=4, d=3)
    x, shared = samples.values, many.SharedRows(samples)
    theta = torch.randn(many.score_width(3), generator=torch.Generator().manual_seed(1)).double()
    W, u = many.symmetric_matrix(theta[:6], 3), theta[6:]
    expected = torch.einsum("na,ab,nb->n", x, W, x) / 3**0.5 + x @ u
    scores, effects = shared.forms(theta[:, None], torch.eye(3).double())
    torch.testing.assert_close(scores[:, 0], expected)
    torch.testing.assert_close(effects, x)
    torch.testing.assert_close(W.norm(), theta[:6].norm())


@pytest.mark.parametrize("d", [3, 9])
def test_both_ways_to_compute_quadratic_scores_agree(d, monkeypatch):
    shared = many.SharedRows(problem("gaussian", n=6, d=d))
    draw = torch.Generator().manual_seed(2)
    N, Q, M = len(shared.samples.values), many.score_width(d), 2
    theta, value = (torch.randn(size, 2, generator=draw).double() for size in (Q, d))
    slopes = torch.randn(N, 4, generator=draw).double().split([M, 2], dim=1)
    found = []
    for most in (0, 10**9):
        monkeypatch.setattr(shared_rows, "MOST_MONOMIALS", most)
        monkeypatch.setattr(shared_rows, "MONOMIALS_PAY", d)
        found.append([*shared.forms(theta, value), *shared.slopes(*slopes, True)])
    torch.testing.assert_close(found[0], found[1])


def test_further_heads_start_where_fewer_ended_and_lower_the_loss():
    """Zeros for a further head change nothing; fitting it lowers the penalized loss."""
    fits = fits_of("gaussian", "two heads", n=40)
    fewer = replace(fits, n_heads=1)
    theta = fewer.fit()
    before = fewer._objective(theta, everything(fits))[0]
    start = fits._with_another_head(theta, fewer)
    torch.testing.assert_close(fits._objective(start, everything(fits))[0], before)
    after = fits._objective(fits.fit(), everything(fits))[0]
    assert bool((after <= before + 1e-9).all())
    assert bool((after < before - 1e-3).any())


@pytest.mark.parametrize("pays", [0, many.MOST_STEPS])
@pytest.mark.parametrize("kind", ["mixed quadratic", "mixed linear", "two heads"])
def test_samples_that_do_not_count_are_left_out(kind, pays, monkeypatch):
    """Folds that are held out, and a sample that no fit counts, do not change the fits."""
    monkeypatch.setattr(shared_rows, "MONOMIALS_PAY", pays)
    weights = torch.ones(40, 4, dtype=torch.float64)
    weights[:10, :2] = weights[10:20, 2:] = weights[39] = 0.0
    fits = fits_of("bernoulli", kind, 40, weights=weights)
    found = fits.fit()
    parts = fits._by_counted_samples()
    assert len(parts) == (2 if pays == 0 and kind != "mixed linear" else 1)
    monkeypatch.setattr(ManyFits, "_by_counted_samples", lambda fits: None)
    np.testing.assert_allclose(found, fits.fit(), atol=1e-3)
    theta = drawn(fits)
    for which, part in parts:
        value, slope = part._objective(theta[which], everything(part))
        whole, its_slope = fits._objective(theta[which], which)
        np.testing.assert_allclose(value, whole, rtol=1e-12)
        np.testing.assert_allclose(slope, its_slope, atol=1e-10)
