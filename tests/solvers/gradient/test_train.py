"""Training by L-BFGS, and what all training shares: the convex part, the risk, the start."""

import numpy as np
import pytest
import torch

from diagatt.solvers.gradient.train import Training
from tests.solvers.gradient.training import gradient_regressor, trained
from tests.solvers.samples import make_problem, ragged


def test_lbfgs_ends_where_the_gradient_of_the_objective_vanishes():
    problem = make_problem()
    settings = Training(optimizer="lbfgs", max_steps=5000, ridge=1.0, score_ridge=0.1)
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
