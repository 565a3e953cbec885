"""solver="auto": likelihood, likelihood + polish, gradient, and no attention at all compete."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.estimators.averaging import copy_parameters
from diagatt.estimators.criteria import SMALL_SAMPLE, response_bic
from diagatt.estimators.diagonal_fit import (
    Fitted,
    fit_by_gradient,
    fit_by_likelihood,
    gradient_settings,
    new_module,
)
from diagatt.segments import map_blocks
from diagatt.selection import splits
from diagatt.solvers.gradient import fit_gradient
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.training import fit_values

if TYPE_CHECKING:
    from diagatt.estimators.diagonal_base import _DiagAtt

logger = logging.getLogger(__name__)

# Samples that the contestants train on; the winner is refitted on all.
CONTEST_SAMPLES = 4000
# Samples at most that they are compared on; an eighth of the data, if that is less.
HELD_OUT_SAMPLES = 20_000
POLISH_EPOCHS = 10
POLISH_RATE = 3e-4


def fit_auto(
    estimator: _DiagAtt, problem: AnyProblem, n_heads: int, seed: int, start: Any, keep: bool
) -> Fitted:
    """Choose by a held-out part, or on small data by an information criterion; refit the winner."""
    if problem.n_samples < SMALL_SAMPLE:
        return _choose_by_criterion(estimator, problem, n_heads, seed, start, keep)
    train, held_out = _samples_of_the_contest(problem, seed)
    part, rest = (problem.load(torch.from_numpy(s)) for s in (train, held_out))
    likelihood = fit_by_likelihood(estimator, part, n_heads, seed, keep=False)
    fits = {
        "likelihood": likelihood,
        "polish": polish(estimator, likelihood, part, seed),
        "gradient": fit_by_gradient(estimator, part, n_heads, seed, start, keep=False),
        "uniform": fit_uniform(estimator, part, n_heads),
    }
    losses = {name: _sample_losses(fit.module, rest) for name, fit in fits.items()}
    means = {name: float(loss.mean()) for name, loss in losses.items()}
    logger.info("held-out losses: %s", means)
    winner = _agreed(_champion(losses), list(fits), problem)
    fitted = _refit(winner, estimator, problem, n_heads, seed, start, keep, likelihood)
    report = [{"solver": name, "held_out_loss": loss} for name, loss in means.items()]
    return replace(fitted, selection=report + likelihood.selection)


def _champion(losses: dict[str, Tensor]) -> str:
    """The simplest contestant that none of the others beats by a standard error.

    From simple to complex, a challenger takes over if its samples' losses are smaller by more
    than one standard error of the mean difference.
    """
    champion = "uniform"
    for challenger in ("likelihood", "polish", "gradient"):
        gain = losses[champion] - losses[challenger]
        if float(gain.mean()) > float(gain.std()) / len(gain) ** 0.5:
            champion = challenger
    return champion


def _samples_of_the_contest(problem: AnyProblem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the samples that contestants train on, and of those they are compared on."""
    trained = min(CONTEST_SAMPLES, problem.most_in_memory)
    compared = min(HELD_OUT_SAMPLES, problem.most_in_memory)
    generator, n = np.random.default_rng(seed), problem.n_samples
    if n // 8 > compared:  # nothing of the length of n is made
        drawn = generator.choice(n, trained + compared, replace=False)
        return np.sort(drawn[:trained]), np.sort(drawn[trained:])
    train, held_out = next(splits(n, "holdout", seed))
    if len(train) > trained:
        train = np.sort(generator.choice(train, trained, replace=False))
    return train, held_out


def _agreed(winner: str, names: list[str], problem: AnyProblem) -> str:
    """What the first of several processes found: rounding may differ between machines."""
    (number,) = problem.group.agree([torch.tensor(names.index(winner))])
    return names[int(number)]


def _refit(winner, estimator, problem, n_heads, seed, start, keep, likelihood) -> Fitted:
    if winner == "gradient":
        return fit_by_gradient(estimator, problem, n_heads, seed, start, keep)
    if winner == "uniform":
        return fit_uniform(estimator, problem, n_heads)
    fitted = fit_by_likelihood(estimator, problem, n_heads, seed, likelihood.latent, keep)
    return polish(estimator, fitted, problem, seed) if winner == "polish" else fitted


def _choose_by_criterion(estimator, problem, n_heads, seed, start, keep) -> Fitted:
    fits = {
        "likelihood": fit_by_likelihood(estimator, problem, n_heads, seed, keep=False),
        "gradient": fit_by_gradient(estimator, problem, n_heads, seed, start, keep),
        "uniform": fit_uniform(estimator, problem, n_heads),
    }
    bics = {name: response_bic(fit.module, problem, name) for name, fit in fits.items()}
    winner = min(bics, key=lambda name: bics[name])
    report = [{"solver": name, "bic": bic} for name, bic in bics.items()]
    return replace(fits[winner], selection=report + fits[winner].selection)


@torch.no_grad()
def _sample_losses(module: DiagonalAttention, problem: Problem) -> Tensor:
    z = map_blocks(module, problem.values, problem.offsets, problem.covariates)
    weight = problem.weights / problem.weights.mean()
    return weight * problem.family.loss(problem.y, z)


@torch.no_grad()
def fit_uniform(estimator: _DiagAtt, problem: AnyProblem, n_heads: int) -> Fitted:
    """W = 0: every row counts alike, the model is the GLM of mean rows."""
    module = new_module(estimator, problem, n_heads)
    for parameter in module.parameters():
        parameter.zero_()
    fit_values(module, problem, estimator.ridge, start_from_zero=True)
    return Fitted(module, n_heads, "uniform", [[]])


def polish(estimator: _DiagAtt, fitted: Fitted, problem: AnyProblem, seed: int) -> Fitted:
    """Train on from a likelihood fit, on the family's own loss."""
    old = fitted.module
    module = DiagonalAttention(
        old.n_features,
        old.n_heads,
        old.n_outputs,
        len(old.covariate),
        score_form=old.score_form,
        coupling=old.coupling,
    ).to(old.value)
    copy_parameters(old, module, restart=0)
    settings = gradient_settings(estimator, problem, module)
    settings = replace(
        settings, optimizer="adam", max_epochs=POLISH_EPOCHS, learning_rate=POLISH_RATE
    )
    history = fit_gradient(module, problem, settings, seed)
    return replace(
        fitted,
        module=module,
        solver="polish",
        history=[*fitted.history, history],
        log_likelihood=None,
        value_se=None,
    )
