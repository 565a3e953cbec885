"""What both optimizers share: settings, the start, the risk, the convex finish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import map_blocks, segment_mean, weighted_pool
from diagatt.solvers.glm import DivergedError, fit_glm, fit_glm_in_passes
from diagatt.solvers.linear import fit_penalized
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem

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
    value_dropout: float = 0.0
    validation_fraction: float = 0.0
    patience: int = 5
    init: str = "pooled"
    init_scale: float = 0.1
    verbose: bool = False

    def penalty(self, module: DiagonalAttention, problem: AnyProblem) -> Tensor:
        """Ridge on values and, in units of the loss, on scores; beside the mean loss."""
        total = module.penalty(self.ridge, self.score_ridge * problem.scale)
        return total / problem.total_weight

    def chosen_optimizer(self, problem: AnyProblem, module: DiagonalAttention) -> str:
        """Resolve "auto": L-BFGS where all data fit one step and nothing needs batches."""
        shares = (self.row_dropout, self.value_dropout, self.validation_fraction)
        needs_batches = module.projects or any(shares)
        if self.optimizer == "lbfgs" and needs_batches:
            raise ValueError(
                "optimizer='lbfgs' takes no row_dropout, value_dropout, validation_fraction, "
                "bounds or rank of a full W: use optimizer='adam'."
            )
        if self.optimizer != "auto":
            return self.optimizer
        in_memory = isinstance(problem, Problem) and problem.values.numel() <= SMALL_DATA
        return "lbfgs" if in_memory and not needs_batches else "adam"


def initialize(
    module: DiagonalAttention, problem: AnyProblem, settings: GradientSettings, seed: int
) -> None:
    """Draw W; start the values at zero, or at the GLM of mean-pooled rows shared by all heads."""
    generator = torch.Generator().manual_seed(seed)
    module.reset_parameters(settings.init_scale, generator)
    if settings.init == "pooled":
        fit_values(module, problem, settings.ridge, start_from_zero=True)


@torch.no_grad()
def fit_values(
    module: DiagonalAttention,
    problem: AnyProblem,
    ridge: float,
    start_from_zero: bool = False,
    max_steps: int = 100,
) -> None:
    """Solve the convex part (V, b) for the present W by Newton's method, in place."""
    heads, d, K = 1 if start_from_zero else module.n_heads, module.n_features, module.n_outputs
    is_wide = heads * d * K > NEWTON_COEFFICIENTS
    if is_wide and not problem.has_one_row_samples_only:  # where attention trains, V does too
        return

    def features(part: Problem) -> Tensor:  # (n, R·d + 1 + q)
        pool = segment_mean if start_from_zero else attend  # W plays no part at the start
        pooled = map_blocks(lambda x, o: pool(x, o).flatten(1), part.values, part.offsets)
        return torch.cat([pooled, pooled.new_ones(len(pooled), 1), part.covariates], dim=1)

    def attend(values: Tensor, offsets: Tensor) -> Tensor:  # (n, R, d)
        return weighted_pool(module.attention(values, offsets), values, offsets)

    penalty = torch.zeros(heads * d + 1 + problem.n_covariates, dtype=torch.float64)
    penalty[: heads * d] = float(ridge) / problem.total_weight
    penalty, start = penalty.to(problem.device), None
    if not start_from_zero:
        parts = [module.value.reshape(-1, K), module.intercept[None], module.covariate]
        start = torch.cat(parts)
    if isinstance(problem, Problem):
        F = features(problem).double()
        data = (problem.family, F, problem.y, problem.weights, penalty, K)
        beta = fit_penalized(*data) if is_wide else fit_glm(*data, start, max_steps)
    else:
        beta = fit_glm_in_passes(problem, features, penalty, start, max_steps)
    beta = beta.to(module.value.dtype)
    share = heads / module.n_heads  # mean pooling is the same for all heads: they share it
    module.value.copy_(share * beta[: heads * d].reshape(heads, d, K))
    module.intercept.copy_(beta[heads * d])
    module.covariate.copy_(beta[heads * d + 1 :])


@torch.no_grad()
def risk(module: DiagonalAttention, problem: AnyProblem) -> float:
    """Mean loss of equation (obj), block by block."""

    def losses(part: Problem) -> list[Tensor]:
        z = map_blocks(module, part.values, part.offsets, part.covariates)
        return [(part.weights * part.family.loss(part.y, z)).sum()]

    return float(problem.total(losses)[0]) / problem.total_weight


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
