"""Whether all samples have a row of interest after all."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from diagatt.families import get_family
from diagatt.solvers import Likelihood, Model
from diagatt.solvers.base import with_errors
from diagatt.solvers.problem import Samples
from tests.solvers.none import some_without
from tests.solvers.samples import problem_of


def two_classes(share, seed=3):
    X, y, _ = some_without(200, share, seed=seed)
    return problem_of(X, (y > 0.5).astype(float), "bernoulli")


def test_all_have_a_row_where_the_likelihood_does_not_object():
    """π = 1 is the model without "none", and costs less than 1 of the log-likelihood."""
    problem = two_classes(1.0)
    fitted = Likelihood(none=True).fit(problem, Model(), seed=0)
    plain = Likelihood().fit(problem, Model(), seed=0)
    assert fitted.prevalence == pytest.approx(1.0, abs=1e-5)
    assert fitted.log_likelihood > plain.log_likelihood - 1.0
    given = (problem.values, problem.offsets)
    found, expected = (f.module.attention(*given).detach() for f in (fitted, plain))
    assert np.corrcoef(found[:, 0], expected[:, 0])[0, 1] > 0.98  # EM stopped at another tolerance


def test_some_have_none_where_it_does():
    problem = two_classes(0.4)
    fitted = Likelihood(none=True).fit(problem, Model(), seed=0)
    without = Likelihood(tolerance=1e-6).fit(problem, Model(), seed=0)
    assert fitted.prevalence < 0.9
    assert fitted.log_likelihood > without.log_likelihood + 1.0


def test_a_warm_start_leaves_the_share_of_one():
    first = Likelihood(none=True).fit(two_classes(1.0), Model(), seed=0)
    X, y, place = some_without(300, 0.5, seed=5)
    problem = problem_of(X, y)
    second = Likelihood(none=True, max_iterations=300).fit(problem, Model(), seed=0, start=first)
    assert second.prevalence == pytest.approx(np.mean(place >= 0), abs=0.06)


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
