"""Bags drawn from labelled rows, so that key rows are known: digits, wines and tumours.

The source rows are dealt into ten pools, and a bag draws all its rows from one pool. Pools are the
groups of the set: a split that keeps groups together never shows a row of a test bag in training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diagatt.coerce import offsets_from
from diagatt.datasets.bags import Bags, provides
from diagatt.ragged import RaggedRows

N_POOLS = 10
_SOURCE = "scikit-learn's {}, from the UCI archive"
_LICENCE = "CC BY 4.0 (UCI)"
NINE = 9


def deal_pools(kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Deal rows of every kind evenly to the pools; return the pool of each row, (N,)."""
    pool = np.empty(len(kinds), dtype=np.int64)
    for kind in np.unique(kinds):
        members = rng.permutation(np.flatnonzero(kinds == kind))
        pool[members] = (np.arange(len(members)) + rng.integers(N_POOLS)) % N_POOLS
    return pool


def draw_from_pools(
    rows: np.ndarray,
    kinds: np.ndarray,
    wanted: Sequence[Callable[[np.ndarray], np.ndarray]],
    counts: np.ndarray,
    seed: int,
) -> tuple[RaggedRows, np.ndarray, np.ndarray]:
    """Draw bags with prescribed kinds of rows.

    Parameters
    ----------
    rows, kinds : arrays of shape (N, d) and (N,)
        The source.
    wanted : sequence of functions
        Function k says which kinds may serve as a row of role k: it maps kinds to bools.
    counts : int array of shape (n, n_roles)
        How many rows of each role a bag holds.
    seed : int

    Returns
    -------
    X : RaggedRows
        Rows in random order; no row occurs twice in a bag.
    roles : array of shape (n_rows,)
        Role of every row.
    pools : array of shape (n,)
        Pool that a bag was drawn from.
    """
    rng = np.random.default_rng(seed)
    pool = deal_pools(kinds, rng)
    members = [
        [np.flatnonzero((pool == g) & role(kinds)) for role in wanted] for g in range(N_POOLS)
    ]
    pools = rng.permutation(np.arange(len(counts)) % N_POOLS)
    chosen, roles = [], []
    for g, count in zip(pools, counts, strict=True):
        parts = [_distinct(members[g][k], c, rng) for k, c in enumerate(count)]
        order = rng.permutation(count.sum())
        chosen.append(np.concatenate(parts)[order])
        roles.append(np.repeat(np.arange(len(wanted)), count)[order])
    X = RaggedRows(rows[np.concatenate(chosen)], offsets_from(counts.sum(axis=1)))
    return X, np.concatenate(roles), pools


def _distinct(members: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    if count > len(members):
        raise ValueError(
            f"a bag wants {count} rows of a kind of which its pool holds {len(members)}."
        )
    return rng.choice(members, count, replace=False)


@provides("digits")
def digit_bags(name: str, n: int = 300, seed: int = 0) -> Bags:
    """Draw bags of 8 to 12 handwritten digits; half of them hold one nine, the others none."""
    rows, kinds = _digits()
    y, counts = _with_one_key(n, 8, 12, 0.5, seed)
    X, roles, pools = draw_from_pools(rows, kinds, [_is(NINE), _is_not(NINE)], counts, seed)
    text = "Handwritten digits, 8×8 pixels as a row; positive bags hold one nine."
    return _bags(name, X, y, "binary", pools, roles == 0, text, "digits")


@provides("digits_count")
def counted_digit_bags(name: str, n: int = 300, seed: int = 0) -> Bags:
    """Draw bags of 8 to 12 handwritten digits; the response counts the nines, 0 to 4."""
    rows, kinds = _digits()
    rng = np.random.default_rng((seed, 1))
    y = rng.integers(0, 4, n, endpoint=True)
    counts = np.column_stack([y, rng.integers(8, 12, n, endpoint=True) - y])
    X, roles, pools = draw_from_pools(rows, kinds, [_is(NINE), _is_not(NINE)], counts, seed)
    text = "Handwritten digits, 8×8 pixels as a row; the response is the number of nines."
    return _bags(name, X, y.astype(float), "regression", pools, roles == 0, text, "digits")


@provides("digits_which")
def named_digit_bags(name: str, n: int = 300, seed: int = 0) -> Bags:
    """Draw bags of 8 to 12 handwritten digits: one 7, 8 or 9, which is the class, and others."""
    rows, kinds = _digits()
    rng = np.random.default_rng((seed, 1))
    y = rng.integers(7, 9, n, endpoint=True)
    length = rng.integers(8, 12, n, endpoint=True)
    counts = np.column_stack([*(y == k for k in (7, 8, 9)), length - 1])
    roles = [_is(7), _is(8), _is(9), lambda kinds: kinds < 7]
    X, role, pools = draw_from_pools(rows, kinds, roles, counts, seed)
    text = "Handwritten digits, 8×8 pixels as a row; the class is the one digit above six."
    return _bags(name, X, y, "multiclass", pools, role < 3, text, "digits")


@provides("wine")
def wine_bags(name: str, n: int = 100, seed: int = 0) -> Bags:
    """Draw bags of 3 to 6 wines; half of them hold one wine of the third cultivar."""
    from sklearn.datasets import load_wine

    source = load_wine()
    y, counts = _with_one_key(n, 3, 6, 0.5, seed)
    roles = [_is(2), _is_not(2)]
    X, role, pools = draw_from_pools(source.data, source.target, roles, counts, seed)
    text = "Wines, 13 chemical measurements as a row; positive bags hold one of cultivar 3."
    return _bags(name, X, y, "binary", pools, role == 0, text, "wine data")


@provides("breast_cancer")
def tumour_bags(name: str, n: int = 200, seed: int = 0) -> Bags:
    """Draw bags of 6 to 12 breast tumours; three in ten bags hold one malignant tumour."""
    from sklearn.datasets import load_breast_cancer

    source = load_breast_cancer()
    y, counts = _with_one_key(n, 6, 12, 0.3, seed)
    roles = [_is(0), _is_not(0)]  # scikit-learn calls malignant 0
    X, role, pools = draw_from_pools(source.data, source.target, roles, counts, seed)
    text = "Breast tumours, 30 measurements of cell nuclei as a row; positive bags hold a malignant"
    return _bags(name, X, y, "binary", pools, role == 0, f"{text} one.", "breast cancer data")


def _with_one_key(
    n: int, low: int, high: int, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return responses, and counts of key and other rows, (n, 2); a share of bags holds one key."""
    rng = np.random.default_rng((seed, 1))
    y = rng.permutation((np.arange(n) < round(share * n)).astype(np.int64))
    length = rng.integers(low, high, n, endpoint=True)
    return y, np.column_stack([y, length - y])


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    source = load_digits()
    return source.data / 16 - 0.5, source.target


def _is(kind: int) -> Any:
    return lambda kinds: kinds == kind


def _is_not(kind: int) -> Any:
    return lambda kinds: kinds != kind


def _bags(
    name: str, X: Any, y: Any, task: str, pools: Any, keys: Any, description: str, source: str
) -> Bags:
    return Bags(
        name,
        X,
        y,
        task,
        groups=pools,
        row_labels=keys,
        description=description,
        licence=_LICENCE,
        source=_SOURCE.format(source),
    )
