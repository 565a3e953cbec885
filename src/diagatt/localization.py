"""Rows of interest: rules that turn scores of rows into row indices.

Indices count from 0 within a sample. If a sample has fewer rows than requested, its line ends
with -1.
"""

from __future__ import annotations

import numpy as np

#: Number of rows of interest that the paper grants every competitor, its R̃ (supplement S7.3).
N_LOCATED = 10


def row_positions(offsets: np.ndarray) -> np.ndarray:
    """Return the index of each packed row within its sample, (N,).

    Examples
    --------
    >>> row_positions(np.array([0, 2, 5]))
    array([0, 1, 0, 1, 2])
    """
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def top_rows(scores: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    r"""Return the rows with the k largest scores of every sample, best first.

    .. math:: \hat S = \arg\max_{\{j_1, …, j_k\}} \sum_r s_{j_r}

    (equations localization_grouplasso, localization_mdsp and localization_twostep, which differ
    only in the scores).

    Parameters
    ----------
    scores : array of shape (N,)
        One score per packed row; of equal scores the earlier row comes first.
    offsets : array of shape (n + 1,)
    k : int

    Returns
    -------
    array of shape (n, k), int

    Examples
    --------
    >>> top_rows(np.array([1.0, 3.0, 2.0, 7.0]), np.array([0, 3, 4]), 2)
    array([[ 1,  2],
           [ 0, -1]])
    """
    lengths = np.diff(offsets)
    sample = np.repeat(np.arange(len(lengths)), lengths)  # (N,)
    order = np.lexsort((-np.asarray(scores), sample))  # stable: samples stay together
    rank = row_positions(offsets)  # entry i of a sample's part of `order` is its i-th best row
    best = rank < k
    located = np.full((len(lengths), k), -1, dtype=np.int64)
    located[sample[best], rank[best]] = order[best] - offsets[sample[best]]
    return located


def top_rows_of_heads(scores: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    r"""Return the union of each head's ⌊k/R⌋ best rows (supplement S7.3, standard attention).

    Parameters
    ----------
    scores : array of shape (N, R)
    k : int
        At least the number of heads R, so that every head names a row.

    Returns
    -------
    array of shape (n, k), int
        Head by head, each row only once; unused entries are -1.

    Examples
    --------
    >>> top_rows_of_heads(np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]]), np.array([0, 3]), 4)
    array([[ 1,  0,  2, -1]])
    """
    heads = scores.shape[1]
    if k < heads:
        raise ValueError(
            f"n_located = {k} rows cannot be shared by {heads} heads: raise n_located to at "
            f"least {heads}."
        )
    parts = [top_rows(scores[:, r], offsets, k // heads) for r in range(heads)]
    return first_distinct(np.concatenate(parts, axis=1), k)


def first_distinct(rows: np.ndarray, k: int) -> np.ndarray:
    """Drop repeated and missing (-1) rows of every line and move the rest to the front, (n, k)."""
    columns = np.arange(rows.shape[1])
    same = rows[:, :, None] == rows[:, None, :]  # (n, m, m)
    repeated = (same & (columns[:, None] > columns)).any(axis=2)
    missing = repeated | (rows < 0)
    front = np.argsort(missing, axis=1, kind="stable")
    moved = np.take_along_axis(np.where(missing, -1, rows), front, axis=1)[:, :k]
    return np.pad(moved, ((0, 0), (0, k - moved.shape[1])), constant_values=-1)
