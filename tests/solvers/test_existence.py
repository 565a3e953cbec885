"""The test of any row of interest: closed form, invariances, power and what must not matter."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from diagatt import DiagAttClassifier, DiagAttRegressor, NoRowOfInterestWarning
from diagatt.families import get_family
from diagatt.solvers import Auto, Likelihood, Uniform
from diagatt.solvers.existence import existence_test
from diagatt.solvers.problem import Samples


def samples_of(n=60, p=3, d=2, seed=0, **changes):
    rng = np.random.default_rng(seed)
    values = torch.tensor(rng.normal(size=(n * p, d)))
    y, w = torch.tensor(rng.normal(size=n)), torch.tensor(rng.uniform(0.5, 2, n))
    offsets, none = torch.arange(n + 1) * p, torch.zeros(n, 0).double()
    return replace(Samples(get_family("gaussian"), values, offsets, y, w, none), **changes)


FOLDS = torch.arange(60) % 3


def test_the_statistic_by_least_squares():
    """One fold, where within-fold and overall regressions are the same."""
    samples = samples_of(weights=torch.ones(60).double())
    eta = torch.tensor(np.random.default_rng(1).normal(size=(60, 1)))
    found = existence_test(samples, torch.zeros(60).long(), eta)
    mean = samples.values.reshape(60, 3, 2).mean(dim=1).numpy()
    F = np.c_[np.ones(60), (mean - mean.mean(axis=0)) / mean.std(axis=0)]

    def rest(target, ridge):
        penalty = ridge * np.diag([0.0, 1.0, 1.0])
        return target - F @ np.linalg.solve(F.T @ F + penalty, F.T @ target)

    left = rest(eta[:, 0].numpy(), 0.0)
    products = left * rest(samples.y.numpy(), 1.0)
    expected = products.sum() / np.sqrt(2 * (products**2).sum())
    assert found.statistic == pytest.approx(expected, rel=1e-8)
    assert found.p_value == pytest.approx(norm.sf(expected))


def test_scales_of_folds_units_of_y_and_what_mean_rows_say_do_not_matter():
    samples = samples_of()
    eta = torch.tensor(np.random.default_rng(1).normal(size=(60, 1)))
    once = existence_test(samples, FOLDS, eta).statistic
    mean = samples.values.reshape(60, 3, 2).mean(dim=1)
    other = (
        eta * (1.0 + FOLDS[:, None])
        + mean @ torch.tensor([[5.0], [-3.0]]).double()
        + FOLDS[:, None]
    )
    assert existence_test(samples, FOLDS, other).statistic == pytest.approx(once, rel=1e-9)
    in_units = replace(samples, y=1000 * samples.y + 7)
    assert existence_test(in_units, FOLDS, eta).statistic == pytest.approx(once, rel=1e-9)


def test_what_mean_rows_explain_is_no_row_of_interest():
    samples = samples_of()
    eta = samples.values.reshape(60, 3, 2).mean(dim=1)[:, :1]
    assert existence_test(samples, FOLDS, eta).statistic == 0.0
    pooled = torch.tensor(np.random.default_rng(1).normal(size=(60, 1)))
    assert existence_test(samples, FOLDS, 2 * pooled, pooled).statistic == 0.0


def test_copies_in_a_group_count_once():
    samples, eta = samples_of(), torch.tensor(np.random.default_rng(1).normal(size=(60, 1)))
    twice = samples.take(torch.arange(120) % 60)
    twice = replace(twice, groups=torch.arange(120) % 60)
    once = existence_test(samples, FOLDS, eta).statistic
    copied = existence_test(twice, FOLDS.repeat(2), eta.repeat(2, 1)).statistic
    assert copied == pytest.approx(once, rel=0.02)  # the ridge of the GLM weighs half as much


@pytest.mark.parametrize("n_groups", [4, 8])
def test_few_groups_do_not_hide_a_row_and_their_effects_are_none(n_groups):
    """Products of predictors that follow the group and responses that do, too: 300 draws."""
    rng, n = np.random.default_rng(2), 120
    group, found = torch.arange(n) % n_groups, {"effects": [], "row": []}
    folds = group % 4
    for seed in range(300):
        samples = samples_of(n, seed=seed, groups=group)
        site = torch.tensor(rng.normal(size=(2, n_groups)))
        eta = torch.tensor(rng.normal(size=n))
        y = {"effects": samples.y + 3 * site[0][group], "row": samples.y + eta}
        for name, predictor in (("effects", eta + 3 * site[1][group]), ("row", eta)):
            test = existence_test(replace(samples, y=y[name]), folds, predictor[:, None])
            found[name].append(test.p_value < 0.05)
    assert np.mean(found["effects"]) < 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5
    assert np.mean(found["row"]) > 0.95


def shifted(family, n=160, seed=0, effect=2.0):
    rng = np.random.default_rng(seed)
    X, place = rng.normal(size=(n, 5, 3)), rng.integers(5, size=n)
    line = np.arange(n)
    X[line, place, 0] += 4
    z = effect * X[line, place, 1]
    y = {
        "gaussian": lambda: z + rng.normal(size=n),
        "bernoulli": lambda: (z + rng.logistic(size=n) > 0).astype(int),
        "multinomial": lambda: np.digitize(z + rng.logistic(size=n), [-1, 1]),
        "poisson": lambda: rng.poisson(np.exp(0.5 * z)),
        "gamma": lambda: rng.gamma(3.0, np.exp(0.5 * z)) + 1e-3,
    }[family]()
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "multinomial", "poisson", "gamma"])
def test_every_family_finds_what_is_there(family):
    X, y = shifted(family)
    classifies = get_family(family).classifies
    kind = DiagAttClassifier if classifies else DiagAttRegressor
    model = kind(solver=Likelihood(), family="auto" if classifies else family)
    found = model.set_params(random_state=0).existence_test(X, y)
    assert found.is_found
    assert found.n_folds in (0, 5)  # 0: the test from rows alone is the most convincing
    noise = np.random.default_rng(1).permutation(y)
    assert not model.existence_test(X, noise).is_found


def test_covariates_weights_and_groups_are_taken():
    X, y = shifted("gaussian", effect=0.0)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(160, 1))
    model = DiagAttRegressor(solver=Likelihood(), random_state=0)
    found = model.existence_test(
        X, y + 10 * Z[:, 0], covariates=Z, sample_weight=rng.uniform(1, 2, 160),
        groups=np.arange(160) // 2,
    )  # fmt: skip
    assert not found.is_found
    with pytest.raises(ValueError, match="one row"):
        model.existence_test(X[:, :1], y)


@pytest.mark.slow
def test_the_contest_says_the_same_in_fit_summary_and_alone():
    X, y = shifted("gaussian", n=100)
    contest = Auto([Uniform(), Likelihood()])
    model = DiagAttRegressor(solver=contest, random_state=0).fit(X, y)
    alone = model.existence_test(X, y)
    assert model.existence_["statistic"] == pytest.approx(alone.statistic)
    assert model.has_row_of_interest_ is alone.is_found is True
    with pytest.warns(NoRowOfInterestWarning):
        model.fit(X, np.random.default_rng(0).normal(size=100))
    assert model.existence_["p_value"] > 0.05


def two_rows(n, seed, second=1.5):
    rng = np.random.default_rng(seed)
    X, line = rng.normal(size=(n, 5, 3)), np.arange(n)
    places = np.stack([rng.permutation(5)[:2] for _ in range(n)])
    X[line, places[:, 0], 0] += 5
    X[line, places[:, 1], 0] -= 5
    y = 1.5 * X[line, places[:, 0], 1] + second * X[line, places[:, 1], 2]
    return X, y + 0.5 * rng.normal(size=n)


@pytest.mark.slow
def test_a_second_head_is_found_only_where_there_is_one():
    solver = Likelihood("tied", max_iterations=10, tolerance=1e-2)
    model = DiagAttRegressor(solver=solver, random_state=0)
    X, y = two_rows(120, 0)
    assert model.existence_test(X, y, n_heads=2).is_found
    X, y = two_rows(120, 1, second=0.0)
    chosen = DiagAttRegressor([1, 2], solver=solver, selection="test", random_state=0)
    assert chosen.fit(X, y).n_heads_ == 1
    with pytest.raises(ValueError, match="follow each other"):
        chosen.set_params(n_heads=[1, 3]).fit(X, y)
    with pytest.raises(ValueError, match="n_heads must be"):
        model.existence_test(X, y, n_heads=0)
