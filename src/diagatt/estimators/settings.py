"""Refusing settings that cannot work, before any work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from diagatt.attention.diagonal import COUPLINGS, SCORE_FORMS
from diagatt.attention.parameterizations import PARAMETERIZATIONS
from diagatt.ragged import RaggedRows
from diagatt.solvers.covariance import COVARIANCES
from diagatt.stores import RowStore

if TYPE_CHECKING:
    from diagatt.estimators.diagonal_base import _DiagAtt

CHOICES = {
    "solver": ("auto", "likelihood", "gradient"),
    "score_form": SCORE_FORMS,
    "coupling": COUPLINGS,
    "covariance": COVARIANCES,
    "parameterization": tuple(PARAMETERIZATIONS),
    "optimizer": ("auto", "adam", "lbfgs"),
    "init": ("pooled", "zero"),
    "dtype": (None, "float32", "float64"),
}


def check_settings(estimator: _DiagAtt, rows: RaggedRows | RowStore) -> None:
    """Refuse unknown names and impossible numbers, saying what to use instead."""
    for name, allowed in CHOICES.items():
        if getattr(estimator, name) not in allowed:
            raise ValueError(
                f"unknown {name} {getattr(estimator, name)!r}: choose one of {list(allowed)}."
            )
    for name in ("temperature", "learning_rate", "init_scale", "tolerance"):
        _require(estimator, name, "positive", lambda v: v > 0)
    for name in ("ridge", "score_ridge"):
        _require(estimator, name, "0 or positive", lambda v: v >= 0)
    for name in ("row_dropout", "value_dropout", "validation_fraction"):
        _require(estimator, name, "in [0, 1)", lambda v: 0 <= v < 1)
    for name in ("value_bound", "score_bound"):
        _require(estimator, name, "positive or None", lambda v: v is None or v > 0)
    _require(estimator, "shrinkage", "in [0, 1] or None", lambda v: v is None or 0 <= v <= 1)
    for name in ("n_restarts", "patience", "checkpoint_every"):
        _require(estimator, name, "at least 1", lambda v: v >= 1)
    for name in ("batch_size", "max_epochs", "rank"):
        _require(estimator, name, "at least 1 or None", lambda v: v is None or v >= 1)
    if estimator.solver != "gradient" and (estimator.value_bound or estimator.score_bound):
        raise ValueError("value_bound and score_bound are for solver='gradient': set it.")
    _check_heads(estimator, rows)


def _require(estimator: _DiagAtt, name: str, rule: str, holds) -> None:
    value = getattr(estimator, name)
    if not holds(value):
        raise ValueError(f"{name} must be {rule}, got {value!r}.")


def _check_heads(estimator: _DiagAtt, rows: RaggedRows | RowStore) -> None:
    heads = estimator.n_heads
    if isinstance(heads, str) and heads == "auto":
        return
    tried = heads if isinstance(heads, list | tuple) and len(heads) else [heads]
    for number in tried:
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise ValueError(
                f"n_heads must be a positive integer, several to try, or 'auto', got {heads!r}."
            )
    if estimator.coupling == "distinct":
        check_lengths(rows, int(max(tried)), "lower n_heads, drop short samples, or set ")


def check_lengths(
    rows: RaggedRows | RowStore, heads: int, advice: str = "drop short samples, or fit with "
):
    """Refuse samples that have fewer rows than heads that need distinct rows."""
    short, length = rows.shortest()
    if heads > length:
        raise ValueError(
            f"n_heads={heads} heads need {heads} distinct rows, but sample {short} has "
            f"{length}: {advice}coupling='independent'."
        )
