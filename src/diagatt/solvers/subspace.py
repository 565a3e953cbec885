r"""Rows that are too wide for d² parameters are fitted in a principal subspace.

A full W, or a covariance of rows, has d² entries: at d = 5000 it fills 200 MB, and a solver keeps
dozens of them. Rows of unit variance are then projected as the default does it
(`diagatt.rowmaps`), the solver fits what is left, and its parameters are converted to the original
features: with x' = (x − s)A, W = A W' Aᵀ keeps its two factors. Penalties weigh on the coefficients
of x'.

Constant features say nothing: they have no density, and large ones, such as a year, spoil the steps
of training. They are left out in the same way (`varying_features`), so that their coefficients are
0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from diagatt.attention.pullback import pulled_back, pulled_back_covariance, pushed_forward
from diagatt.rowmaps import MOST_WIDE, AffineMap, Full, RowMap, Scaled, Unit
from diagatt.solvers.base import Fitted, Model, Solver, with_errors
from diagatt.solvers.problem import Problem, Samples, row_weights

# Rows of a store that the subspace is fitted to, about.
ROWS_OF_STORE = 20_000


@dataclass(frozen=True)
class StateOfColumns:
    """The state of a fit to some columns, from which only a fit to the same ones can go on."""

    columns: tuple[int, ...]
    state: Any


def is_too_wide(problem: Problem) -> bool:
    """Return whether rows have too many features for parameters per pair of them."""
    return problem.n_features > MOST_WIDE


def fit_in_subspace(
    solver: Solver,
    problem: Problem,
    model: Model,
    *,
    seed: int,
    start: Fitted | None = None,
    **how: Any,
) -> Fitted:
    """Fit projected rows by the solver, and convert the fit to the original features."""
    rows = _subspace(solver, problem, model, seed)
    return fit_mapped(solver, rows, problem, model, seed=seed, start=start, **how)


def varying_features(problem: Problem, model: Model) -> RowMap | None:
    """Return the map to the features that vary; None if these are all, or if none varies.

    Scores without a constant may use a constant feature in its place. Features of rows on disk, or
    in the memory of several processes, are not compared.
    """
    here = problem.in_memory
    if here is None or problem.group.size > 1 or not model.score_form.has_constant:
        return None
    varies = here.values.amax(dim=0) > here.values.amin(dim=0)
    if bool(varies.all()) or not bool(varies.any()) or here.missing is not None:
        return None
    columns = torch.nonzero(varies)[:, 0]
    zero = torch.zeros(len(columns), dtype=torch.float64, device=columns.device)
    return Unit.of({"columns": columns, "shift": zero, "scale": zero + 1}, problem.n_features)


def fit_mapped(
    solver: Solver,
    rows: RowMap,
    problem: Problem,
    model: Model,
    *,
    seed: int,
    start: Fitted | None = None,
    keeps_state: bool = False,
    **how: Any,
) -> Fitted:
    """Fit mapped rows by the solver, and convert the fit to the original features.

    The solver's own state refers to mapped rows, so that only a fit with the same map can go on
    from it: `keeps_state` says that the map chooses columns, which are kept with the state.
    """
    affine = _affine(rows)
    columns = tuple(torch.nonzero(affine.matrix.any(dim=1))[:, 0].tolist())
    if start is not None:
        before = start.state
        same = keeps_state and isinstance(before, StateOfColumns) and before.columns == columns
        state = before.state if same else None
        start = replace(start, module=pushed_forward(start.module, affine), state=state)

    def projected(part: Samples) -> Samples:
        return replace(part, values=rows(part.values), missing=None)

    few = problem.changed(projected)
    fitted = with_errors(solver.fit(few, model, seed=seed, start=start, **how), few, model)
    found = in_original_features(fitted, rows, problem)
    found.module.to(problem.dtype)
    state = StateOfColumns(columns, fitted.state) if keeps_state else None
    return replace(found, state=state, row_gaussians=None)


def _subspace(solver: Solver, problem: Problem, model: Model, seed: int) -> RowMap:
    """Fit the row map that projects.

    Rows are not shifted where scores have no constant, nor where a none-row competes with scores
    that depend on the mean row: a shift would change them by what is the same for all other rows.
    """
    form = model.score_form
    shifts = form.has_constant and not (form.has_context and solver.allows_none)
    most = problem.n_samples
    if problem.in_memory is None:
        most = max(1, ROWS_OF_STORE * problem.n_samples // problem.n_rows)
    part = problem.sample(most, np.random.default_rng(seed))
    return (Full if shifts else Scaled).fitted_to(part.values, row_weights(part))


def _affine(rows: RowMap) -> AffineMap:
    affine = rows.affine()
    if affine is None:
        raise ValueError(f"{rows.name} rows have no coefficients of original features.")
    return affine


def in_original_features(fitted: Fitted, rows: RowMap, problem: Problem) -> Fitted:
    """Return a fit to mapped rows in the features of the problem, which come before the map."""
    affine = _affine(rows)
    covariance, log_likelihood = fitted.value_covariance, fitted.log_likelihood
    if covariance is not None:
        counts = (fitted.module.n_heads, problem.n_outputs)
        covariance = pulled_back_covariance(covariance, affine, *counts)
    if log_likelihood is not None:
        log_likelihood = _of_original_rows(log_likelihood, affine, problem)
    return replace(
        fitted,
        module=pulled_back(fitted.module, affine),
        value_covariance=covariance,
        log_likelihood=log_likelihood,
    )


def _of_original_rows(log_likelihood: float, affine: AffineMap, problem: Problem) -> float | None:
    """Return the log-likelihood of varying features before an invertible map, else None."""
    matrix = affine.matrix[affine.matrix.any(dim=1)]  # those of constant features are 0
    if matrix.shape[0] != matrix.shape[1]:
        return None

    def weighted_rows(part: Samples) -> list[torch.Tensor]:
        return [(part.weights.double() * part.row_mass).sum()]

    (count,) = problem.total(weighted_rows)
    return log_likelihood + float(count * torch.linalg.slogdet(matrix).logabsdet)
