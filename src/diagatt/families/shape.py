"""The most likely shape of a family, given predictors: Newton's method on its logarithms."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.functional import hessian, jacobian

# Steps at most, the gain per unit of weight that ends them, and the largest step of a logarithm.
STEPS, LEAST_GAIN, LARGEST_STEP = 50, 1e-15, 2.0
# Logarithms of a shape stay within these bounds: a Poisson count has no variance beyond its mean.
LOWEST, HIGHEST = -14.0, 14.0


def most_likely_shape(
    start: Tensor, log_density: Callable[[Tensor, Tensor], Tensor], z: Tensor, weights: Tensor
) -> Tensor:
    r"""Maximize :math:`\sum_i w_i \log p(y_i | z_i + a; s)` over the shape s and a shift a.

    The shift stands for the intercept, with which thresholds move: shape and predictor are found in
    turns, and few turns are needed if the intercept moves in both.

    Parameters
    ----------
    start : tensor of shape (s,)
    log_density : callable
        Returns log p, (n,), of a shape (s,) and predictors (n, K).
    z : tensor of shape (n, K)
    weights : tensor of shape (n,)

    Returns
    -------
    tensor of shape (s,), float64
    """
    z, w, count = z.double(), weights.double() / weights.double().sum(), len(start)

    def objective(theta: Tensor) -> Tensor:
        return -(w * log_density(theta[:count].exp(), z + theta[count])).sum()

    theta = torch.cat([start.double().log(), z.new_zeros(1)])
    value = float(objective(theta))
    for _ in range(STEPS):
        gradient, curvature = jacobian(objective, theta), hessian(objective, theta)
        step = _step(curvature, gradient)
        gain = -float(gradient @ step)
        if not gain > LEAST_GAIN:
            break
        size = 1.0
        while size > 1e-8:
            candidate = theta + size * step
            candidate[:count].clamp_(LOWEST, HIGHEST)
            new = float(objective(candidate))
            if new <= value - 1e-4 * size * gain or (gain < 1e-10 and new <= value + 1e-12):
                break
            size /= 2
        else:
            break
        theta, value = candidate, new
    return theta[:count].exp()


def _step(curvature: Tensor, gradient: Tensor) -> Tensor:
    """Return a step of descent that no curvature makes too long."""
    values, vectors = torch.linalg.eigh((curvature + curvature.T) / 2)
    values = values.abs().clamp(min=1e-10 * float(values.abs().max()) + 1e-300)
    step = -(vectors / values) @ (vectors.T @ gradient)
    return step / max(1.0, float(step.abs().max()) / LARGEST_STEP)
