"""Bags drawn from labelled rows, so that it is known which row decides.

The source rows are dealt into ten pools, and a bag draws all its rows from one pool. Pools are
the groups of the set: a split that keeps groups together never shows a row of a test bag in
training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from diagatt.coerce import offsets_from
from diagatt.ragged import RaggedRows

N_POOLS = 10


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
