"""The objective of the mixture: units, weights, dispersion, gradients of the whole."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt.solvers import Mixture, Model
from diagatt.solvers.gradient.train import backward
from diagatt.solvers.mixture.objective import MixtureModule, null_dispersion
from tests.golden.cases import draw
from tests.solvers.samples import make_problem, problem_of

HOW = Mixture(score_ridge=3.0, linear_ridge=0.5).training(Model(ridge=2.0))
FREE = {"score_ridge": 0.0, "linear_ridge": 0.0}


def problem(family="gaussian", n=30):
    X, y, Z, w = draw(family, n)
    return problem_of(X, y, family, 3 if family == "multinomial" else 1, w, Z)


def mixture_module(samples, model=None, seed=0):
    """A module with all parameters drawn."""
    attention = (model or Model(1)).module(samples, readout="mixture", family=samples.family.name)
    module = MixtureModule(attention, null_dispersion(samples))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return module


def objective(module, samples, how=HOW):
    loss = (samples.weights * how.losses(module, samples)).sum() / samples.total_weight
    return loss + how.penalty(module, samples)


@pytest.mark.parametrize("family", ["bernoulli", "gamma", "gaussian", "multinomial", "poisson"])
@pytest.mark.parametrize("model", [Model(1), Model(2), Model(2, coupling="independent")])
def test_the_gradient_that_training_sums_up_is_that_of_the_objective(family, model):
    """Against central differences in a random direction, with all parameters moving at once."""
    samples = problem(family)
    module = mixture_module(samples, model)
    backward(module, samples, HOW, samples.total_weight)
    HOW.penalty(module, samples).backward()
    generator, step = torch.Generator().manual_seed(1), 1e-5
    moves = [torch.randn(p.shape, generator=generator).double() for p in module.parameters()]
    moves[-1][:, 4:, 4:] = 0  # the softmax does not see these entries of W: they are not trained
    slope = sum(float((p.grad * m).sum()) for p, m in zip(module.parameters(), moves, strict=True))
    values = []
    for sign in (1, -2):  # forth, and back to the other side
        with torch.no_grad():
            for parameter, move in zip(module.parameters(), moves, strict=True):
                parameter.add_(sign * step * move)
        values.append(float(objective(module, samples).detach()))
    # The third derivative times step², and rounding of the objective over the step.
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6, abs=1e-8)


def test_a_duplicated_sample_counts_like_weight_two():
    samples = replace(problem(), weights=torch.ones(30).double())
    twice = samples.take(torch.tensor([*range(30), 4]))
    weights = torch.ones(30).double()
    weights[4] = 2
    weighted = replace(samples, weights=weights)
    module = mixture_module(samples)
    torch.testing.assert_close(objective(module, twice), objective(module, weighted))
    assert null_dispersion(twice) == pytest.approx(null_dispersion(weighted), rel=1e-12)


@pytest.mark.parametrize("unit", [1e-6, 1000.0])
def test_the_objective_does_not_depend_on_the_unit_of_y_but_for_the_density(unit):
    samples = problem()
    module, how = mixture_module(samples), HOW
    before = float(objective(module, samples).detach())
    phi = float(module.phi.detach())
    scaled = replace(samples, y=samples.y / unit)
    how.change_unit(module, unit)
    after = float(objective(module, scaled).detach())
    assert float(module.phi.detach()) == pytest.approx(phi / unit**2, rel=1e-9)
    assert how.in_unit(after, unit) == pytest.approx(before, rel=1e-9)


def test_null_dispersions():
    samples = replace(problem(), weights=torch.ones(30).double())
    assert null_dispersion(samples) == pytest.approx(np.var(samples.y.numpy()))
    gamma = replace(problem("gamma"), weights=torch.ones(30).double())
    y = gamma.y.numpy()
    assert null_dispersion(gamma) == pytest.approx(np.var(y) / np.mean(y) ** 2)
    assert null_dispersion(problem("poisson")) == 1.0
    constant = replace(samples, y=torch.full((30,), 7.3).double())
    assert null_dispersion(constant) == 1.0  # of no size: any unit will do


def test_the_dispersion_stays_above_a_hundredth_of_the_null():
    samples = make_problem()
    module = mixture_module(samples)
    null = null_dispersion(samples)
    with torch.no_grad():
        module.log_excess.fill_(-1000.0)
    assert float(module.phi.detach()) == pytest.approx(0.01 * null)
    module.set_phi(0.3 * null)
    assert float(module.phi.detach()) == pytest.approx(0.3 * null)
    module.set_phi(0.0)
    assert 0.01 * null < float(module.phi.detach()) < 0.02 * null


def test_the_values_penalty_is_in_units_of_the_dispersion():
    """So that ridge means what it means beside the loss of a GLM, φ times −log p."""
    samples = make_problem()
    module, how = mixture_module(samples), replace(HOW, **FREE)
    square = float(module.attention.value.detach().square().sum())
    expected = square / float(module.phi.detach()) / samples.total_weight
    assert float(how.penalty(module, samples).detach()) == pytest.approx(expected)
    assert how.penalizes
    assert not replace(HOW, **FREE, ridge=0.0).penalizes
    assert math.isclose(how.in_unit(1.0, math.e), 2.0)
