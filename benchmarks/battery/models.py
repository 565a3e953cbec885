"""Small models of every registered estimator, with every registered solver."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from diagatt.estimators.times import ReadsTimes
from diagatt.lifetimes import make_times
from diagatt.persistence import registered
from diagatt.solvers import SOLVERS

N, D = 24, 3
NAMES = ("age", "size", "007")
# What makes fits short, wherever a parameter of this name exists.
SHORT = {
    "folds": 2,
    "n_hidden": 4,
    "max_steps": 5,
    "max_epochs": 3,
    "max_iterations": 5,
    "random_state": 0,
}
METHODS = (
    *("predict", "predict_proba", "decision_function", "locate", "attention", "scores"),
    *("certainty", "transform", "restart_agreement", "coefficients"),
    "predict_survival_function",
)


def _drawn() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    # Whole numbers: every type of number holds them exactly.
    X = [rng.integers(-9, 10, (rng.integers(2, 5), D)).astype(float) for _ in range(N)]
    Z = rng.integers(-9, 10, (N, 2)).astype(float)
    return X, np.array([m[0] @ [1, 2, -1] for m in X]) + rng.normal(size=N), Z


X, NUMBERS, Z = _drawn()
LABELS = np.where(np.median(NUMBERS) < NUMBERS, "yes", "no")


def short(kind: Any, **more: Any) -> Any:
    """Make an object of the class whose fit is short."""
    names = kind._get_param_names()
    if "members" in names:
        inner = registered()[kind.__name__.replace("Blended", "DiagAtt")]
        own = short(inner, solver="likelihood")
        return kind([("one", own, None), ("two", clone(own), [0])], n_blocks=D, random_state=0)
    return kind(**{name: value for name, value in (SHORT | more).items() if name in names})


def estimators() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every estimator by name; those that take a solver once for each solver."""
    for name, kind in registered().items():
        if "solver" not in kind._get_param_names():
            yield name, lambda kind=kind: short(kind)
            continue
        for solver, own in SOLVERS.items():
            yield f"{name}({solver})", lambda kind=kind, own=own: short(kind, solver=short(own))


def responses(model: Any) -> np.ndarray:
    """Return what the estimator is fitted to."""
    if isinstance(model, ReadsTimes):
        return make_times(NUMBERS > 0, np.exp(NUMBERS / 10))
    return LABELS if is_classifier(model) else NUMBERS


def takes_covariates(model: Any) -> bool:
    """Whether `fit` of the estimator takes covariates."""
    return "covariates" in signature(model.fit).parameters


@cache
def fitted(name: str, named: bool = False, saved: bool = False, beside: bool = False) -> Any:
    """Return a fitted model: to frames with names, read from a file, with covariates."""
    model = dict(estimators())[name]()
    if saved:
        model = fitted(name, named, beside=beside)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "m")
            return type(model).load(Path(folder) / "m")
    given = {"covariates": pd.DataFrame(Z, columns=["sex", "dose"])} if beside else {}
    samples = [pd.DataFrame(m, columns=NAMES) for m in X] if named else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(samples, responses(model), **given)


def methods(model: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the methods of a fitted model that take new samples."""
    for name in METHODS:
        method = getattr(model, name, None)
        if method is None:
            continue
        if "y" in signature(method).parameters:  # it is shown the responses
            yield name, lambda new, ask=method: ask(new, y=responses(model))
        elif "return_array" in signature(method).parameters:
            yield name, partial(method, return_array=True)
        else:
            yield name, method


@cache
def expected(name: str, method: str, named: bool = False) -> Any:
    """Return the answer to the plain samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(methods(fitted(name, named)))[method](X)
