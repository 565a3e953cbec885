"""L-BFGS on tensors of any shape."""

import pytest
import torch

from diagatt.solvers.lbfgs import minimize_lbfgs


def rosenbrock(x):
    """Value and gradient; the minimum lies at (1, 1)."""
    x = x.clone().requires_grad_()
    a, b = x.flatten()
    value = (1 - a) ** 2 + 100 * (b - a**2) ** 2
    value.backward()
    return value.detach(), x.grad


@pytest.mark.parametrize("shape", [(2,), (1, 2), (2, 1)])
def test_the_minimum_of_a_curved_valley_is_found(shape):
    start, values = torch.full(shape, -1.0, dtype=torch.float64), []
    options = {"max_steps": 500, "tolerance": 1e-10, "ftol": 1e-16}
    found = minimize_lbfgs(rosenbrock, start, **options, after_step=values.append)
    torch.testing.assert_close(found.x, torch.ones_like(start), rtol=0, atol=1e-7)
    assert found.value == values[-1] == float(rosenbrock(found.x)[0])
    assert found.is_converged
    assert values == sorted(values, reverse=True)
    assert torch.equal(start, torch.full(shape, -1.0, dtype=torch.float64))


def test_too_few_steps_are_told():
    start = torch.full((2,), -1.0, dtype=torch.float64)
    assert not minimize_lbfgs(rosenbrock, start, max_steps=3, tolerance=1e-10).is_converged
