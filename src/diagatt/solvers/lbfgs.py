"""L-BFGS on tensors: one wrapper around scipy's, for the GLM and for every attention module.

`diagatt.solvers.auto.lbfgs` minimizes many small problems at once, where calls of an objective, not
its arithmetic, take the time. It cannot replace this one. Its line search requires only that the
value falls, while scipy's also requires a smaller slope. In one run of the ten golden fits by
L-BFGS, it took a fifth longer in all, and W or V of four fits differed by more than their tolerance
of 1e-3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

# Steps that the approximation of the curvature remembers.
MEMORY = 10


@dataclass(frozen=True)
class Minimum:
    """The point where L-BFGS ended, and whether it converged."""

    x: Tensor
    value: float
    is_converged: bool


def minimize_lbfgs(
    objective: Callable[[Tensor], tuple[Tensor, Tensor]],
    start: Tensor,
    max_steps: int,
    tolerance: float,
    ftol: float = 1e-12,
    memory: int = MEMORY,
    after_step: Callable[[float], None] | None = None,
) -> Minimum:
    """Minimize a function of a float64 tensor of any shape.

    Parameters
    ----------
    objective : callable
        Gives the value and its gradient.
    tolerance : float
        Stop when no entry of the gradient is larger.
    ftol : float
        Stop when a step lowers the value by less than this share of it.
    memory : int
        How many steps the approximation of the curvature remembers.
    after_step : callable, optional
        Called with the value after each step.

    Examples
    --------
    >>> target = torch.tensor([1.0, 2.0], dtype=torch.float64)
    >>> quadratic = lambda x: ((x - target).square().sum(), 2 * (x - target))
    >>> minimize_lbfgs(quadratic, torch.zeros(2, dtype=torch.float64), 100, 1e-8).x
    tensor([1., 2.], dtype=torch.float64)
    """

    def of_vector(vector: np.ndarray) -> tuple[float, np.ndarray]:
        x = torch.from_numpy(vector).reshape(start.shape).to(start.device)
        value, gradient = objective(x)
        return float(value), gradient.flatten().cpu().numpy()

    def record(intermediate_result: Any) -> None:
        if after_step is not None:
            after_step(float(intermediate_result.fun))

    result = minimize(
        of_vector,
        start.detach().flatten().cpu().numpy(),
        jac=True,
        method="L-BFGS-B",
        callback=record,
        options={"maxiter": max_steps, "maxcor": memory, "ftol": ftol, "gtol": tolerance},
    )
    x = torch.from_numpy(result.x).reshape(start.shape).to(start.device)
    return Minimum(x, float(result.fun), result.status != 1)
