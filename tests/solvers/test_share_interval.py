"""Intervals for the share of samples with a row of interest, against closed forms."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from diagatt.families import get_family
from diagatt.solvers import Likelihood
from diagatt.solvers.base import Model, with_errors
from diagatt.solvers.problem import Samples


def samples_of(X, y):
    n, p, d = X.shape
    rows = torch.from_numpy(X.reshape(-1, d))
    beside = (torch.arange(n + 1) * p, torch.from_numpy(y.astype(float)), torch.ones(n).double())
    return Samples(get_family("gaussian"), rows, *beside, torch.zeros(n, 0).double())


def drawn(n, share, shift, seed=0):
    rng = np.random.default_rng(seed)
    X, has = rng.normal(size=(n, 4, 2)), rng.random(n) < share
    X[has, 0] += [shift, 0]
    z = np.where(has, X[:, 0] @ [0.5, -1.0], 0.0)
    y = z + 0.4 * rng.normal(size=n)
    return samples_of(X, y), has


def fit(solver, problem):
    return with_errors(solver.fit(problem, Model(), seed=0), problem, Model())


def of_known_rows(has):
    """The likelihood ratio interval of a binomial share."""
    share, n = has.mean(), len(has)

    def loss(pi):
        odds = share * np.log(share / pi) + (1 - share) * np.log((1 - share) / (1 - pi))
        return n * odds - 1.92

    return brentq(loss, 1e-6, share), brentq(loss, share, 1 - 1e-6)


def test_rows_that_cannot_be_overlooked_leave_a_binomial_share():
    problem, has = drawn(120, 0.6, shift=9.0)
    fitted = fit(Likelihood(none=True), problem)
    assert fitted.prevalence == pytest.approx(has.mean(), abs=0.02)
    np.testing.assert_allclose(fitted.prevalence_interval, of_known_rows(has), atol=0.03)


def test_rows_that_are_hard_to_see_leave_more_open():
    problem, has = drawn(250, 0.5, shift=1.5)
    low, high = fit(Likelihood(none=True), problem).prevalence_interval
    assert low < has.mean() < high
    known = of_known_rows(has)
    assert high - low > 1.1 * (known[1] - known[0])
