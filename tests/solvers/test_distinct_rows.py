"""Whether one row of each sample differs: against the densities themselves, and simulations."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal, t

from diagatt.families import get_family
from diagatt.solvers.distinct_rows import exclusiveness, log_ratios
from diagatt.solvers.likelihood.latent_rows import RowModel
from diagatt.solvers.outlying_rows import ALIKE_SHARE, DISTINCT_SHARE, outlying_row_test
from diagatt.solvers.problem import Samples


def samples_of(X, weights=None, log_prior=None):
    n = len(X)
    values = torch.from_numpy(np.concatenate(X))
    offsets = torch.tensor([0, *np.cumsum([len(x) for x in X])])
    w = torch.ones(n).double() if weights is None else torch.as_tensor(weights).double()
    y, none = torch.from_numpy(np.random.default_rng(0).normal(size=n)), torch.zeros(n, 0).double()
    return Samples(get_family("gaussian"), values, offsets, y, w, none, log_prior=log_prior)


def drawn(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(1, 7), d)) for _ in range(n)]


A = torch.tensor([[[0.1], [0.0]], [[1.0], [-0.5]]]).double()
C = torch.tensor([[[1.0, 0.2], [0.2, 1.5]], [[2.0, -0.3], [-0.3, 1.0]]]).double()


def test_log_ratios_are_those_of_the_densities():
    rows = samples_of(drawn())
    f = [multivariate_normal(A[k, :, 0].numpy(), C[k].numpy()).logpdf(rows.values) for k in (0, 1)]
    np.testing.assert_allclose(log_ratios(rows, RowModel(A, C)), f[1] - f[0], rtol=1e-10)


def test_both_likelihoods_by_their_definitions():
    X = drawn(seed=1)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    rows = samples_of(X, 10 * weights)  # their unit says nothing
    weights = weights / weights.mean()
    psi = log_ratios(rows, RowModel(A, C))
    ratios = [
        np.exp(psi[i:j].numpy()) for i, j in zip(rows.offsets, rows.offsets[1:], strict=False)
    ]
    one = sum(w * np.log(e.mean()) for w, e in zip(weights, ratios, strict=True))

    def each(share):
        terms = [np.log(1 - share + share * e).sum() for e in ratios]
        return -float(weights @ terms)

    best = -minimize_scalar(each, bounds=(1e-9, 1 - 1e-9), options={"xatol": 1e-10}).fun
    assert exclusiveness(rows, psi) == pytest.approx(one - best, abs=1e-4)


def test_a_row_of_weight_two_counts_as_two():
    X = drawn(n=30, seed=3)
    counts = [np.random.default_rng(i).integers(1, 4, len(x)) for i, x in enumerate(X)]
    copied = samples_of([np.repeat(x, c, axis=0) for x, c in zip(X, counts, strict=True)])
    weighted = samples_of(X, log_prior=torch.from_numpy(np.log(np.concatenate(counts))))
    model = RowModel(A, C)
    found = [exclusiveness(rows, log_ratios(rows, model)) for rows in (copied, weighted)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_rows_of_heavy_tails_are_alike_and_one_shifted_row_is_not():
    """Both are better fitted with an outlying row than by one Gaussian."""
    rng = np.random.default_rng(0)
    heavy = t(3).rvs((150, 8, 3), random_state=0)
    assert outlying_row_test(samples_of(heavy), None, 0)[1] == pytest.approx(ALIKE_SHARE, abs=0.01)
    one = rng.normal(size=(150, 8, 3))
    one[np.arange(150), rng.integers(8, size=150)] += 2.5
    assert outlying_row_test(samples_of(one), None, 0)[1] == pytest.approx(DISTINCT_SHARE, abs=0.01)
