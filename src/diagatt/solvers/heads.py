"""The count of heads: fit the given count, or compare several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from diagatt.selection import select
from diagatt.solvers.base import Fitted, Model, Solver
from diagatt.solvers.criteria import information_criteria, response_bic
from diagatt.solvers.crossfit import head_test
from diagatt.solvers.gradient.train import risk
from diagatt.solvers.problem import Problem

# Counts of heads that n_heads="auto" tries (supplement S7.2).
HEADS_TRIED = (1, 2, 3)

#: Fits a model to a problem; the flag says that the fit is the last one, which alone may write a
#: checkpoint or continue from a start.
Fit = Callable[[Problem, Model, bool], Fitted]


def heads_to_try(n_heads: int | str | Sequence[int], model: Model, problem: Problem) -> list[int]:
    """Return the counts of heads to compare."""
    if isinstance(n_heads, str):
        return [R for R in HEADS_TRIED if replace(model, n_heads=R).least_rows <= problem.shortest]
    return [int(R) for R in n_heads] if isinstance(n_heads, list | tuple) else [int(n_heads)]  # type: ignore[arg-type]


def fit_heads(
    n_heads: int | str | Sequence[int],
    model: Model,
    problem: Problem,
    fit: Fit,
    selection: str | int,
    seed: int,
    solver: Solver | None = None,
) -> tuple[Fitted, int, list[dict[str, Any]]]:
    """Fit with the given count of heads, or with the count that `selection` chooses.

    Returns
    -------
    fitted : Fitted
    n_heads : int
    criteria : list of dicts
        Log-likelihood, AIC and BIC by count of heads.
    """
    models = [replace(model, n_heads=R) for R in heads_to_try(n_heads, model, problem)]
    if len(models) == 1 and n_heads != "auto":
        return _with_criteria(fit(problem, models[0], True), models[0], problem)
    if selection == "test":
        chosen = _tested(models, problem, solver, seed)
        return _with_criteria(fit(problem, chosen, True), chosen, problem)
    if selection == "auto" and len(models) > 1 and solver is not None and solver.holds_out:
        return _compared_out_of_fold(models, problem, fit)
    if selection == "bic":
        fits = [_with_criteria(fit(problem, tried, False), tried, problem) for tried in models]
        prices = [criteria[0]["bic"] for _, _, criteria in fits]
        if any(fitted.log_likelihood is None for fitted, _, _ in fits):
            # Likelihoods of rows and responses do not compare with those of responses alone.
            prices = [response_bic(fitted, _with_shape(fitted, problem)) for fitted, _, _ in fits]
        fitted, R, _ = fits[int(np.argmin(prices))]
        return fitted, R, [line for _, _, criteria in fits for line in criteria]

    def held_out_loss(tried: Model, train: np.ndarray, held_out: np.ndarray) -> float:
        part, rest = (problem.take(torch.from_numpy(s)) for s in (train, held_out))
        fitted = fit(part, tried, False)
        return risk(fitted.predictor, _with_shape(fitted, rest))

    scheme = "holdout" if selection == "auto" else selection
    chosen, report = select(models, held_out_loss, problem.n_samples, scheme, seed)
    fitted, R, criteria = _with_criteria(fit(problem, chosen, True), chosen, problem)
    losses = [{"n_heads": line.pop("candidate").n_heads, **line} for line in report]
    return replace(fitted, report=losses + fitted.report), R, criteria


def _compared_out_of_fold(
    models: list[Model], problem: Problem, fit: Fit
) -> tuple[Fitted, int, list[dict[str, Any]]]:
    """Return the fit from which on more heads do not improve predictions out of fold.

    Fits of all counts have the same folds, so that their losses are compared sample by sample.
    """
    lines: list[dict[str, Any]] = []
    losses: torch.Tensor | None = None  # of the best fit so far
    for tried in models:
        fitted = fit(problem, tried, False)
        unseen = fitted.out_of_fold
        found = None if unseen is None else unseen.losses()
        if found is not None:
            lines.append({"n_heads": tried.n_heads, "loss": float(found.mean())})
        if losses is not None and (found is None or not _is_clear(losses - found)):
            break
        best, chosen, losses = fitted, tried, found
        if losses is None:  # the fit has no attention, so that there is nothing to compare
            break
    fitted, R, criteria = _with_criteria(best, chosen, problem)
    return replace(fitted, report=lines + fitted.report), R, criteria


def _is_clear(gain: torch.Tensor) -> bool:
    """Return whether the mean gain of samples exceeds its standard error."""
    return float(gain.mean()) > float(gain.std()) / len(gain) ** 0.5


def _tested(models: list[Model], problem: Problem, solver: Solver | None, seed: int) -> Model:
    """Return the first model to which a further head adds nothing, by tests at 5 %."""
    if solver is None:
        raise ValueError("selection='test' needs a solver that can be held out.")
    for less, more in pairwise(models):
        if more.n_heads != less.n_heads + 1:
            raise ValueError(
                "selection='test' compares counts of heads that follow each other, such as "
                "n_heads=[1, 2, 3]."
            )
        if not head_test(solver, problem, more, seed).is_found:
            return less
    return models[-1]


def _with_criteria(
    fitted: Fitted, model: Model, problem: Problem
) -> tuple[Fitted, int, list[dict[str, Any]]]:
    line = information_criteria(fitted, _with_shape(fitted, problem))
    return fitted, model.n_heads, [{"n_heads": model.n_heads, **line}]


def _with_shape(fitted: Fitted, problem: Problem) -> Problem:
    """Return the problem with the shape of the family that belongs to the fit."""
    return problem if fitted.family is None else problem.with_family(fitted.family)
