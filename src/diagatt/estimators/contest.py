"""solver="auto": likelihood, gradient, and likelihood + polish compete."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.estimators.averaging import copy_parameters
from diagatt.estimators.criteria import SMALL_SAMPLE, response_bic
from diagatt.estimators.diagonal_fit import (
    Fitted,
    fit_by_gradient,
    fit_by_likelihood,
    gradient_settings,
)
from diagatt.selection import splits
from diagatt.solvers.gradient import fit_gradient
from diagatt.solvers.problem import Problem
from diagatt.solvers.training import risk

if TYPE_CHECKING:
    from diagatt.estimators.diagonal import _DiagAtt

logger = logging.getLogger(__name__)

POLISH_EPOCHS = 10
POLISH_RATE = 1e-3


def fit_auto(
    estimator: _DiagAtt, problem: Problem, n_heads: int, seed: int, start: Any, keep: bool
) -> Fitted:
    """Choose by a held-out part, or on small data by an information criterion; refit the winner."""
    if problem.n_samples < SMALL_SAMPLE:
        return _choose_by_criterion(estimator, problem, n_heads, seed, start, keep)
    train, held_out = next(splits(problem.n_samples, "holdout", seed))
    part, rest = (problem.take(torch.from_numpy(s)) for s in (train, held_out))
    likelihood = fit_by_likelihood(estimator, part, n_heads, seed)
    fits = {
        "likelihood": likelihood,
        "polish": polish(estimator, likelihood, part, seed),
        "gradient": fit_by_gradient(estimator, part, n_heads, seed, start, keep=False),
    }
    losses = {name: risk(fit.module, rest) for name, fit in fits.items()}
    logger.info("held-out losses: %s", losses)
    winner = min(losses, key=lambda name: losses[name])
    if winner == "gradient":
        fitted = fit_by_gradient(estimator, problem, n_heads, seed, start, keep)
    else:
        fitted = fit_by_likelihood(estimator, problem, n_heads, seed, likelihood.latent)
        if winner == "polish":
            fitted = polish(estimator, fitted, problem, seed)
    report = [{"solver": name, "held_out_loss": loss} for name, loss in losses.items()]
    return replace(fitted, selection=report + likelihood.selection)


def _choose_by_criterion(estimator, problem, n_heads, seed, start, keep) -> Fitted:
    fits = {
        "likelihood": fit_by_likelihood(estimator, problem, n_heads, seed),
        "gradient": fit_by_gradient(estimator, problem, n_heads, seed, start, keep),
    }
    bics = {name: response_bic(fit.module, problem, name) for name, fit in fits.items()}
    winner = min(bics, key=lambda name: bics[name])
    report = [{"solver": name, "bic": bic} for name, bic in bics.items()]
    return replace(fits[winner], selection=report + fits[winner].selection)


def polish(estimator: _DiagAtt, fitted: Fitted, problem: Problem, seed: int) -> Fitted:
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
    settings = replace(settings, max_epochs=POLISH_EPOCHS, learning_rate=POLISH_RATE)
    history = fit_gradient(module, problem, settings, seed)
    return replace(fitted, module=module, solver="polish", history=[*fitted.history, history])
