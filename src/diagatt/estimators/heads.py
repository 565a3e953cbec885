"""From an estimator's parameters to a fitted module: the solver, and the number of heads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from diagatt.estimators.contest import fit_auto
from diagatt.estimators.criteria import information_criteria, response_bic
from diagatt.estimators.diagonal_fit import (
    Fitted,
    fit_by_gradient,
    fit_by_likelihood,
    new_module,
)
from diagatt.selection import select
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.training import fit_values, risk

if TYPE_CHECKING:
    from diagatt.estimators.diagonal_base import _DiagAtt

# Numbers of heads that n_heads="auto" tries (supplement S7.2).
HEADS_TRIED = (1, 2, 3)


@torch.random.fork_rng(devices=[])  # seeds are our own; the user's generator stays as it is
def fit_diagonal(estimator: _DiagAtt, problem: AnyProblem, seed: int, start: Any = None) -> Fitted:
    """Fit with the asked number of heads, or with the number that `selection` chooses."""
    tried = _tried(estimator, problem)
    if len(tried) == 1 and estimator.n_heads != "auto":
        return _with_criteria(estimator, problem, tried[0], seed, start)
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


def _tried(estimator: _DiagAtt, problem: AnyProblem) -> list[int]:
    """Numbers of heads that compete."""
    if estimator.n_heads == "auto":
        return [
            R for R in HEADS_TRIED if problem.shortest >= R or estimator.coupling == "independent"
        ]
    given: Any = estimator.n_heads
    return [int(R) for R in given] if isinstance(given, list | tuple) else [int(given)]


def _with_criteria(
    estimator: _DiagAtt, problem: AnyProblem, n_heads: int, seed: int, start: Any, keep: bool = True
) -> Fitted:
    fit = fit_heads(estimator, problem, n_heads, seed, start, keep)
    line = information_criteria(fit.module, problem, fit.solver, fit.log_likelihood)
    return replace(fit, criteria=[{"n_heads": n_heads, **line}])


def fit_heads(
    estimator: _DiagAtt, problem: AnyProblem, n_heads: int, seed: int, start: Any, keep: bool = True
) -> Fitted:
    """Fit R heads with the asked solver; one-row samples are solved as the GLM they are."""
    if problem.has_one_row_samples_only:
        module = new_module(estimator, problem, n_heads)
        fit_values(module, problem, estimator.ridge)
        return Fitted(module, n_heads, "glm", [[]])
    if estimator.solver == "likelihood":
        return fit_by_likelihood(estimator, problem, n_heads, seed, keep=keep)
    if estimator.solver == "gradient":
        return fit_by_gradient(estimator, problem, n_heads, seed, start, keep)
    return fit_auto(estimator, problem, n_heads, seed, start, keep)
