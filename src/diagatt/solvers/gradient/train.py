"""Empirical risk minimization (equation obj) for any attention module, ours or a user's own.

A subclass of `Training` may put another objective in the place of the risk. Training takes Adam in
batches (`adam`) or L-BFGS on all samples, which then solves the convex part by Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from diagatt.attention.module import AttentionModule
from diagatt.progress import progress_bar
from diagatt.solvers.glm import NEWTON_COEFFICIENTS, DivergedError, fit_glm_of, row_span
from diagatt.solvers.lbfgs import MEMORY, Minimum, minimize_lbfgs
from diagatt.solvers.problem import Problem, Samples, mean_rows
from diagatt.user_warnings import warn

OPTIMIZERS = ("auto", "adam", "lbfgs")
# Rows times features up to which all samples go through L-BFGS at once.
SMALL_DATA = 1_000_000
# Rows times features up to which a pass keeps what its gradient needs.
KEPT_ENTRIES = 20_000_000

History = list[dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings and objective of training; the names are those of the parameters of `Gradient`.

    Solvers and estimators set the defaults; optional settings here mean that nothing is done.
    `least_rows` is the count of rows that each sample keeps when rows are dropped.
    """

    #: Whether the objective is convex in V, b and γ, so that Newton's method can finish.
    is_convex_in_effects: ClassVar[bool] = True
    #: Whether samples have losses of their own even if the family couples them.
    separates_samples: ClassVar[bool] = False

    optimizer: str
    learning_rate: float
    batch_size: int | None
    max_epochs: int  # of Adam
    max_steps: int  # of L-BFGS
    tolerance: float
    ridge: float
    score_ridge: float
    linear_ridge: float | None = None
    row_dropout: float = 0.0
    value_dropout: float = 0.0
    validation_fraction: float = 0.0
    patience: int | None = None  # None goes on to the last epoch
    least_rows: int = 1
    memory: int = MEMORY  # of L-BFGS, in steps
    verbose: bool = False

    @classmethod
    def asked(
        cls, parameters: Mapping[str, Any], max_epochs: int, max_steps: int, **further: Any
    ) -> Self:
        """Return the training that the parameters of a solver define.

        Their own `max_epochs` counts epochs of Adam and steps of L-BFGS alike; where it is None,
        each optimizer has its own count.
        """
        own = {f.name: parameters[f.name] for f in fields(cls) if f.name in parameters}
        if own["max_epochs"] is not None:
            max_epochs = max_steps = own["max_epochs"]
        return cls(**{**own, "max_epochs": max_epochs, "max_steps": max_steps, **further})

    def losses(self, module: AttentionModule, block: Samples) -> Tensor:
        """Return the losses of samples that go through the module together, (n,)."""
        return block.family.loss(block.y, predictor(module, block))

    def penalty(self, module: AttentionModule, problem: Problem) -> Tensor:
        """Return the ridge on values and, in units of the loss, on scores, per unit of weight."""
        ridges = [self.ridge, self.score_ridge * problem.scale]
        if self.linear_ridge is not None:
            ridges.append(self.linear_ridge * problem.scale)
        total = module.penalty(*ridges)
        return total / problem.total_weight

    @property
    def penalizes(self) -> bool:
        """Whether there is a penalty."""
        return bool(self.ridge or self.score_ridge or self.linear_ridge)

    @torch.no_grad()
    def change_unit(self, module: AttentionModule, unit: float) -> None:
        """Convert a module for responses y to one for y/unit, in place."""
        for effect in module.effects():
            effect.div_(unit)

    def in_unit(self, value: float, unit: float) -> float:
        """Return the objective for responses y whose objective for y/unit is `value`."""
        return value * unit**2

    @property
    def needs_batches(self) -> bool:
        """Whether a setting needs Adam."""
        return any((self.row_dropout, self.value_dropout, self.validation_fraction))

    def chosen_optimizer(self, problem: Problem, module: AttentionModule) -> str:
        """Return the optimizer; "auto" is L-BFGS for small data that need no batches."""
        if self.optimizer != "auto":
            return self.optimizer
        here = problem.in_memory
        small = here is not None and here.values.numel() <= SMALL_DATA
        if here is not None and here.family.couples_samples and not self.separates_samples:
            small = True  # batches lack the other samples at risk
        return "lbfgs" if small and not self.needs_batches and not module.projects else "adam"


class GivenBaseline(Training):
    """Training in parts of a family that couples samples, with its baseline taken as known.

    A batch, or a shard of a store, lacks other samples that are at risk. Given the baseline hazard,
    every sample has a likelihood of its own.
    """

    separates_samples: ClassVar[bool] = True

    @classmethod
    def of(cls, how: Training) -> GivenBaseline:
        """Return the same training in this way."""
        return cls(**{f.name: getattr(how, f.name) for f in fields(how)})


