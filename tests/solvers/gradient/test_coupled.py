"""Objectives of all samples together: a pass in blocks has the gradient of the whole."""

import torch

from diagatt import simulate
from diagatt.families import get_family
from diagatt.solvers import Model
from diagatt.solvers.gradient import train
from diagatt.solvers.problem import Samples
from tests.solvers.gradient.training import training


def problem(n=60):
    data = simulate.survival(n, p=4, d=3, mu=(2,), sigma2=(2,), seed=0)
    values, offsets = data.X.to_torch("cpu", torch.float64)
    times = torch.from_numpy(data.y["time"].copy())
    event = torch.from_numpy(data.y["event"].copy())
    y = torch.stack([torch.zeros(n), times, torch.where(event, times, torch.inf)], dim=1).double()
    weights = torch.linspace(1, 2, n, dtype=torch.float64)
    return Samples(get_family("cox"), values, offsets, y, weights, values.new_empty(n, 0))


def test_blocks_add_up_to_the_gradient_of_the_partial_likelihood(monkeypatch):
    samples = problem()
    module = Model().module(samples)
    module.reset_parameters(1.0, torch.Generator().manual_seed(0))
    with torch.no_grad():
        module.value.normal_(generator=torch.Generator().manual_seed(1))
    z = train.predictor(module, samples)[:, 0]
    loss = samples.risk_sets.loss(z) / 90
    expected = torch.autograd.grad(loss, [module.value, module.query_key.weight])

    def in_blocks(offsets):
        for first in range(0, 60, 20):
            yield slice(first, first + 20), slice(int(offsets[first]), int(offsets[first + 20]))

    monkeypatch.setattr(module, "blocks", in_blocks)
    for kept in (0, 10**9):  # two passes, and one that remembers
        monkeypatch.setattr(train, "KEPT_ENTRIES", kept)
        module.zero_grad()
        total = train.backward(module, samples, training(), 90.0)
        torch.testing.assert_close(total / 90, loss)
        torch.testing.assert_close(module.value.grad, expected[0])
        torch.testing.assert_close(module.query_key.weight.grad, expected[1])


def test_batches_are_not_chosen_for_samples_that_belong_together():
    samples = problem()
    module = Model().module(samples)
    assert training().chosen_optimizer(samples, module) == "lbfgs"
