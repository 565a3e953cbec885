"""What both optimizers share: settings, the start, the risk, the convex finish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import map_blocks, segment_mean, weighted_pool
from diagatt.solvers.glm import DivergedError, fit_glm
from diagatt.solvers.linear import fit_penalized
from diagatt.solvers.problem import Problem

# Rows times features up to which all samples go through L-BFGS at once.
SMALL_DATA = 1_000_000
# Coefficients up to which a Newton step is worth its Hessian.
NEWTON_COEFFICIENTS = 3000


@dataclass(frozen=True)
class GradientSettings:
    """How to train; the names are those of the estimators' parameters."""

    optimizer: str = "auto"
    learning_rate: float = 1e-3
    batch_size: int | None = 32
    max_epochs: int = 40
    tolerance: float = 1e-8
    ridge: float = 0.0
    score_ridge: float = 0.0
    row_dropout: float = 0.0
    validation_fraction: float = 0.0
    patience: int = 5
    init: str = "pooled"
    init_scale: float = 0.1
    verbose: bool = False

    def penalty(self, module: DiagonalAttention, problem: Problem) -> Tensor:
        """Ridge on values and, in units of the loss, on scores; beside the mean loss."""
        total = problem.weights.sum()
        return module.penalty(self.ridge, self.score_ridge * problem.scale) / total

    def chosen_optimizer(self, problem: Problem, module: DiagonalAttention) -> str:
        """Resolve "auto": L-BFGS where all data fit one step and nothing needs batches."""
        needs_batches = module.projects or self.row_dropout > 0 or self.validation_fraction > 0
        if self.optimizer == "lbfgs" and needs_batches:
            raise ValueError(
                "optimizer='lbfgs' takes no row_dropout, validation_fraction, bounds or rank of a "
                "full W: use optimizer='adam'."
            )
        if self.optimizer != "auto":
            return self.optimizer
        small = problem.values.numel() <= SMALL_DATA
        return "lbfgs" if small and not needs_batches else "adam"


def initialize(
    module: DiagonalAttention, problem: Problem, settings: GradientSettings, seed: int
) -> None:
    """Draw W; start the values at zero, or at the GLM of mean-pooled rows shared by all heads."""
    generator = torch.Generator().manual_seed(seed)
    module.reset_parameters(settings.init_scale, generator)
    if settings.init == "pooled":
        fit_values(module, problem, settings.ridge, start_from_zero=True)


@torch.no_grad()
def fit_values(
    module: DiagonalAttention,
    problem: Problem,
    ridge: float,
    start_from_zero: bool = False,
    max_steps: int = 100,
) -> None:
    """Solve the convex part (V, b) for the present W by Newton's method, in place."""
    if start_from_zero:  # W plays no part yet
        pooled = map_blocks(segment_mean, problem.values, problem.offsets)[:, None]  # (n, 1, d)
    else:

        def pool(values: Tensor, offsets: Tensor) -> Tensor:
            return weighted_pool(module.attention(values, offsets), values, offsets)

        pooled = map_blocks(pool, problem.values, problem.offsets)  # (n, R, d)
    (n, heads, d), K = pooled.shape, module.n_outputs
    is_wide = heads * d * K > NEWTON_COEFFICIENTS
    if is_wide and not problem.has_one_row_samples_only:  # where attention trains, V does too
        return
    ones, Z = pooled.new_ones(n, 1), problem.covariates
    features = torch.cat([pooled.reshape(n, -1), ones, Z], dim=1)
    penalty = torch.zeros(features.shape[1], dtype=torch.float64, device=features.device)
    penalty[: heads * d] = ridge / problem.weights.sum()
    start = None
    if not start_from_zero:
        parts = [module.value.reshape(-1, K), module.intercept[None], module.covariate]
        start = torch.cat(parts)
    data = (problem.family, features.double(), problem.y, problem.weights, penalty, K)
    beta = fit_penalized(*data) if is_wide else fit_glm(*data, start, max_steps)
    beta = beta.to(module.value.dtype)
    share = heads / module.n_heads  # mean pooling is the same for all heads: they share it
    module.value.copy_(share * beta[: heads * d].reshape(heads, d, K))
    module.intercept.copy_(beta[heads * d])
    module.covariate.copy_(beta[heads * d + 1 :])


@torch.no_grad()
def risk(module: DiagonalAttention, problem: Problem) -> float:
    """Mean loss of equation (obj), block by block."""
    z = map_blocks(module, problem.values, problem.offsets, problem.covariates)
    return float(problem.mean_loss(z))


def entry(epoch: int, loss: float, validation_loss: float | None = None) -> dict[str, float]:
    """One line of the history."""
    entry = {"epoch": epoch, "loss": loss}
    return entry if validation_loss is None else {**entry, "validation_loss": validation_loss}


def check_finite(loss: float, epoch: int) -> None:
    """Stop a diverging fit, saying when and what to try."""
    if not np.isfinite(loss):
        raise DivergedError(
            f"the loss became {loss} at epoch {epoch}: lower learning_rate, raise temperature, "
            "or standardize the rows."
        )