def fit_values(module: AttentionModule, problem: Problem, ridge: float) -> None:
    """Solve the convex part (V, b, γ) for the current scores, in place.

    If there are too many coefficients for Newton's method, values stay as they are, unless samples
    have one row each, so that there is nothing else to fit.
    """
    effects = module.effects()
    too_many = sum(p.numel() for p in effects) > NEWTON_COEFFICIENTS
    if too_many and not problem.has_one_row_samples_only:
        return

    def features(part: Samples) -> Tensor:  # (n, P + 1 + q)
        given = (part.values, part.offsets, module.features, part.log_prior)
        pooled = in_blocks(module, *given)
        return torch.cat([pooled, pooled.new_ones(len(pooled), 1), part.covariates], dim=1)

    K = problem.n_outputs
    start = torch.cat([p.detach().reshape(-1, K) for p in effects])
    penalty = torch.zeros(len(start), dtype=torch.float64, device=problem.device)
    penalty[: len(start) - 1 - problem.n_covariates] = float(ridge) / problem.total_weight
    beta = fit_glm_of(problem, features, penalty, start)
    _set_effects(module, beta)


def start_at_pooled(
    module: AttentionModule, problem: Problem, ridge: float, n_heads: int, must: bool = False
) -> None:
    """Start the values at the GLM of mean rows, which all heads share.

    With very many features and fewer samples it is fitted in the span of the mean rows, where it
    is the same. A regression that takes long is left out unless `must` is True.
    """
    d, K = problem.n_features, problem.n_outputs
    here, basis = problem.in_memory, None
    if d * K > NEWTON_COEFFICIENTS and not problem.has_one_row_samples_only:
        if here is not None and here.n_samples * K <= NEWTON_COEFFICIENTS:
            basis = row_span(mean_rows(here))  # (d, r)
        elif not must:
            return

    def features(part: Samples) -> Tensor:  # (n, d + 1 + q), or r in place of d
        pooled = mean_rows(part)
        pooled = pooled if basis is None else (pooled.double() @ basis).to(pooled.dtype)
        return torch.cat([pooled, pooled.new_ones(len(pooled), 1), part.covariates], dim=1)

    count = d if basis is None else basis.shape[1]
    penalty = torch.zeros(count + 1 + problem.n_covariates, dtype=torch.float64)
    penalty[:count] = float(ridge) / problem.total_weight
    beta = fit_glm_of(problem, features, penalty.to(problem.device))
    if basis is not None:
        beta = torch.cat([basis @ beta[:count], beta[count:]])
    values = (beta[:d] / n_heads).repeat(n_heads, 1)
    further = sum(p.numel() for p in module.effects()) // K - len(values) - len(beta[d:])
    _set_effects(module, torch.cat([values, beta.new_zeros(max(further, 0), K), beta[d:]]))


@torch.no_grad()
def _set_effects(module: AttentionModule, beta: Tensor) -> None:
    used = 0
    for parameter in module.effects():
        size = parameter.numel() // beta.shape[1]
        parameter.copy_(beta[used : used + size].reshape(parameter.shape))
        used += size


@torch.no_grad()
def in_blocks(
    module: AttentionModule,
    values: Tensor,
    offsets: Tensor,
    function: Callable[..., Tensor],
    log_prior: Tensor | None = None,
) -> Tensor:
    """Return a function of samples, ``function(values, offsets)``, in the memory of one block.

    It is given `log_prior`, (N,), as well if there is one.
    """
    parts = [
        function(
            values[rows],
            offsets[samples.start : samples.stop + 1] - rows.start,
            *(() if log_prior is None else (log_prior[rows],)),
        )
        for samples, rows in module.blocks(offsets)
    ]
    return torch.cat(parts)


def predictor(module: AttentionModule, block: Samples) -> Tensor:
    """Return linear predictors of samples that go through the module together, (n, K)."""
    given = (block.values, block.offsets, block.covariates)
    # A user's own module need not accept offsets and row weights unless there are any.
    if block.log_prior is not None:
        return module(*given, block.offset, log_prior=block.log_prior)
    return module(*given) if block.offset is None else module(*given, block.offset)


@torch.no_grad()
def predictors(module: AttentionModule, part: Samples) -> Tensor:
    """Return linear predictors, (n, K), block by block."""
    blocks = (part.block(*slices) for slices in module.blocks(part.offsets))
    return torch.cat([predictor(module, block) for block in blocks])


def risk(module: AttentionModule, problem: Problem) -> float:
    """Return the mean loss of equation (obj)."""

    def losses(part: Samples) -> list[Tensor]:
        z = predictors(module, part)
        if part.family.couples_samples and not len(part.family.shape):  # no baseline is known yet
            return [part.risk_sets.loss_and_gradient(z[:, 0])[0]]
        return [(part.weights * part.family.loss(part.y, z)).sum()]

    return float(problem.total(losses)[0]) / problem.total_weight


