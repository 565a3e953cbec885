"""From an estimator's parameters to fitted arrays: restarts, their average, the number of heads."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.selection import select
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient import fit_gradient
from diagatt.solvers.problem import Problem
from diagatt.solvers.training import GradientSettings, initialize, risk

if TYPE_CHECKING:
    from diagatt.estimators.diagonal import _DiagAtt

SOLVERS = ("gradient",)
OPTIMIZERS = ("auto", "adam", "lbfgs")
INITS = ("pooled", "zero")
ADAM_EPOCHS, LBFGS_EPOCHS = 40, 2000
# Numbers of heads that n_heads="auto" tries (supplement S7.2).
HEADS_TRIED = (1, 2, 3)


@dataclass
class Fitted:
    """The result of a fit.

    Heads of M averaged restarts stand restart by restart: head r of restart m is line m·R + r.
    """

    module: DiagonalAttention
    n_heads: int
    n_restarts: int
    history: list[list[dict[str, float]]]
    selection: list[dict[str, Any]] = field(default_factory=list)


def check_settings(estimator: _DiagAtt) -> None:
    """Refuse unknown names and impossible numbers, saying what to use instead."""
    choices = [("solver", SOLVERS), ("optimizer", OPTIMIZERS), ("init", INITS)]
    for name, allowed in choices:
        if getattr(estimator, name) not in allowed:
            raise ValueError(
                f"unknown {name} {getattr(estimator, name)!r}: choose one of {list(allowed)}."
            )
    heads = estimator.n_heads
    if heads != "auto" and (not isinstance(heads, int | np.integer) or heads < 1):
        raise ValueError(f"n_heads must be a positive integer or 'auto', got {heads!r}.")
    for name in ("temperature", "learning_rate", "init_scale", "tolerance"):
        if not getattr(estimator, name) > 0:
            raise ValueError(f"{name} must be positive, got {getattr(estimator, name)!r}.")
    for name in ("ridge", "score_ridge"):
        if not getattr(estimator, name) >= 0:
            raise ValueError(f"{name} must not be negative, got {getattr(estimator, name)!r}.")
    for name in ("row_dropout", "validation_fraction"):
        if not 0 <= getattr(estimator, name) < 1:
            raise ValueError(f"{name} must lie in [0, 1), got {getattr(estimator, name)!r}.")
    for name in ("batch_size", "max_epochs", "n_restarts", "patience", "checkpoint_every"):
        value = getattr(estimator, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}.")


def fit_diagonal(estimator: _DiagAtt, problem: Problem, seed: int, start: Any = None) -> Fitted:
    """Fit with the asked number of heads, or with the number that held-out samples choose."""
    if estimator.n_heads != "auto":
        return _fit_restarts(estimator, problem, int(estimator.n_heads), seed, start)

    def held_out_loss(n_heads: int, train: np.ndarray, held_out: np.ndarray) -> float:
        part, rest = (problem.take(torch.from_numpy(s)) for s in (train, held_out))
        return risk(_fit_restarts(estimator, part, n_heads, seed, None, keep=False).module, rest)

    n_heads, report = select(
        HEADS_TRIED, held_out_loss, problem.n_samples, estimator.selection, seed
    )
    fitted = _fit_restarts(estimator, problem, n_heads, seed, start)
    fitted.selection = [{"n_heads": r.pop("candidate"), **r} for r in report]
    return fitted


def _fit_restarts(
    estimator: _DiagAtt, problem: Problem, n_heads: int, seed: int, start: Any, keep: bool = True
) -> Fitted:
    # One seed a restart; the first does not depend on how many there are.
    seeds = np.random.SeedSequence(seed).generate_state(estimator.n_restarts)
    modules, history = [], []
    for number, restart_seed in enumerate(seeds):
        module = _new_module(estimator, problem, n_heads)
        settings = _settings(estimator, problem, module)
        if start is None:
            initialize(module, problem, settings, int(restart_seed))
        else:
            copy_parameters(start, module, restart=number)
        checkpoint = None
        if keep and estimator.checkpoint is not None:
            path = Path(estimator.checkpoint)
            path = path.with_name(f"{path.stem}-{number}{path.suffix}") if number else path
            checkpoint = Checkpoint(path, estimator.checkpoint_every)
        history.append(fit_gradient(module, problem, settings, int(restart_seed), checkpoint))
        modules.append(module)
    return Fitted(average(modules, problem), n_heads, len(modules), history)


def _new_module(estimator: _DiagAtt, problem: Problem, n_heads: int) -> DiagonalAttention:
    return DiagonalAttention(
        problem.n_features,
        n_heads,
        problem.n_outputs,
        problem.covariates.shape[1],
        temperature=estimator.temperature,
        parameterization=estimator.parameterization,
        rank=estimator.rank,
        score_form=estimator.score_form,
        value_bound=estimator.value_bound,
        score_bound=estimator.score_bound,
    ).to(problem.values)


def _settings(
    estimator: _DiagAtt, problem: Problem, module: DiagonalAttention
) -> GradientSettings:
    names = set(GradientSettings.__dataclass_fields__) - {"max_epochs"}
    settings = GradientSettings(**{name: getattr(estimator, name) for name in names})
    epochs = estimator.max_epochs
    if epochs is None:
        chosen = settings.chosen_optimizer(problem, module)
        epochs = LBFGS_EPOCHS if chosen == "lbfgs" else ADAM_EPOCHS
    return GradientSettings(**{**vars(settings), "max_epochs": epochs})


@torch.no_grad()
def copy_parameters(source: DiagonalAttention, target: DiagonalAttention, restart: int) -> None:
    """Start a module where an earlier fit ended (its restart, if it had several)."""
    heads = target.n_heads
    restarts = source.n_heads // heads
    lines = slice(restart % restarts * heads, (restart % restarts + 1) * heads)
    target.query_key.set_matrix(source.query_key.matrix()[lines])
    target.value.copy_(source.value[lines] * restarts)
    target.intercept.copy_(source.intercept)
    target.covariate.copy_(source.covariate)


@torch.no_grad()
def average(modules: list[DiagonalAttention], problem: Problem) -> DiagonalAttention:
    """Average of M fits: a diagonalized attention with M·R heads whose values are divided by M.

    Heads of later restarts are put in the order in which they attend like the first restart's.
    """
    M, first = len(modules), modules[0]
    result = DiagonalAttention(
        first.n_features,
        M * first.n_heads,
        first.n_outputs,
        len(first.covariate),
        temperature=first.temperature,
        score_form=first.score_form,
    ).to(first.value)
    reference = first.attention(problem.values, problem.offsets)
    orders = [_matching_order(reference, m, problem) for m in modules]
    matrices = [m.query_key.matrix()[o] for m, o in zip(modules, orders, strict=True)]
    result.query_key.set_matrix(torch.cat(matrices))
    values = [m.value[o] for m, o in zip(modules, orders, strict=True)]
    result.value.copy_(torch.cat(values) / M)
    result.intercept.copy_(torch.stack([m.intercept for m in modules]).mean(dim=0))
    result.covariate.copy_(torch.stack([m.covariate for m in modules]).mean(dim=0))
    return result


def _matching_order(reference: Tensor, module: DiagonalAttention, problem: Problem) -> list[int]:
    if module.n_heads == 1:
        return [0]
    overlap = reference.T @ module.attention(problem.values, problem.offsets)  # (R, R)
    return linear_sum_assignment(-overlap.cpu().numpy())[1].tolist()
