"""Conditional Gaussians of missing entries, against the joint covariance and scipy's densities."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import multivariate_normal

from diagatt import RaggedRows
from diagatt.missing import (
    Conditional,
    Patterns,
    active_rows,
    completed,
    fit_row_gaussian,
    row_gaussian,
)
from tests.closeness import assert_equal_up_to_rounding

D = 4
PATTERNS = hnp.arrays(bool, st.tuples(st.integers(1, 6), st.just(D)))


def gaussian(seed, d=D):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((d, 2 * d))
    return rng.standard_normal(d), half @ half.T / d


def conditional(missing, mean, C):
    precision = torch.from_numpy(np.linalg.inv(C))
    return Conditional(Patterns(torch.from_numpy(missing)), torch.from_numpy(mean), precision)


def log_density(x, missing, mean, C):
    o = ~missing
    return multivariate_normal(mean[o], C[np.ix_(o, o)]).logpdf(x[o]) if o.any() else 0.0


@given(PATTERNS, st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_means_and_covariances_are_those_of_the_joint_gaussian(missing, seed):
    (mean, C), rng = gaussian(seed), np.random.default_rng(seed)
    x, v = rng.standard_normal(missing.shape), rng.standard_normal(D)
    weights = rng.uniform(size=len(x))
    ours = conditional(missing, mean, C)
    hidden = torch.from_numpy(np.where(missing, np.nan, x))
    filled, total, along = x.copy(), np.zeros((D, D)), np.zeros((len(x), D))
    for i, m in enumerate(missing):
        o = ~m
        gain = C[np.ix_(m, o)] @ np.linalg.inv(C[np.ix_(o, o)])
        filled[i, m] = mean[m] + gain @ (x[i, o] - mean[o])
        left = np.zeros((D, D))
        left[np.ix_(m, m)] = C[np.ix_(m, m)] - gain @ C[np.ix_(o, m)]
        total += weights[i] * left
        along[i] = left @ v
    close = {"rtol": 0, "atol": 1e-8}  # the inverse of a drawn covariance costs digits
    np.testing.assert_allclose(ours.means(hidden), filled, **close)
    patterns = ours.patterns
    by_pattern = patterns.summed(torch.from_numpy(weights))
    np.testing.assert_allclose(ours.total(by_pattern), total, **close)
    np.testing.assert_allclose(ours.times(torch.from_numpy(v))[patterns.of_row], along, **close)


@given(PATTERNS, st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_shifted_scores_are_log_ratios_of_observed_entries(missing, seed):
    x = np.random.default_rng(seed).standard_normal(missing.shape)
    both = gaussian(seed), gaussian(seed + 1000)
    background, active = (conditional(missing, *own) for own in both)
    rows, _, shift = active_rows(torch.from_numpy(x), background, active)
    nothing = np.zeros(D, dtype=bool)
    for i, m in enumerate(missing):
        at_row = [log_density(rows[i].numpy(), nothing, *own) for own in both]
        wanted = [log_density(x[i], m, *own) for own in both]
        ours = at_row[1] - at_row[0] + float(shift[i])
        scale = max(1.0, *np.abs(at_row))  # terms that cancel
        assert abs(ours - (wanted[1] - wanted[0])) < 1e-7 * scale


@pytest.mark.parametrize("constant", [False, True])
def test_rows_without_missing_entries_need_no_em(constant, monkeypatch):
    x = np.random.default_rng(0).normal(size=(40, 3)) @ np.triu(np.ones((3, 3)))
    x[:, 1] = 2.0 if constant else x[:, 1]
    variance = torch.from_numpy(np.where(x.var(axis=0) > 0, x.var(axis=0), 1.0))
    start = row_gaussian.RowGaussian(torch.from_numpy(x.mean(axis=0)), torch.diag(variance))
    blocks = [torch.from_numpy(x)]
    step = row_gaussian._step(start, blocks, [Patterns(blocks[0].isnan())])
    monkeypatch.setattr(row_gaussian, "_step", None)  # it must not be called
    found = fit_row_gaussian(x)
    assert_equal_up_to_rounding(found.mean.numpy(), x.mean(axis=0), operations=100)
    seen = [0, 2] if constant else [0, 1, 2]
    own = found.covariance.numpy()[np.ix_(seen, seen)]
    wanted = step.covariance.numpy()[np.ix_(seen, seen)]
    assert_equal_up_to_rounding(own, wanted, operations=1000)
    assert np.linalg.eigvalsh(found.covariance.numpy()).min() > 0


def test_the_row_gaussian_of_complete_rows_has_their_moments():
    x = np.random.default_rng(0).standard_normal((50, 3)) @ [[1, 1, 0], [0, 1, 0], [0, 0, 2.0]]
    found = fit_row_gaussian(x)
    assert_equal_up_to_rounding(found.mean, x.mean(axis=0))
    C = np.cov(x.T, bias=True)  # with three rows that have no correlation
    assert_equal_up_to_rounding(found.covariance, (50 * C + 3 * np.diag(np.diag(C))) / 53)


def test_the_row_gaussian_maximizes_the_likelihood_of_observed_entries():
    rng = np.random.default_rng(1)
    mean, C = gaussian(5, 3)
    x = rng.multivariate_normal(mean, C, size=400)
    missing = rng.random(x.shape) < 0.25
    found = fit_row_gaussian(np.where(missing, np.nan, x))
    ours = found.mean.numpy(), found.covariance.numpy()

    def objective(m, S):  # with the three rows of the prior
        rows = sum(log_density(*row, m, S) for row in zip(x, missing, strict=True))
        K = np.linalg.inv(S)
        prior = -0.5 * 3 * (np.linalg.slogdet(S)[1] + (np.diag(K) * np.diag(ours[1])).sum())
        return rows + prior

    best = objective(*ours)
    for k in range(3):
        for change in (0.02, -0.02):
            assert objective(ours[0] + change * np.eye(3)[k], ours[1]) < best
            moved = ours[1].copy()
            moved[k, k] += change
            assert objective(ours[0], moved) < best


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_completed_rows_keep_their_type_names_and_weights(dtype):
    values = np.array([[1, np.nan], [3, 4], [np.nan, np.nan]], dtype=dtype)
    ids = (["a", "b"], ["s", "t"], ["u", "v", "w"])
    rows = RaggedRows(values, [0, 2, 3], *ids, row_weight=[1, 2, 1])
    (m0, C0), (m1, C1) = gaussian(0, 2), gaussian(1, 2)
    found = completed(rows, np.stack([m0, m1]), np.stack([C0, C1]))
    assert found.dtype == dtype
    assert found.feature_names == ("a", "b")
    assert list(found.row_ids) == ["u", "v", "w"]
    assert np.array_equal(found.missing, np.isnan(values))
    assert found.log_prior[1] == pytest.approx(np.log(2))  # a complete row is not shifted
    np.testing.assert_allclose(found.values[2], m1, rtol=1e-6)
    assert completed(rows, m0[None], C0[None]).log_prior[1] == pytest.approx(np.log(2))