def residual_dispersion(module: AttentionModule, problem: Problem) -> float:
    """Return the weighted mean of the unit dispersions of residuals, which is φ̂."""

    def units(part: Samples) -> list[Tensor]:
        found = part.family.unit_dispersion(part.y, predictors(module, part))
        return [(part.weights * found).sum()]

    return float(problem.total(units)[0]) / problem.total_weight


def backward(module: AttentionModule, part: Samples, how: Training, total_weight: float) -> Tensor:
    """Add the gradient of Σ w ℓ(y, z) / total_weight, block by block; return Σ w ℓ.

    The gradient of many samples thus needs the memory of one block.
    """
    if part.family.couples_samples and not how.separates_samples:
        return _backward_coupled(module, part, total_weight)
    total = part.y.new_zeros(())
    for slices in module.blocks(part.offsets):
        block = part.block(*slices)
        loss = (block.weights * how.losses(module, block)).sum()
        (loss / total_weight).backward()
        total += loss.detach()
    return total


def _backward_coupled(module: AttentionModule, part: Samples, total_weight: float) -> Tensor:
    """Add the gradient of an objective of all samples together; return the objective.

    Predictors of all samples are computed first. Then each block is differentiated in the direction
    of the objective's slope. If the data are large, blocks go through the module twice, so that
    intermediate results need not be kept.
    """
    blocks = [part.block(*slices) for slices in module.blocks(part.offsets)]
    with torch.set_grad_enabled(part.values.numel() <= KEPT_ENTRIES):
        found = [predictor(module, block) for block in blocks]
    loss, slope = part.risk_sets.loss_and_gradient(torch.cat(found)[:, 0].detach())
    slopes = (slope[:, None].to(part.dtype) / total_weight).split([len(z) for z in found])
    for block, z, own in zip(blocks, found, slopes, strict=True):
        (z if z.requires_grad else predictor(module, block)).backward(own)
    return loss


def train_lbfgs(module: AttentionModule, samples: Samples, how: Training) -> History:
    """Run L-BFGS to convergence, and warn if it is not reached."""
    history, minimum = run_lbfgs(module, samples, how)
    check_finite(minimum.value, len(history))
    if not minimum.is_converged:
        warn(
            f"L-BFGS stopped after {how.max_steps} steps before it converged: raise max_epochs or "
            "ridge.",
            ConvergenceWarning,
        )
    return history


def run_lbfgs(module: AttentionModule, samples: Samples, how: Training) -> tuple[History, Minimum]:
    """Run L-BFGS in float64, then Newton steps on the convex part, where L-BFGS is less exact.

    Responses are brought to unit size: the path of L-BFGS depends on the size of V relative to W.
    """
    dtype = samples.dtype
    module.to(torch.float64)
    original = samples.to(torch.float64)
    unit = original.scale**0.5
    scaled = original if unit == 1 else original.in_unit(unit)
    how.change_unit(module, unit)
    parameters = [p for p in module.parameters() if p.numel()]
    history: History = []

    def objective(vector: Tensor) -> tuple[Tensor, Tensor]:
        vector_to_parameters(vector, parameters)
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        penalty = how.penalty(module, scaled)
        penalty.backward()
        loss = backward(module, scaled, how, scaled.total_weight) / scaled.total_weight
        gradients = [torch.as_tensor(p.grad) for p in parameters]
        return loss + penalty.detach(), parameters_to_vector(gradients)

    def record(value: float) -> None:
        history.append(entry(len(history) + 1, how.in_unit(value, unit)))
        advance(f"loss {history[-1]['loss']:.5g}")

    start = parameters_to_vector(parameters).detach()
    with progress_bar("L-BFGS", how.max_steps, how.verbose) as advance:
        minimum = minimize_lbfgs(
            objective,
            start,
            how.max_steps,
            how.tolerance,
            memory=how.memory,
            after_step=record,
        )
    vector_to_parameters(minimum.x, parameters)
    how.change_unit(module, 1 / unit)
    if how.is_convex_in_effects:
        fit_values(module, original, how.ridge)
    module.to(dtype)
    return history, replace(minimum, value=how.in_unit(minimum.value, unit))


def entry(epoch: int, loss: float, validation_loss: float | None = None) -> dict[str, float]:
    """Return one line of the history."""
    line = {"epoch": epoch, "loss": loss}
    return line if validation_loss is None else {**line, "validation_loss": validation_loss}


def check_finite(loss: float, epoch: int) -> None:
    """Raise an error if the fit diverges."""
    if not np.isfinite(loss):
        raise DivergedError(
            f"the loss became {loss} at epoch {epoch}: lower learning_rate, raise temperature, "
            "or standardize the rows."
        )
