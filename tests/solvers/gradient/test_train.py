"""Training by L-BFGS, and what all training shares: the convex part, the risk, the start."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from diagatt import DiagonalAttention
from diagatt.attention import AttentionModule
from diagatt.segments import segment_max
from diagatt.solvers.gradient.adam import train
from diagatt.solvers.gradient.train import fit_values, predictors, risk, start_at_pooled
from tests.solvers.gradient.training import gradient_regressor, trained, training
from tests.solvers.samples import D, make_problem, problem_of, ragged


def test_lbfgs_ends_where_the_gradient_of_the_objective_vanishes():
    problem = make_problem()
    settings = training(optimizer="lbfgs", max_steps=5000, ridge=1.0, score_ridge=0.1)
    module, history = trained(problem, settings)
    z = module(problem.values, problem.offsets, problem.covariates)
    objective = problem.mean_loss(z) + settings.penalty(module, problem)
    parameters = [p for p in module.parameters() if p.numel()]
    for gradient in torch.autograd.grad(objective, parameters):
        assert gradient.abs().max() < 1e-5
    losses = [h["loss"] for h in history]
    assert losses == sorted(losses, reverse=True)
    assert [h["epoch"] for h in history] == list(range(1, len(history) + 1))


@pytest.mark.parametrize("factor", [1e-4, 1000.0])
def test_scaling_the_response_scales_predictions(factor):
    X, y = ragged()
    fitted = gradient_regressor(n_heads=2).fit(X, y)
    scaled = gradient_regressor(n_heads=2).fit(X, factor * y)
    np.testing.assert_allclose(scaled.predict(X) / factor, fitted.predict(X), atol=1e-4)
    np.testing.assert_array_equal(scaled.locate(X), fitted.locate(X))
    losses = (model.history_[0][-1]["loss"] for model in (scaled, fitted))
    assert next(losses) / factor**2 == pytest.approx(next(losses), rel=1e-6)


def test_the_optimizer_that_suits_the_data_is_chosen(monkeypatch):
    problem, module = make_problem(), DiagonalAttention(D)
    assert training().chosen_optimizer(problem, module) == "lbfgs"
    assert training(optimizer="adam").chosen_optimizer(problem, module) == "adam"
    for share in ("row_dropout", "value_dropout", "validation_fraction"):
        assert training(**{share: 0.1}).chosen_optimizer(problem, module) == "adam"
    assert training().chosen_optimizer(problem, DiagonalAttention(D, value_bound=1.0)) == "adam"
    monkeypatch.setattr("diagatt.solvers.gradient.train.SMALL_DATA", 10)
    assert training().chosen_optimizer(problem, module) == "adam"


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "multinomial", "poisson"])
def test_the_convex_part_ends_where_its_gradient_vanishes(family):
    X, y = ragged()
    y = {"gaussian": y, "poisson": np.round(np.abs(y))}.get(family, np.digitize(y, [0.5]))
    if family == "multinomial":
        y = y + (np.arange(len(y)) % 5 == 0)
    K = 3 if family == "multinomial" else 1
    Z = np.random.default_rng(0).normal(size=(len(y), 2))
    problem = problem_of(X, y, family, K, covariates=Z)
    module = DiagonalAttention(D, 2, K, 2, score_form="affine").double()
    W = module.query_key.matrix().detach().clone()
    fit_values(module, problem, ridge=0.7)
    assert torch.equal(module.query_key.matrix(), W)
    z = module(problem.values, problem.offsets, problem.covariates)
    objective = problem.mean_loss(z) + 0.35 * module.value.square().sum() / problem.total_weight
    for gradient in torch.autograd.grad(objective, module.effects()):
        assert gradient.abs().max() < 1e-9
    assert risk(module, problem) == pytest.approx(float(problem.mean_loss(z).detach()))


def test_heads_share_the_model_of_mean_rows_at_the_start():
    X, y = ragged()
    module = DiagonalAttention(D, 3).double()
    start_at_pooled(module, problem_of(X, y), ridge=2.0, n_heads=3)
    means = np.array([x.mean(axis=0) for x in X])
    theirs = Ridge(alpha=2.0).fit(means, y)
    np.testing.assert_allclose(module.value.detach()[:, :, 0], np.tile(theirs.coef_ / 3, (3, 1)))
    np.testing.assert_allclose(module.intercept.item(), theirs.intercept_)


class MaximumPooling(AttentionModule):
    """A module of one's own: the largest value of each feature, scaled, predicts."""

    def __init__(self, n_features):
        super().__init__()
        self.value = torch.nn.Parameter(torch.zeros(n_features, 1))
        self.intercept = torch.nn.Parameter(torch.zeros(1))
        self.scaling = torch.nn.Parameter(torch.ones(n_features))

    def features(self, values, offsets):
        return segment_max(values, offsets) * self.scaling


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
def test_a_module_of_ones_own_is_trained(optimizer):
    X, _ = ragged(n=80)
    largest = np.array([x.max(axis=0) for x in X])
    y = largest @ [1.0, -2.0, 0.5] + 3
    module, problem = MaximumPooling(D).double(), problem_of(X, y)
    how = training(optimizer=optimizer, max_epochs=300, learning_rate=0.05, ridge=0, score_ridge=0)
    history = train(module, problem, how, seed=0)
    assert history[-1]["loss"] < 1e-2 * history[0]["loss"]
    np.testing.assert_allclose(predictors(module, problem)[:, 0], y, atol=0.1)


def test_samples_of_one_row_are_solved_exactly():
    X, y = ragged(shortest=1, longest=1)
    module = DiagonalAttention(D).double()
    (entry,) = train(module, problem_of(X, y), training(ridge=1.0), seed=0)
    theirs = Ridge(alpha=1.0).fit(X.values, y)
    np.testing.assert_allclose(module.value.detach()[0, :, 0], theirs.coef_)
    assert entry["loss"] == pytest.approx(0.5 * np.mean((y - theirs.predict(X.values)) ** 2))


def test_lbfgs_warns_if_it_was_stopped():
    with pytest.warns(ConvergenceWarning, match="stopped after 2 steps before it converged"):
        trained(make_problem(), training(optimizer="lbfgs", max_steps=2))
