"""Whether all samples have a row of interest after all."""

import numpy as np
import pytest

from diagatt.solvers import Likelihood, Model
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
