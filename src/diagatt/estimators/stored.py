"""Estimators on stores: fitting in passes, and answers shard by shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from diagatt.certainty import Certainty
from diagatt.estimators.base import validate_weights
from diagatt.families import check_response
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import StoredProblem
from diagatt.stores import RowStore

if TYPE_CHECKING:
    from diagatt.estimators.diagonal_base import _DiagAtt

__all__ = ["READ_WHOLE", "by_shard", "check_given", "fit_store", "stored_classes"]

# Numbers (rows times features) up to which a store is read into memory and fitted there.
READ_WHOLE = 1_000_000


def by_shard(method: Callable) -> Callable:
    """Let a method of samples answer for a store: one shard after the other, put together.

    Covariates are the store's, where the method takes any.
    """
    takes_covariates = "covariates" in signature(method).parameters

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(X, RowStore):
            return method(self, X, *args, **kwargs)
        if any(given is not None for given in (*args, *kwargs.values())):
            raise ValueError("covariates were given beside a RowStore, which holds its own.")
        answers = []
        for part in X.parts():
            beside = (part.covariates,) if takes_covariates else ()
            answers.append(method(self, part.X, *beside))
        return _together(answers)

    return answer


def _together(answers: list) -> Any:
    """Lists, arrays, or certainties, one after the other."""
    first = answers[0]
    if isinstance(first, list):
        return [one for answer in answers for one in answer]
    if isinstance(first, Certainty):
        columns = [[getattr(a, f.name) for a in answers] for f in fields(first)]
        return Certainty(*(np.concatenate(column) for column in columns))
    return np.concatenate(answers)


def check_given(store: RowStore, **given: Any) -> None:
    """Refuse responses, weights or covariates beside a store, and a store without responses."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} was given beside a RowStore, which holds its own: leave {name} out, or "
                "write it into the store."
            )
    if not store.has_response:
        raise ValueError(f"{store.path} holds no responses: write the store with y to fit to it.")


def stored_classes(store: RowStore) -> np.ndarray:
    """Classes of samples that count, sorted; shard by shard, no rows are read."""
    found: set = set()
    for k in range(len(store.shards)):
        shard = store.select([k])  # columns alone are read, and verified
        y, weights = np.asarray(shard.responses()), shard.weights()
        found |= set(np.unique(y if weights is None else y[weights > 0]).tolist())
    return np.array(sorted(found))


def fit_store(estimator: _DiagAtt, store: RowStore, **given: Any) -> None:
    """Fit in passes over the shards; a store that is small is read whole."""
    check_given(store, **given)
    estimator._note_features(store)
    encode = estimator._encoder(store)
    if store.n_rows * store.n_features <= READ_WHOLE:
        whole = store.take(np.arange(len(store)))
        weights = validate_weights(whole.weights, len(store))
        estimator._fit(whole.X, encode(np.asarray(whole.y)), weights, whole.covariates)
        return
    estimator._check(store)
    family, n_outputs = estimator._fitted_family()
    kind, device = estimator._torch_dtype(store.dtype), torch.device(estimator.device)
    stored = StoredProblem(store, family, encode, n_outputs, kind, device)
    for part in stored.parts(ahead=0):
        check_response(family, part.y)
    stored_weights = store.weights()
    problem: Problem = stored
    if stored_weights is not None and not stored_weights.all():
        problem = stored.take(torch.from_numpy(np.flatnonzero(stored_weights)))
    estimator._fit_problem(problem)
