"""Which intervals of coefficients hold the truth, in single fits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.inference_designs import (
    COEFFICIENTS,
    MANY,
    OF_HEADS,
    SIZES,
    active,
    clustered,
    two_active,
    wrong_link,
)
from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.families import get_family
from diagatt.solvers import Likelihood, Mixture
from diagatt.solvers.glm import fit_linear
from diagatt.stores import RowStore

SOLVERS = {"mixture": Mixture, "likelihood": Likelihood}


def model_of(family: str, solver: Any, seed: int) -> Any:
    """Return an estimator of the family."""
    if family == "bernoulli":
        return DiagAttClassifier(solver=solver, random_state=seed)
    return DiagAttRegressor(solver=solver, family=family, random_state=seed)


def coverage(shape: str, family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return which 95 % intervals of coefficients hold the truth."""
    X, y, _ = active(shape, family, 400, seed)
    model = model_of(family, SOLVERS[solver](), seed).fit(X, y)
    return _covered_by(model, SIZES[family] * COEFFICIENTS)


def coverage_of_groups(family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return which intervals hold the truth where samples of one group depend on each other.

    Beside them, which do if the fit is not given the groups.
    """
    (X, y, _), group = clustered(family, 400, seed)
    truth = SIZES[family] * COEFFICIENTS
    found = _covered_by(model_of(family, SOLVERS[solver](), seed).fit(X, y, groups=group), truth)
    without = _covered_by(model_of(family, SOLVERS[solver](), seed).fit(X, y), truth)
    return found | {"covered without groups": without["covered"]}


def coverage_of_two_heads(family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return which intervals of two heads hold the truth; heads are in the order that fits best."""
    X, y, _ = two_active(family, 400, seed)
    model = model_of(family, SOLVERS[solver](), seed).set_params(n_heads=2).fit(X, y)
    orders = [SIZES[family] * OF_HEADS, SIZES[family] * OF_HEADS[::-1]]
    truth = min(orders, key=lambda order: np.square(model.value_ - order).sum())
    return _covered_by(model, truth.ravel())


def coverage_of_stores(family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return which intervals of a fit to a store hold the truth."""
    X, y, _ = active("well", family, 400, seed)
    with TemporaryDirectory() as folder:
        store = RowStore.from_rows(Path(folder) / "store", X, y)
        model = model_of(family, SOLVERS[solver](), seed).fit(store)
    return _covered_by(model, SIZES[family] * COEFFICIENTS)


def wrongly_linked(family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return which intervals hold what the fit looks for, and what a GLM of the active row does.

    The two differ: where the link is wrong, responses also mislead about which row is active.
    """
    X, y, _ = wrong_link(family, 400, seed)
    model = model_of(family, SOLVERS[solver](), seed).fit(X, y)
    found = _covered_by(model, _limit(family, solver))
    return found | {"covered, GLM of active rows": _covered_by(model, _glm(family))["covered"]}


@cache
def _limit(family: str, solver: str) -> np.ndarray:
    """Return the coefficients that a fit to many samples with a wrong link finds."""
    X, y, _ = wrong_link(family, MANY // 20, 10**6)
    return model_of(family, SOLVERS[solver](), 0).fit(X, y).value_[0]


@cache
def _glm(family: str) -> np.ndarray:
    """Return the coefficients of the family's own link if the active row is known."""
    X, y, place = wrong_link(family, MANY, 10**6)
    rows = torch.from_numpy(X[np.arange(MANY), place])
    response = torch.from_numpy(y.astype(float))
    law, weights = get_family(family), torch.ones(MANY, dtype=torch.float64)
    return fit_linear(law, rows, response, weights, ridge=0.0)[0][:, 0].numpy()


def _covered_by(model: Any, truth: np.ndarray) -> dict[str, Any]:
    if model.value_se_ is None:
        return {"covered": None, "note": model.errors_note_}
    error = np.abs(model.value_.ravel() - truth) / model.value_se_[: len(truth)]
    covered = (error < 1.959964).astype(float).tolist()
    return {"covered": covered, "se": float(np.mean(model.value_se_[: len(truth)]))}
