"""Outer splits: fixed, the same for every method, and stored with the library.

Classes are stratified, groups stay together. Five folds; below 300 samples three times over. The
splits of the bench's own sets stand in ``splits.json``, a digit per sample that names its test
fold, with a fingerprint of the data that they were made for: neither another version of a package
nor of scikit-learn can move a sample unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from diagatt.bench.sets import BagSet, load_set
from diagatt.datasets.bags import Bags
from diagatt.resampling import draw_folds

N_FOLDS = 5
N_REPEATS = 3  # how often the folds of small sets are drawn
SMALL = 300
STORED = "splits.json"


def split(chosen: BagSet, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples of the training and the test part of a split.

    Split ``number`` tests fold ``number % 5`` of repeat ``number // 5``.
    """
    if chosen.fixed:
        n = len(load_set(chosen))
        return np.arange(n // 2), np.arange(n // 2, n)
    folds = _folds(chosen)
    if not 0 <= number < N_FOLDS * len(folds):
        raise ValueError(f"{chosen.name} has splits 0 to {N_FOLDS * len(folds) - 1}, not {number}.")
    fold = folds[number // N_FOLDS]
    tested = fold == number % N_FOLDS
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def n_splits(chosen: BagSet) -> int:
    """Return how many splits a set has."""
    return 1 if chosen.fixed else N_FOLDS * len(_folds(chosen))


def make_folds(bags: Bags) -> np.ndarray:
    """Draw the test fold of every sample, (n_repeats, n).

    Examples
    --------
    >>> from diagatt.datasets import load_bags
    >>> make_folds(load_bags("simulated", n=50)).shape
    (3, 50)
    """
    repeats = N_REPEATS if len(bags) < SMALL else 1
    given = (bags.y, bags.classifies, bags.groups, N_FOLDS)
    return np.stack([draw_folds(*given, seed) for seed in range(repeats)])


def fingerprint(bags: Bags) -> str:
    """Return a short digest of lengths and classes, which tells whether data are the same."""
    content = bags.X.lengths.tobytes()
    if bags.classifies:
        content += np.unique(bags.y, return_inverse=True)[1].astype(np.int64).tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _folds(chosen: BagSet) -> np.ndarray:
    bags = load_set(chosen)
    stored = _stored().get(chosen.name)
    if stored is None:
        return make_folds(bags)
    if stored["fingerprint"] != fingerprint(bags):
        raise ValueError(
            f"{chosen.name} is not what its splits were made for: {bags.source} has another "
            "version; results would not be comparable."
        )
    return np.array([[int(digit) for digit in repeat] for repeat in stored["folds"]])


@cache
def _stored() -> dict[str, Any]:
    file = resources.files("diagatt.bench").joinpath(STORED)
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}


def described(bags: Bags) -> dict[str, Any]:
    """Return a set's entry of ``splits.json``."""
    folds = ["".join(map(str, repeat)) for repeat in make_folds(bags)]
    return {"fingerprint": fingerprint(bags), "folds": folds}
