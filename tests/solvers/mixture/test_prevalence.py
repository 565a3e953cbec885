"""The share of samples with a row of interest, without what the penalty of scores does to it."""

import numpy as np
import pytest
import torch

from diagatt.segments import segment_sum
from diagatt.solvers import Mixture, Model
from diagatt.solvers.mixture.objective import MixtureModule
from diagatt.solvers.mixture.prevalence import free_prevalence
from tests.solvers.none import some_without
from tests.solvers.samples import problem_of


@pytest.fixture(scope="module")
def drawn():
    X, y, place = some_without(300, 0.5, seed=2)
    return problem_of(X, y), float(np.mean(place >= 0))


def share_of(fitted, problem):
    """Mean probability of the fit itself that a sample has a row."""
    with torch.no_grad():
        kappa = fitted.module.attention(problem.values, problem.offsets)
        return float(segment_sum(kappa, problem.offsets).mean())


def test_without_a_penalty_it_is_that_of_the_fit(drawn):
    """All slopes are 0 already, that of the size of scores included."""
    problem, _ = drawn
    solver = Mixture(none=True, n_starts=1, score_ridge=0.0, linear_ridge=0.0, tolerance=1e-8)
    fitted = solver.fit(problem, Model(), seed=0)
    assert fitted.prevalence == pytest.approx(share_of(fitted, problem), abs=1e-3)


def test_a_strong_penalty_does_not_move_it_far(drawn):
    problem, share = drawn
    fitted = Mixture(none=True, n_starts=1, score_ridge=300.0, linear_ridge=100.0).fit(
        problem, Model(), seed=0
    )
    off = abs(share_of(fitted, problem) - share)  # of the fit itself
    assert off > 0.05
    assert abs(fitted.prevalence - share) < off / 2


def test_the_size_of_scores_does_not_matter(drawn):
    problem, _ = drawn
    solver = Mixture(none=True, n_starts=1)
    fitted = solver.fit(problem, Model(), seed=0)
    shares = []
    for size in (1.0, 0.5):
        module = MixtureModule(fitted.module, 1.0)
        module.set_phi(fitted.dispersion)
        with torch.no_grad():
            module.attention.query_key.set_matrix(size * module.attention.query_key.matrix())
        shares.append(free_prevalence(module, problem, solver.training(Model())))
    assert shares[0] == pytest.approx(shares[1], abs=2e-3)
    assert shares[0] == pytest.approx(fitted.prevalence, abs=2e-3)
