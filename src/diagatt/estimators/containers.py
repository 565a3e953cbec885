"""Containers of samples: stores, and objects of other libraries such as AnnData.

Estimators are fitted to a store in passes, and their methods are applied to it shard by shard. The
module that reads another container is imported when such a container is passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diagatt import coerce
from diagatt.certainty import Certainty
from diagatt.families import check_response
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import StoredProblem
from diagatt.stores import RowStore

#: Modules that read containers, by the package of the container's class or the ending of a file.
#: Each has a function ``opened(X, given, fits)``, a context manager that yields samples and the
#: other arguments.
SOURCES = {"anndata": "diagatt.kinds.cells.source", ".h5ad": "diagatt.kinds.cells.source"}
# Entries (rows times features) up to which a store is read into memory and fitted there.
READ_WHOLE = 1_000_000
# Arguments of which every shard has its own.
_PER_SAMPLE = ("self", "X", "covariates")


def from_sources(method: Callable) -> Callable:
    """Let a method of samples take a container, with keyword arguments for how to read it."""

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **given: Any) -> Any:
        is_file = isinstance(X, str | Path)
        home = SOURCES.get(Path(X).suffix if is_file else type(X).__module__.split(".")[0])
        if home is None:
            return method(self, X, *args, **given)
        if args:
            raise TypeError(
                f"with {'a file' if is_file else type(X).__name__}, name every other argument: "
                f'{method.__name__}(adata, sample_key="patient", …).'
            )
        with import_module(home).opened(X, given, method.__name__ == "fit") as (rows, rest):
            return method(self, rows, **rest)

    return answer


def by_shard(method: Callable) -> Callable:
    """Let a method of samples take a store: it is called for one shard after the other.

    The results are joined. A method with covariates is given those of the store.
    """
    takes_covariates = "covariates" in signature(method).parameters

    @from_sources
    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(X, RowStore):
            return method(self, X, *args, **kwargs)
        given = signature(method).bind(self, X, *args, **kwargs).arguments
        if given.get("covariates") is not None:
            raise ValueError("covariates must not be passed with a RowStore: it contains its own.")
        further = {name: value for name, value in given.items() if name not in _PER_SAMPLE}
        answers = []
        for part in X.parts():
            own = {"covariates": part.named_covariates} if takes_covariates else {}
            answers.append(method(self, part.X, **own, **further))
        return _joined(answers)

    return answer


def _joined(answers: list) -> Any:
    """Join lists, arrays or certainties, one after the other."""
    first = answers[0]
    if isinstance(first, list):
        return [one for answer in answers for one in answer]
    if isinstance(first, Certainty):
        columns = [[getattr(a, f.name) for a in answers] for f in fields(first)]
        return Certainty(*map(_joined, columns))
    if first is None or isinstance(first, float):  # the same for all
        return first
    return np.concatenate(answers)


def check_given(store: RowStore, **given: Any) -> None:
    """Refuse responses, weights or covariates given with a store, and a store without responses."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} must not be passed with a RowStore, which contains its own: leave {name} "
                "out, or write it into the store."
            )
    if not store.has_response:
        raise ValueError(f"{store.path} holds no responses: write the store with y to fit to it.")


def stored_classes(store: RowStore) -> np.ndarray:
    """Return the sorted classes of samples of positive weight, without reading rows."""
    found: set = set()
    for k in range(len(store.shards)):
        shard = store.select([k])  # columns alone are read, and verified
        y, weights = np.asarray(shard.responses()), shard.weights()
        found |= set(np.unique(y if weights is None else y[weights > 0]).tolist())
    return np.array(sorted(found))


def stored_label_means(store: RowStore) -> np.ndarray:
    """Return the share of ones of every label, (q,), shard by shard; refuse other numbers."""
    ones, total = 0.0, 0.0
    for k in range(len(store.shards)):
        shard = store.select([k])
        y, weights = np.asarray(shard.responses()), shard.weights()
        table = coerce.labels(y, len(y), y.shape[1])
        weights = np.ones(len(y)) if weights is None else weights
        ones, total = ones + weights @ table, total + weights.sum()
    return np.asarray(ones / total)


def is_small(store: RowStore) -> bool:
    """Return whether the store is read into memory and fitted there."""
    return store.n_rows * store.n_features <= READ_WHOLE


def counted_samples(problem: StoredProblem) -> Problem:
    """Check all responses and return the problem without samples of weight 0."""
    for part in problem.parts(ahead=0):
        check_response(problem.family, part.y)
    weights = problem.store.weights()
    if weights is None or weights.all():
        return problem
    return problem.take(torch.from_numpy(np.flatnonzero(weights)))
