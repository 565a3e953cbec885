"""From an estimator's parameters to a fitted module: solvers, restarts, the number of heads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.estimators.averaging import average, copy_parameters
from diagatt.estimators.criteria import information_criteria, response_bic
from diagatt.selection import select
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient import fit_gradient
from diagatt.solvers.likelihood import LatentRows, LikelihoodSettings, to_module
from diagatt.solvers.problem import Problem
from diagatt.solvers.starts import fit_likelihood
from diagatt.solvers.training import GradientSettings, fit_values, initialize, risk

if TYPE_CHECKING:
    from diagatt.estimators.diagonal_base import _DiagAtt

ADAM_EPOCHS, LBFGS_EPOCHS = 20, 2000
# Numbers of heads that n_heads="auto" tries (supplement S7.2).
HEADS_TRIED = (1, 2, 3)


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


@torch.random.fork_rng(devices=[])  # seeds are our own; the user's generator stays as it is
def fit_diagonal(estimator: _DiagAtt, problem: Problem, seed: int, start: Any = None) -> Fitted:
    """Fit with the asked number of heads, or with the number that `selection` chooses."""
    if estimator.n_heads != "auto":
        return _with_criteria(estimator, problem, int(estimator.n_heads), seed, start)
    shortest = int(problem.offsets.diff().min())
    tried = [R for R in HEADS_TRIED if shortest >= R or estimator.coupling == "independent"]
    if estimator.selection == "bic":
        fits = [_with_criteria(estimator, problem, R, seed, None, keep=False) for R in tried]
        prices = [fit.criteria[0]["bic"] for fit in fits]
        if any(fit.log_likelihood is None for fit in fits):  # only responses are comparable
            prices = [response_bic(fit.module, problem, fit.solver) for fit in fits]
        best = fits[int(np.argmin(prices))]
        return replace(best, criteria=[line for fit in fits for line in fit.criteria])

    def held_out_loss(n_heads: int, train: np.ndarray, held_out: np.ndarray) -> float:
        part, rest = (problem.take(torch.from_numpy(s)) for s in (train, held_out))
        return risk(fit_heads(estimator, part, n_heads, seed, None, keep=False).module, rest)

    n_heads, report = select(tried, held_out_loss, problem.n_samples, estimator.selection, seed)
    fitted = _with_criteria(estimator, problem, n_heads, seed, start)
    losses = [{"n_heads": r.pop("candidate"), **r} for r in report]
    return replace(fitted, selection=losses + fitted.selection)


def _with_criteria(
    estimator: _DiagAtt, problem: Problem, n_heads: int, seed: int, start: Any, keep: bool = True
) -> Fitted:
    fit = fit_heads(estimator, problem, n_heads, seed, start, keep)
    line = information_criteria(fit.module, problem, fit.solver, fit.log_likelihood)
    return replace(fit, criteria=[{"n_heads": n_heads, **line}])


def fit_heads(
    estimator: _DiagAtt, problem: Problem, n_heads: int, seed: int, start: Any, keep: bool = True
) -> Fitted:
    """Fit R heads with the asked solver; one-row samples are solved as the GLM they are."""
    if problem.has_one_row_samples_only:
        module = new_module(estimator, problem, n_heads)
        fit_values(module, problem, estimator.ridge)
        return Fitted(module, n_heads, "glm", [[]])
    if estimator.solver == "likelihood":
        return fit_by_likelihood(estimator, problem, n_heads, seed)
    if estimator.solver == "gradient":
        return fit_by_gradient(estimator, problem, n_heads, seed, start, keep)
    from diagatt.estimators.contest import fit_auto

    return fit_auto(estimator, problem, n_heads, seed, start, keep)


def fit_by_likelihood(
    estimator: _DiagAtt,
    problem: Problem,
    n_heads: int,
    seed: int,
    start: LatentRows | None = None,
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
    fit = fit_likelihood(problem, settings, n_heads, seed, start)
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
    estimator: _DiagAtt, problem: Problem, n_heads: int, seed: int, start: Any, keep: bool = True
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
        checkpoint = None
        if keep and estimator.checkpoint is not None:
            path = Path(estimator.checkpoint)
            path = path.with_name(f"{path.stem}-{number}{path.suffix}") if number else path
            checkpoint = Checkpoint(path, estimator.checkpoint_every)
        history.append(fit_gradient(module, problem, settings, int(restart_seed), checkpoint))
        modules.append(module)
    averaged = average(modules, problem)
    return Fitted(averaged, n_heads, "gradient", history, n_restarts=len(modules))


def new_module(estimator: _DiagAtt, problem: Problem, n_heads: int) -> DiagonalAttention:
    """An untrained module of the asked form."""
    return DiagonalAttention(
        problem.n_features,
        n_heads,
        problem.n_outputs,
        problem.covariates.shape[1],
        temperature=estimator.temperature,
        parameterization=estimator.parameterization,
        rank=estimator.rank,
        score_form=estimator.score_form,
        coupling=estimator.coupling,
        value_bound=estimator.value_bound,
        score_bound=estimator.score_bound,
    ).to(problem.values)


def gradient_settings(
    estimator: _DiagAtt, problem: Problem, module: DiagonalAttention
) -> GradientSettings:
    """The estimator's parameters that concern training, with the number of epochs resolved."""
    names = set(GradientSettings.__dataclass_fields__) - {"max_epochs"}
    settings = GradientSettings(**{name: getattr(estimator, name) for name in names})
    epochs = estimator.max_epochs
    if epochs is None:
        chosen = settings.chosen_optimizer(problem, module)
        epochs = LBFGS_EPOCHS if chosen == "lbfgs" else ADAM_EPOCHS
    return replace(settings, max_epochs=epochs)
