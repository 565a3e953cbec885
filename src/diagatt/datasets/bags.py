"""Bags of rows from public sources, under one roof: what is known about them, and by which name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diagatt.ragged import RaggedRows

TASKS = ("binary", "multiclass", "regression", "survival")


@dataclass(frozen=True, eq=False)
class Bags:
    """Samples with their responses, and what is known about them.

    Attributes
    ----------
    name : str
        What `load_bags` calls the set.
    X : RaggedRows
    y : array of shape (n,)
        Class labels, numbers, or a structured array of events and times.
    task : {"binary", "multiclass", "regression", "survival"}
        In binary sets the positive class is 1.
    groups : array of shape (n,), optional
        Samples of one group (one scaffold, one pool of source rows) must not be separated by a
        split.
    row_labels : bool array of shape (n_rows,), optional
        Which of the packed rows decide the response; a sample may have none, one or several.
    covariates : array of shape (n, n_covariates), optional
        Numbers that are known about a sample in addition to its rows.
    family : str
        Response distribution; "auto" is bernoulli, multinomial or gaussian.
    description, licence, source : str
        What samples and rows are, the terms of use, and where the data come from.
    """

    name: str
    X: RaggedRows
    y: np.ndarray = field(repr=False)
    task: str
    groups: np.ndarray | None = field(default=None, repr=False)
    row_labels: np.ndarray | None = field(default=None, repr=False)
    covariates: np.ndarray | None = field(default=None, repr=False)
    family: str = "auto"
    description: str = field(default="", repr=False)
    licence: str = field(default="", repr=False)
    source: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together."""
        if self.task not in TASKS:
            raise ValueError(f"task={self.task!r} of {self.name} must be one of {TASKS}.")
        lengths = {"y": len(self.X), "groups": len(self.X), "covariates": len(self.X)}
        for part, expected in (lengths | {"row_labels": self.X.n_rows}).items():
            entries = getattr(self, part)
            if entries is not None and len(entries) != expected:
                raise ValueError(
                    f"{part} of {self.name} has {len(entries)} entries, not {expected}."
                )
        if self.task == "binary" and set(np.unique(self.y)) != {0, 1}:
            raise ValueError(f"{self.name} is binary: its responses must be 0 and 1, both present.")

    def __len__(self) -> int:
        return len(self.X)

    @property
    def classifies(self) -> bool:
        """Whether responses are classes."""
        return self.task in ("binary", "multiclass")

    def key_rows(self) -> list[np.ndarray]:
        """Return the indices of the rows that decide, one (possibly empty) array per sample."""
        if self.row_labels is None:
            raise ValueError(f"it is not known which rows of {self.name} decide.")
        parts = np.split(self.row_labels, self.X.offsets[1:-1])
        return [np.flatnonzero(part) for part in parts]


#: Loaders by the name of their set.
BAGS: dict[str, Callable[..., Bags]] = {}


def provides(*names: str) -> Callable[[Callable[..., Bags]], Callable[..., Bags]]:
    """Register a loader for sets of these names; its first argument is the name."""

    def register(loader: Callable[..., Bags]) -> Callable[..., Bags]:
        BAGS.update(dict.fromkeys(names, loader))
        return loader

    return register


def bags_names() -> list[str]:
    """Return the names that `load_bags` knows.

    Examples
    --------
    >>> from diagatt import datasets
    >>> "musk1" in datasets.bags_names()
    True
    """
    return list(BAGS)


def load_bags(name: str, **options: Any) -> Bags:
    """Load a set of bags by name.

    Real sets are read from files in packages of others, without a download and without importing
    them; if a package is missing, one sentence says what to install. Drawn sets are made from
    scikit-learn's data or simulated, and take `n` and `seed`.

    Parameters
    ----------
    name : str
        One of `bags_names`.
    **options
        Arguments of the set's loader: ``n`` and ``seed`` for drawn sets.

    Returns
    -------
    Bags

    Examples
    --------
    >>> from diagatt import datasets
    >>> bags = datasets.load_bags("digits", n=50, seed=0)
    >>> bags.task, len(bags), bags.X.n_features
    ('binary', 50, 64)
    >>> bags.key_rows()[0].size  # the first bag holds one nine
    1
    """
    if name not in BAGS:
        raise ValueError(f"unknown bags {name!r}: choose among {', '.join(BAGS)}.")
    return BAGS[name](name, **options)
