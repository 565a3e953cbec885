"""Moments of active and background rows, from samples whose rows of interest are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.ragged import RaggedRows
from diagatt.theory.moments import Moments

__all__ = ["class_moments"]


def class_moments(X: Any, rows: Any) -> tuple[list[Moments], Moments]:
    """Estimate the moments of every signal class and of the background.

    Parameters
    ----------
    X : RaggedRows or anything it can be made from
    rows : int array of shape (n, s) or (n,)
        Position, within sample i, of the row of signal class k.

    Returns
    -------
    classes : list of Moments
        One a column of ``rows``.
    background : Moments
        Of all rows that belong to no class.

    Examples
    --------
    >>> X = RaggedRows.from_samples([[[5.0], [0.0], [2.0]], [[2.0], [7.0]]])
    >>> classes, background = class_moments(X, [0, 1])
    >>> classes[0].mean, background.covariance
    (array([6.]), array([[1.33333333]]))
    """
    return group_moments(RaggedRows.coerce(X), *row_groups(RaggedRows.coerce(X), rows))


def group_moments(
    samples: RaggedRows, packed: np.ndarray, group: np.ndarray
) -> tuple[list[Moments], Moments]:
    """Moments by packed positions (n, s) of active rows and the group (N,) of every row."""
    if np.sum(group == 0) < 2:
        raise ValueError("fewer than 2 background rows: every row is labelled as active.")
    if len(packed) < 2:
        raise ValueError("moments of the active rows need at least 2 samples.")
    classes = [Moments.from_rows(samples.values[packed[:, k]]) for k in range(packed.shape[1])]
    return classes, Moments.from_rows(samples.values[group == 0])


def row_groups(
    samples: RaggedRows, rows: Any, distinct: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Packed positions (n, s) of the labelled rows, and the group (N,) of every row.

    Group 0 is background, group k + 1 is signal class k. ``distinct`` refuses two classes on one
    row, which true labels never have but the heads of a model may.
    """
    labels = np.asarray(rows)
    labels = labels[:, None] if labels.ndim == 1 else labels
    if labels.ndim != 2 or len(labels) != len(samples) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"rows must be integers of shape ({len(samples)}, s), one line a sample; "
            f"got shape {np.shape(rows)} and type {labels.dtype}."
        )
    wrong = np.argwhere((labels < 0) | (labels >= samples.lengths[:, None]))
    if len(wrong):
        i, k = wrong[0]
        raise ValueError(
            f"sample {i} has {samples.lengths[i]} rows, but rows[{i}, {k}] = {labels[i, k]}."
        )
    ordered = np.sort(labels, axis=1)
    twice = np.flatnonzero(np.any(ordered[:, 1:] == ordered[:, :-1], axis=1))
    if distinct and len(twice):
        raise ValueError(
            f"sample {twice[0]} labels one row with two classes: rows must differ within a sample."
        )
    packed = labels + samples.offsets[:-1, None]  # (n, s)
    group = np.zeros(samples.n_rows, dtype=np.int64)  # (N,)
    group[packed] = np.arange(1, labels.shape[1] + 1)
    return packed, group
