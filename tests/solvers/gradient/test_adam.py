"""Adam: its steps, the held-out part, dropped rows, trouble."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt import DiagonalAttention, RaggedRows
from diagatt.solvers import Gradient, Model
from diagatt.solvers.glm import DivergedError
from diagatt.solvers.gradient.adam import AdamRun, train
from diagatt.solvers.gradient.train import risk
from tests.solvers.gradient.training import (
    adam,
    assert_identical,
    gradient_regressor,
    initialize,
    trained,
)
from tests.solvers.samples import D, make_problem, problem_of, ragged


def test_one_full_batch_step_of_adam_moves_every_entry_by_the_learning_rate():
    """Adam's first step is learning_rate · sign(gradient); the gradient is that of the risk."""
    problem = make_problem()
    settings = adam(batch_size=None, max_epochs=1, learning_rate=1e-3, ridge=2.0, score_ridge=0.3)
    module = DiagonalAttention(D, 2).double()
    initialize(module, problem, 0, settings.ridge)
    before = [p.detach().clone() for p in module.parameters()]
    z = module(problem.values, problem.offsets)
    objective = problem.mean_loss(z) + settings.penalty(module, problem)
    parameters = [p for p in module.parameters() if p.numel()]
    gradients = torch.autograd.grad(objective, parameters)
    train(module, problem, settings, 0)
    moved = [p - b for p, b in zip(module.parameters(), before, strict=True) if p.numel()]
    for step, gradient in zip(moved, gradients, strict=True):
        large = gradient.abs() > 1e-4
        torch.testing.assert_close(step[large], -1e-3 * gradient[large].sign(), rtol=1e-3, atol=0)


def test_adam_weighs_loss_against_penalty_as_the_summed_objective_does():
    """Ten times the weights and ten times the penalties are the same objective."""
    weights = np.random.default_rng(0).uniform(0.5, 2, size=40)
    fits = [
        trained(make_problem(weights=c * weights), adam(ridge=5.0 * c, score_ridge=2.0 * c))[0]
        for c in (1, 10)
    ]
    torch.testing.assert_close(fits[1].value, fits[0].value, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(
        fits[1].query_key.matrix(), fits[0].query_key.matrix(), rtol=1e-6, atol=1e-8
    )


def test_history_of_adam_says_the_loss_before_each_step():
    problem = make_problem()
    module = DiagonalAttention(D, 2).double()  # values start at zero
    history = train(module, problem, adam(batch_size=None, max_epochs=3), 0)
    assert [h["epoch"] for h in history] == [1, 2, 3]
    assert history[0]["loss"] == pytest.approx(0.5 * float((problem.y**2).mean()))


def test_early_stopping_keeps_the_best_epoch():
    problem = make_problem(n=30)
    settings = adam(validation_fraction=0.3, patience=3, max_epochs=300, learning_rate=0.1)
    module = DiagonalAttention(D, 2).double()
    initialize(module, problem, 0)
    run = AdamRun(module, problem, settings, seed=0)
    losses = [h["validation_loss"] for h in run.run()]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + settings.patience < 300
    assert risk(module, run.held_out) == losses[best]
    # The same seed with as many epochs as the best ends at the same parameters.
    shorter = DiagonalAttention(D, 2).double()
    initialize(shorter, problem, 0)
    AdamRun(shorter, problem, replace(settings, max_epochs=best + 1), seed=0).run()
    assert_identical(shorter, module)


def test_held_out_and_training_samples_are_a_partition():
    problem = make_problem(n=20)
    run = AdamRun(DiagonalAttention(D).double(), problem, adam(validation_fraction=0.25), seed=3)
    assert (run.held_out.n_samples, run.problem.n_samples) == (5, 15)
    together = torch.cat([run.held_out.y, run.problem.y])
    torch.testing.assert_close(together.sort().values, problem.y.sort().values, rtol=0, atol=0)


@pytest.mark.parametrize("parameterization", ["full", "factored", "psd"])
def test_a_step_for_the_values_keeps_the_scores(parameterization):
    problem = make_problem()
    module = DiagonalAttention(problem.n_features, parameterization=parameterization).double()
    run = AdamRun(module, problem, adam(score_ridge=1.0), seed=0)
    run.step(problem, problem.n_samples)  # Adam has momentum now
    W, v = module.query_key.matrix().detach().clone(), module.value.detach().clone()
    run.step(problem, problem.n_samples, values_only=True)
    torch.testing.assert_close(module.query_key.matrix(), W, rtol=0, atol=0)
    assert (module.value - v).abs().min() > 0


@pytest.mark.slow
def test_value_dropout_teaches_values_about_rows_that_are_not_attended():
    """Two rows say the same in other features; attention takes the first, values learn both."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(400, 1))
    X = np.zeros((400, 2, 4))
    X[:, 0] = np.hstack([signal, np.zeros((400, 1)), np.full((400, 1), 3.0), np.zeros((400, 1))])
    X[:, 1] = np.hstack([np.zeros((400, 1)), signal, np.zeros((400, 1)), np.full((400, 1), 3.0)])
    rows, y = RaggedRows.from_samples(list(X)), signal[:, 0]
    slopes = {}
    for share in (0.0, 0.5):
        settings = adam(value_dropout=share, max_epochs=60, batch_size=40, learning_rate=0.05)
        module = DiagonalAttention(4).double()
        module.query_key.set_matrix(torch.diag(torch.tensor([0.0, 0.0, 400.0, 0.0]))[None])
        AdamRun(module, problem_of(rows, y), settings, 0).run()
        slopes[share] = module.value[0, :2, 0].tolist()
    assert slopes[0.5] == pytest.approx([1, 1], abs=0.05)
    assert abs(slopes[0.0][1]) < 0.05


@pytest.mark.parametrize("share", ["row_dropout", "value_dropout"])
@pytest.mark.parametrize("n_heads", [2, 3])
@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_dropped_rows_leave_enough_for_heads_of_distinct_rows(share, n_heads):
    """Samples of fewer rows than heads have no joint distribution: the loss became NaN."""
    X, y = ragged(shortest=n_heads)
    model = gradient_regressor(n_heads=n_heads, optimizer="adam", max_epochs=3, **{share: 0.95})
    model.fit(X, y)
    assert all(np.isfinite(entry["loss"]) for entry in model.history_[0])
    assert np.isfinite(model.predict(X)).all()


def test_batches_of_training_keep_as_many_rows_as_heads(monkeypatch):
    step, lengths = AdamRun.step, []

    def recorded(run, batch, *arguments, **options):
        lengths.append(int(batch.offsets.diff().min()))
        return step(run, batch, *arguments, **options)

    monkeypatch.setattr(AdamRun, "step", recorded)
    shares = {"row_dropout": 0.95, "value_dropout": 0.95}
    for coupling, least in [("distinct", 2), ("independent", 1)]:
        model = Model(2, coupling=coupling)
        Gradient(optimizer="adam", max_epochs=2, **shares).fit(make_problem(n=200), model, seed=0)
        assert min(lengths) == least
        lengths.clear()


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_diverging_fit_names_the_epoch_and_the_remedy(family):
    X, y = ragged()
    model = gradient_regressor(optimizer="adam", learning_rate=1e200, family=family)
    with pytest.raises(DivergedError, match=r"at epoch \d+: lower learning_rate.*standardize"):
        model.fit(X, np.abs(y))
