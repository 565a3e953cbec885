"""Random splits of texts that never separate duplicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagatt.arguments import Seed
from diagatt.arrays import InputError


def text_groups(texts: Sequence[str]) -> np.ndarray:
    """Return an index per text, equal for equal sentences, (n,).

    Texts that differ only in case or white space count as equal.

    Examples
    --------
    >>> text_groups(["Great.", "Bad.", "great. "])
    array([0, 1, 0])
    """
    if not len(texts):
        raise InputError("there is no text: pass at least one.")
    index: dict[str, int] = {}
    return np.array([index.setdefault(" ".join(t.split()).casefold(), len(index)) for t in texts])


def split_texts(
    texts: Sequence[str], shares: Sequence[float] = (0.7, 0.1, 0.2), seed: Seed = 0
) -> list[np.ndarray]:
    """Split texts at random into parts of these shares; duplicates stay together.

    Parameters
    ----------
    texts : list of str
    shares : sequence of float
        Positive numbers that add up to 1; by default the paper's training, validation and test
        parts. A part is at most one group of duplicates away from its share.
    seed : int

    Returns
    -------
    list of int arrays
        Indices of the texts of each part, increasing.

    Examples
    --------
    >>> train, test = split_texts(["a", "b", "a", "c"], shares=(0.5, 0.5), seed=1)
    >>> train, test
    (array([0, 2]), array([1, 3]))
    """
    parts = np.asarray(shares, dtype=float)
    if parts.ndim != 1 or np.any(parts <= 0) or not np.isclose(parts.sum(), 1):
        raise ValueError(f"shares must be positive and add up to 1, got {tuple(shares)}.")
    group = text_groups(texts)
    order = np.random.default_rng(seed).permutation(group.max() + 1)
    sizes = np.bincount(group)[order]
    middle = np.cumsum(sizes) - sizes / 2  # a group joins the part in which its middle falls
    bounds = np.cumsum(parts)[:-1] * len(group)
    part_of_group = np.empty(len(order), dtype=np.int64)
    part_of_group[order] = np.searchsorted(bounds, middle, side="right")
    return [np.flatnonzero(part_of_group[group] == part) for part in range(len(parts))]


def fold_texts(texts: Sequence[str], n_folds: int = 5, seed: Seed = 0) -> np.ndarray:
    """Return a random fold per text, (n,); duplicates share one.

    Examples
    --------
    >>> fold_texts(["a", "b", "a", "c"], n_folds=3)
    array([1, 2, 1, 0])
    """
    group = text_groups(texts)
    if not 2 <= n_folds <= group.max() + 1:
        raise ValueError(f"n_folds must lie between 2 and {group.max() + 1}, got {n_folds}.")
    order = np.random.default_rng(seed).permutation(group.max() + 1)
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % n_folds
    return fold[group]
