"""Where EM begins."""

import numpy as np
import pytest
import torch

from diagatt import RaggedRows, simulate
from diagatt.scores import get_score_form
from diagatt.solvers.likelihood.em import EM, Expectation
from diagatt.solvers.likelihood.latent_rows import LatentRows, RowModel, gaussian_of
from diagatt.solvers.likelihood.starts import (
    TRIAL_ITERATIONS,
    TRIAL_TOLERANCE,
    best_start,
    starting_models,
)
from tests.solvers.likelihood.latent_rows import em_settings
from tests.solvers.samples import problem_of


def test_starts_are_all_tried():
    data = simulate.regression(200, p=5, d=3, mu=(3.0,), sigma2=(3.0,), seed=0)
    setting = (get_score_form("affine"), True, em_settings(), 1, np.random.default_rng(0))
    _, report = best_start(problem_of(data.X, data.y), *setting)
    assert {line["start"] for line in report} >= {"response", "outlier", "random"}


def starts_of(X, y, family="gaussian"):
    problem = problem_of(X, y, family)
    settings = em_settings(tolerance=TRIAL_TOLERANCE)
    em = EM(Expectation(problem, get_score_form("affine")), settings)
    return em, starting_models(em, problem, np.random.default_rng(0))


def test_runs_that_meet_end_where_each_would_have_ended_alone(monkeypatch):
    data = simulate.regression(300, p=8, d=5, mu=(3.0,), sigma2=(3.0,), seed=1)
    em, starts = starts_of(data.X, data.y)
    alone = {name: em.run(*start[:1], TRIAL_ITERATIONS, start[1]) for name, start in starts.items()}
    counted, expect = [], EM.expect
    monkeypatch.setattr(EM, "expect", lambda *given: counted.append(1) or expect(*given))
    together = em.run_together(starts, TRIAL_ITERATIONS)
    assert together["outlier"] is together["random"]  # both find the unusual rows
    assert together["response"] is not together["random"]
    assert len(counted) < sum(len(fit.history) for fit in alone.values())
    enough = em.settings.tolerance * em.weight
    for name, fit in alone.items():
        assert together[name].log_likelihood >= fit.log_likelihood - enough


def test_runs_to_different_maxima_do_not_meet():
    """Rows are unusual in one of two places; a start in either place stays there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6, 4))
    X[:, 0] += 6 * rng.choice([-1.0, 1.0], size=300)[:, None] * np.eye(4)[rng.integers(0, 2, 300)]
    em, starts = starts_of(RaggedRows.from_samples(list(X)), rng.normal(size=300))
    A0, C0 = gaussian_of(em.total)
    response = starts["response"][0].response

    def at(feature):
        C1 = C0 + 30 * torch.outer(*2 * [torch.eye(4, dtype=C0.dtype)[feature]])
        return LatentRows(RowModel(torch.stack([A0, A0]), torch.stack([C0, C1])), response), [0.0]

    pair = {"first": at(0), "second": at(1)}
    together = em.run_together(pair, 6)
    for name, (model, schedule) in pair.items():
        alone = em.run(model, 6, schedule)
        assert together[name].log_likelihood == pytest.approx(alone.log_likelihood, rel=1e-12)
        assert together[name].history == alone.history
