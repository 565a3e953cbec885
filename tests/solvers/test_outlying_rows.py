"""The test by outlying rows: distribution of T, closed forms, invariances, families."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import chi2, norm

from diagatt.families import get_family
from diagatt.solvers.existence import Existence, together
from diagatt.solvers.outlying_rows import (
    ALIKE_SHARE,
    DISTINCT_SHARE,
    _few_dimensions,
    _outlying,
    _tail,
    outlying_row_test,
)
from diagatt.solvers.problem import Samples


def shifted(family="gaussian", n=120, p=5, d=3, effect=1.0, seed=0):
    """One row of each sample is far from the others, and decides."""
    rng = np.random.default_rng(seed)
    X, place, line = rng.normal(size=(n, p, d)), rng.integers(p, size=n), np.arange(n)
    X[line, place, 0] += 5
    z, noise = effect * X[line, place, 1], rng.normal(size=n)
    y = {
        "gaussian": lambda: z + noise,
        "bernoulli": lambda: (z + rng.logistic(size=n) > 0).astype(float),
        "multinomial": lambda: np.digitize(z + rng.logistic(size=n), [-1, 1]).astype(float),
        "poisson": lambda: rng.poisson(np.exp(0.5 * z)).astype(float),
        "gamma": lambda: rng.gamma(3.0, np.exp(0.5 * z)),
    }[family]()
    return samples_of(X, y, family), place


def samples_of(X, y, family="gaussian"):
    n, p, d = X.shape
    values, offsets = torch.tensor(X.reshape(n * p, d)), torch.arange(n + 1) * p
    ones, none = torch.ones(n).double(), torch.zeros(n, 0).double()
    K = 3 if family == "multinomial" else 1
    return Samples(get_family(family), values, offsets, torch.tensor(y), ones, none, n_outputs=K)


def by_rows(samples, pooled=None):
    return outlying_row_test(samples, pooled, 0)[0]


@pytest.mark.parametrize("length", [0.0, 1.5])
@pytest.mark.parametrize(("k", "along"), [(4, 1), (2, 2), (5, 2), (1, 1)])
def test_the_tail_by_simulation(k, along, length):
    rng = np.random.default_rng(0)
    E = torch.from_numpy(np.linalg.qr(rng.normal(size=(k, along)))[0])
    m = torch.from_numpy(rng.normal(size=k))
    m = length * m / m.norm()
    drawn = m + torch.from_numpy(rng.normal(size=(100_000, k)))
    T = drawn.square().sum(dim=1) + (drawn @ E).square().sum(dim=1)
    for level in (0.5, 0.05, 0.002):
        place = T.argsort()[int((1 - level) * len(T))]
        assert _tail(drawn[place], m, E) == pytest.approx(level, rel=0.15)


def test_the_tail_in_closed_form():
    """With E of full rank T is twice a χ²."""
    moved = torch.tensor([3.0, -6.0]).double()
    found = _tail(moved, torch.zeros(2).double(), torch.eye(2).double())
    assert found == pytest.approx(chi2.sf(45.0, 2), rel=1e-6)


def test_rows_are_found_without_responses():
    samples, place = shifted()
    kappa, is_distinct = _outlying(_few_dimensions(samples), 0)
    kappa = kappa.reshape(120, 5)
    assert is_distinct > 0.99
    assert float((kappa.argmax(dim=1).numpy() == place).mean()) > 0.95


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "multinomial", "poisson", "gamma"])
def test_every_family_finds_what_is_there(family):
    samples, _ = shifted(family, effect=1.5)
    found = by_rows(samples)
    assert found.p_value < 0.01
    assert found.statistic == pytest.approx(norm.isf(found.p_value))
    assert found.n_folds == 0
    assert "from rows alone" in str(found)
    noise = replace(samples, y=samples.y[torch.randperm(120, generator=torch.manual_seed(0))])
    assert by_rows(noise).p_value > 0.05


def test_units_orders_and_weights_do_not_matter():
    samples, _ = shifted(effect=0.3)
    once = by_rows(samples).statistic
    units = torch.tensor([1e3, 1.0, 1e-3]).double()
    changed = replace(samples, values=samples.values * units + 7, y=100 * samples.y - 3)
    assert by_rows(changed).statistic == pytest.approx(once, rel=1e-6)
    order = torch.randperm(120, generator=torch.manual_seed(1))
    assert by_rows(samples.take(order)).statistic == pytest.approx(once, rel=1e-6)
    heavy = replace(samples, weights=5 * samples.weights)  # the ridge of the GLM weighs less
    assert by_rows(heavy).statistic == pytest.approx(once, rel=0.05)


def test_copies_in_a_group_count_once():
    samples, _ = shifted(effect=0.3)
    once = by_rows(samples).statistic
    twice = replace(samples.take(torch.arange(240) % 120), groups=torch.arange(240) % 120)
    assert by_rows(twice).statistic == pytest.approx(once, rel=0.1)
    assert by_rows(replace(twice, groups=None)).statistic > 1.2 * once


def test_what_is_known_is_no_row():
    """Covariates, offsets and predictions without attention explain what they explain."""
    samples, place = shifted(effect=0.0, seed=1)
    decisive = samples.values.reshape(120, 5, 3)[torch.arange(120), torch.from_numpy(place), 1]
    louder = replace(samples, y=samples.y + 3 * decisive)
    assert by_rows(louder).p_value < 1e-4
    known = replace(louder, covariates=decisive[:, None])
    assert by_rows(known).p_value > 0.05
    assert by_rows(louder, 3 * decisive[:, None]).p_value > 0.05
    assert by_rows(replace(louder, offset=3 * decisive[:, None])).p_value > 0.05


def test_rows_that_do_not_differ_and_rows_of_many_features():
    samples, _ = shifted()
    assert by_rows(replace(samples, values=torch.ones(600, 3).double())) is None
    wide = replace(samples, values=samples.values @ torch.ones(3, 200).double())
    assert 0 < by_rows(wide).p_value < 1


def test_the_share_of_the_level_depends_on_rows_only():
    samples, _ = shifted()
    share = outlying_row_test(samples, None, 0)[1]
    assert share == pytest.approx(DISTINCT_SHARE, abs=1e-3)
    other = replace(samples, y=samples.y.flip(0), weights=7 * samples.weights)
    assert outlying_row_test(other, None, 0)[1] == pytest.approx(share, abs=1e-6)
    rng = np.random.default_rng(3)
    alike = samples_of(rng.normal(size=(120, 5, 3)), rng.normal(size=120))
    assert outlying_row_test(alike, None, 0)[1] == pytest.approx(ALIKE_SHARE, abs=0.02)


def test_p_values_together():
    one = Existence(3.0, 0.001, 100, 5)
    assert together([(one, 0.5), (one, 0.5)]).p_value == pytest.approx(0.001)
    large = Existence(-1.0, 0.8, 100, 0)
    assert together([(one, 0.5), (large, 0.5)]).p_value == pytest.approx(0.002, rel=1e-4)
    assert together([(one, 0.5), (None, 0.5)]).p_value == pytest.approx(0.001)
    assert together([(large, 1.0)]).p_value == pytest.approx(0.5)  # no larger
    assert together([(Existence(40.0, 0.0, 9, 5), 1.0)]).p_value < 1e-200
