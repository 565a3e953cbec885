"""Full-batch training for small data: L-BFGS, then Newton steps on the convex part."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.progress import progress_bar
from diagatt.solvers.problem import Problem
from diagatt.solvers.training import GradientSettings, check_finite, entry, fit_values


def fit_lbfgs(module: DiagonalAttention, problem: Problem, settings: GradientSettings):
    """L-BFGS in float64, then Newton steps on the convex part, which it leaves a little short."""
    dtype = module.value.dtype
    module.double()
    original = problem.to(torch.float64)
    # Responses of unit size: the path of L-BFGS depends on how large V is beside W.
    unit = original.scale**0.5
    problem = replace(original, y=original.y / unit) if unit != 1 else original
    _multiply_effects(module, 1 / unit)
    parameters = [p for p in module.parameters() if p.numel()]
    history: list[dict[str, float]] = []

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        _unflatten(vector, parameters)
        z = module(problem.values, problem.offsets, problem.covariates)
        loss = problem.mean_loss(z) + settings.penalty(module, problem)
        gradients = torch.autograd.grad(loss, parameters)
        return float(loss.detach()), np.concatenate([g.flatten().cpu().numpy() for g in gradients])

    def record(intermediate_result) -> None:
        loss = float(intermediate_result.fun) * unit**2
        history.append(entry(len(history) + 1, loss))
        advance(f"loss {loss:.5g}")

    start = np.concatenate([p.detach().flatten().cpu().numpy() for p in parameters])
    with progress_bar("L-BFGS", settings.max_epochs, settings.verbose) as advance:
        # One pass over all data is an epoch; a line search may take a few.
        options = {"maxiter": settings.max_epochs, "ftol": 1e-12, "gtol": settings.tolerance}
        result = minimize(
            objective, start, jac=True, method="L-BFGS-B", callback=record, options=options
        )
    check_finite(float(result.fun), len(history))
    if result.status == 1:
        warnings.warn(
            f"L-BFGS stopped after max_epochs={settings.max_epochs} before it converged: "
            "raise max_epochs or ridge.",
            ConvergenceWarning,
            stacklevel=2,
        )
    _unflatten(result.x, parameters)
    _multiply_effects(module, unit)
    fit_values(module, original, settings.ridge)
    module.to(dtype)
    return history


@torch.no_grad()
def _multiply_effects(module: DiagonalAttention, factor: float) -> None:
    for effect in (module.value, module.intercept, module.covariate):
        effect.mul_(factor)


@torch.no_grad()
def _unflatten(vector: np.ndarray, parameters: list[torch.nn.Parameter]) -> None:
    flat, start = torch.from_numpy(vector), 0
    for parameter in parameters:
        parameter.copy_(flat[start : start + parameter.numel()].reshape(parameter.shape))
        start += parameter.numel()
