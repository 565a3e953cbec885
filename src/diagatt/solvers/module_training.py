"""Training of attention modules other than the diagonal one: Adam in batches, or L-BFGS on all."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from diagatt.progress import progress_bar
from diagatt.solvers.glm import fit_glm
from diagatt.solvers.module_blocks import BlockModule, backward, in_blocks
from diagatt.solvers.problem import Problem
from diagatt.solvers.training import check_finite, entry

OPTIMIZERS = ("auto", "adam", "lbfgs")
# Rows times features up to which all samples go through L-BFGS.
SMALL_DATA = 1_000_000
LBFGS_STEPS = 2000
# Coefficients up to which the convex part is finished by Newton's method.
NEWTON_COEFFICIENTS = 3000

History = list[dict[str, float]]


@dataclass(frozen=True)
class ModuleSettings:
    """How to train; the names are those of the estimators' parameters."""

    optimizer: str = "auto"
    learning_rate: float = 1e-3
    batch_size: int = 32
    max_epochs: int = 4
    tolerance: float = 1e-6
    ridge: float = 0.0
    score_ridge: float = 0.0
    verbose: bool = False

    @classmethod
    def of(cls, estimator: Any) -> ModuleSettings:
        """Parameters of an estimator; where it has tuned one, the value in use."""
        names = cls.__dataclass_fields__
        return cls(**{n: getattr(estimator, f"{n}_", getattr(estimator, n)) for n in names})

    def penalty(self, module: BlockModule, problem: Problem) -> Tensor:
        """Ridge on values and, in units of the loss, on scores; beside the mean loss."""
        total = module.penalty(self.ridge, self.score_ridge * problem.scale)
        return total / problem.weights.sum()


def train_module(
    module: BlockModule, problem: Problem, settings: ModuleSettings, seed: int
) -> History:
    """Minimize the empirical risk and the penalty in place; return the loss of every epoch.

    Samples of one row leave attention nothing to choose: the module is a GLM, solved exactly.
    """
    if problem.has_one_row_samples_only and _fits_newton(module):
        _finish_values(module, problem, settings)
        z = in_blocks(module, problem.values, problem.offsets)
        return [entry(1, float(problem.mean_loss(z)))]
    small = problem.values.numel() <= SMALL_DATA
    if settings.optimizer == "lbfgs" or (settings.optimizer == "auto" and small):
        return _train_lbfgs(module, problem, settings)
    return _train_adam(module, problem, settings, seed)


def _train_adam(
    module: BlockModule, problem: Problem, settings: ModuleSettings, seed: int
) -> History:
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(module.parameters(), lr=settings.learning_rate)
    mean_weight, history = problem.weights.mean(), []
    with progress_bar("Adam", settings.max_epochs, settings.verbose) as advance:
        for epoch in range(1, settings.max_epochs + 1):
            order = torch.randperm(problem.n_samples, generator=generator).to(problem.y.device)
            total = problem.y.new_zeros(())
            for samples in order.split(settings.batch_size):
                optimizer.zero_grad()
                settings.penalty(module, problem).backward()
                # Over the expected weight of a batch: every sample counts by its weight alone.
                total += backward(module, problem.take(samples), len(samples) * mean_weight)
                optimizer.step()
            history.append(entry(epoch, float(total / problem.weights.sum())))
            check_finite(history[-1]["loss"], epoch)
            advance(f"loss {history[-1]['loss']:.4g}")
    return history


def _train_lbfgs(module: BlockModule, problem: Problem, settings: ModuleSettings) -> History:
    """L-BFGS in float64, then Newton steps on the convex part, which it leaves a little short."""
    dtype = module.value.dtype
    module.to(torch.float64)
    problem = problem.to(torch.float64)
    parameters = list(module.parameters())
    # In units of the loss, so that tolerances mean the same for any scale of y.
    total_weight = problem.weights.sum() * problem.scale
    history: History = []

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        _unflatten(vector, parameters)
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        penalty = settings.penalty(module, problem) / problem.scale
        penalty.backward()
        value = backward(module, problem, total_weight) / total_weight + penalty.detach()
        gradients = [torch.as_tensor(p.grad).flatten().cpu().numpy() for p in parameters]
        return float(value), np.concatenate(gradients)

    def record(intermediate_result) -> None:
        history.append(entry(len(history) + 1, float(intermediate_result.fun) * problem.scale))

    start = np.concatenate([p.detach().flatten().cpu().numpy() for p in parameters])
    options: Any = {"maxiter": LBFGS_STEPS, "maxcor": 50, "ftol": 1e-12}
    options["gtol"] = settings.tolerance
    result = minimize(
        objective, start, jac=True, method="L-BFGS-B", callback=record, options=options
    )
    check_finite(float(result.fun), len(history))
    if result.status == 1:
        message = f"L-BFGS stopped after {LBFGS_STEPS} steps before it converged: raise ridge."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    _unflatten(result.x, parameters)
    if _fits_newton(module):
        _finish_values(module, problem, settings)
    module.to(dtype)
    return history


def _fits_newton(module: BlockModule) -> bool:
    return module.value.numel() <= NEWTON_COEFFICIENTS


@torch.no_grad()
def _finish_values(module: BlockModule, problem: Problem, settings: ModuleSettings) -> None:
    """Solve the convex part (V, b) for the present scores by Newton's method, in place."""
    features = in_blocks(module, problem.values, problem.offsets, module.features)  # (n, P)
    features = torch.cat([features, features.new_ones(len(features), 1)], dim=1)
    penalty = features.new_full((features.shape[1],), settings.ridge) / problem.weights.sum()
    penalty[-1] = 0
    K = len(module.intercept)
    start = torch.cat([module.value.reshape(-1, K), module.intercept[None]])
    beta = fit_glm(problem.family, features, problem.y, problem.weights, penalty, K, start)
    module.value.copy_(beta[:-1].reshape(module.value.shape))
    module.intercept.copy_(beta[-1])


@torch.no_grad()
def _unflatten(vector: np.ndarray, parameters: list[nn.Parameter]) -> None:
    flat, start = torch.from_numpy(vector), 0
    for parameter in parameters:
        parameter.copy_(flat[start : start + parameter.numel()].reshape(parameter.shape))
        start += parameter.numel()
