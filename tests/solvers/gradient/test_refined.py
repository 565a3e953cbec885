"""One solver after another."""

import pytest
import torch

from diagatt.solvers import Gradient, Likelihood, Model, Refined, Uniform
from diagatt.solvers.gradient.train import risk
from tests.solvers.gradient.training import assert_identical
from tests.solvers.samples import make_problem

THEN = Gradient(optimizer="adam", max_epochs=3, learning_rate=0.01)


@pytest.mark.parametrize("n_heads", [1, 2])
@pytest.mark.parametrize("first", [Likelihood("tied"), Uniform(), Gradient(max_epochs=4)], ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_is_the_second_solver_started_at_the_first(first, n_heads):
    problem, model = make_problem(), Model(n_heads)
    refined = Refined(first, THEN).fit(problem, model, seed=3)
    start = first.fit(problem, model, seed=3)
    by_hand = THEN.fit(problem, model, seed=3, start=start)
    assert_identical(refined.module, by_hand.module)
    assert refined.history == [*start.history, *by_hand.history]
    assert refined.report == start.report
    assert type(refined.state) is type(start.state)  # a warm start goes on from the first
    assert refined.log_likelihood is None  # rows have none after gradient steps
    assert refined.value_se is None


def test_by_default_ten_short_epochs_follow_maximum_likelihood():
    problem, model = make_problem(n=200), Model(1)
    refined = Refined().fit(problem, model, seed=0)
    likelihood = Likelihood().fit(problem, model, seed=0)
    assert refined.history[0] == likelihood.history[0]
    assert [entry["epoch"] for entry in refined.history[1]] == list(range(1, 11))
    assert risk(refined.module, problem) < risk(likelihood.module, problem)
    scores = refined.module.query_key.matrix(), likelihood.module.query_key.matrix()
    assert not torch.equal(*scores)
    torch.testing.assert_close(refined.module.value, likelihood.module.value, rtol=0, atol=0.1)


def test_a_temperature_of_the_second_solver_does_not_undo_the_first():
    """Steps of size 0 (nearly) leave the attention of the first fit, at any temperature."""
    problem, model = make_problem(n=200), Model(1)
    likelihood = Likelihood().fit(problem, model, seed=0).module
    still = Gradient(optimizer="adam", max_epochs=1, learning_rate=1e-12, temperature=30.0)
    refined = Refined(Likelihood(), still).fit(problem, model, seed=0).module
    assert refined.temperature == 30.0
    arguments = problem.values, problem.offsets
    torch.testing.assert_close(refined.attention(*arguments), likelihood.attention(*arguments))
