"""One solver, a given number of heads: from an estimator's parameters to a fitted module."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.estimators.averaging import average, copy_parameters
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient import fit_gradient
from diagatt.solvers.likelihood import LatentRows, LikelihoodSettings, to_module
from diagatt.solvers.starts import fit_likelihood
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.training import GradientSettings, initialize

if TYPE_CHECKING:
    from diagatt.estimators.diagonal_base import _DiagAtt

ADAM_EPOCHS, LBFGS_EPOCHS = 20, 2000


@dataclass
class Fitted:
    """The result of a fit.

    Heads of M averaged restarts stand restart by restart: head r of restart m is line m·R + r.
    """

    module: DiagonalAttention
    n_heads: int
    solver: str
    history: list[list[dict[str, float]]]
    n_restarts: int = 1
    log_likelihood: float | None = None
    latent: LatentRows | None = None
    value_se: torch.Tensor | None = None  # of (V, b, γ)
    criteria: list[dict[str, Any]] = field(default_factory=list)
    selection: list[dict[str, Any]] = field(default_factory=list)


def fit_by_likelihood(
    estimator: _DiagAtt,
    problem: AnyProblem,
    n_heads: int,
    seed: int,
    start: LatentRows | None = None,
    keep: bool = True,
) -> Fitted:
    """Maximum likelihood of the latent-row model."""
    settings = LikelihoodSettings(
        score_form=estimator.score_form,
        coupling=estimator.coupling,
        covariance=estimator.covariance,
        covariance_rank=estimator.rank or 2,
        shrinkage=estimator.shrinkage,
        ridge=estimator.ridge,
        verbose=estimator.verbose,
    )
    checkpoint = _checkpoint(estimator) if keep else None
    fit = fit_likelihood(problem, settings, n_heads, seed, start, checkpoint)
    module = to_module(fit.model, problem, settings)
    return Fitted(
        module,
        n_heads,
        "likelihood",
        [fit.history],
        log_likelihood=fit.log_likelihood,
        latent=fit.model,
        value_se=fit.standard_errors,
        selection=fit.starts,
    )


def fit_by_gradient(
    estimator: _DiagAtt, problem: AnyProblem, n_heads: int, seed: int, start: Any, keep: bool = True
) -> Fitted:
    """Empirical risk minimization from one or several starts, averaged."""
    # One seed a restart; the first does not depend on how many there are.
    seeds = np.random.SeedSequence(seed).generate_state(estimator.n_restarts)
    modules, history = [], []
    for number, restart_seed in enumerate(seeds):
        module = new_module(estimator, problem, n_heads)
        settings = gradient_settings(estimator, problem, module)
        if start is None:
            initialize(module, problem, settings, int(restart_seed))
        else:
            copy_parameters(start, module, restart=number)
        checkpoint = _checkpoint(estimator, number) if keep else None
        history.append(fit_gradient(module, problem, settings, int(restart_seed), checkpoint))
        modules.append(module)
    averaged = average(modules, problem)
    return Fitted(averaged, n_heads, "gradient", history, n_restarts=len(modules))


def _checkpoint(estimator: _DiagAtt, number: int = 0) -> Checkpoint | None:
    """The file that was asked for; later restarts have a number in its name."""
    if estimator.checkpoint is None:
        return None
    path = Path(estimator.checkpoint)
    path = path.with_name(f"{path.stem}-{number}{path.suffix}") if number else path
    return Checkpoint(path, estimator.checkpoint_every)


def new_module(estimator: _DiagAtt, problem: AnyProblem, n_heads: int) -> DiagonalAttention:
    """An untrained module of the asked form."""
    return DiagonalAttention(
        problem.n_features,
        n_heads,
        problem.n_outputs,
        problem.n_covariates,
        temperature=estimator.temperature,
        parameterization=estimator.parameterization,
        rank=estimator.rank,
        score_form=estimator.score_form,
        coupling=estimator.coupling,
        value_bound=estimator.value_bound,
        score_bound=estimator.score_bound,
    ).to(problem.device, problem.dtype)


def gradient_settings(
    estimator: _DiagAtt, problem: AnyProblem, module: DiagonalAttention
) -> GradientSettings:
    """The estimator's parameters that concern training, with the number of epochs resolved."""
    names = set(GradientSettings.__dataclass_fields__) - {"max_epochs"}
    settings = GradientSettings(**{name: getattr(estimator, name) for name in names})
    epochs = estimator.max_epochs
    if epochs is None:
        chosen = settings.chosen_optimizer(problem, module)
        epochs = LBFGS_EPOCHS if chosen == "lbfgs" else ADAM_EPOCHS
    return replace(settings, max_epochs=epochs)
