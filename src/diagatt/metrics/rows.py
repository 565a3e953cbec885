"""Measures of how well rows of interest are located."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from diagatt.arrays import InputError


def crlr(true_rows: Any, located_rows: Any) -> float:
    """Return the correct localization rate of the rows of interest (paper, Section 5.1).

    ``CRLR = n⁻¹ Σ_i |S_i ∩ Ŝ_i| / |S_i|``, as a fraction in [0, 1]; the paper prints percentages.
    Both are sets: a row located by several heads counts once, and additional located rows cost
    nothing.

    Parameters
    ----------
    true_rows : array of shape (n, s), or n collections of row indices
        The active rows ``S_i``; a 1-D array of n integers means one row per sample.
    located_rows : array of shape (n, R), or n collections of row indices
        The located rows ``Ŝ_i``, any number per sample.

    Examples
    --------
    >>> crlr([[3, 5], [0, 1]], [[5, 3], [1, 1]])
    0.75
    >>> crlr([7, 2], [{7, 8, 9}, set()])
    0.5
    """
    true, located = _as_sets(true_rows, "true_rows"), _as_sets(located_rows, "located_rows")
    if len(true) != len(located):
        raise ValueError(
            f"true_rows describes {len(true)} samples, located_rows {len(located)}: "
            "pass one set of rows per sample in both."
        )
    if not true:
        raise ValueError("true_rows is empty: CRLR needs at least one sample.")
    for i, rows in enumerate(true):
        if not rows:
            raise ValueError(f"sample {i} has no true row, so its CRLR is 0/0: drop the sample.")
    pairs = zip(true, located, strict=True)
    return float(np.mean([len(rows & found) / len(rows) for rows, found in pairs]))


def _as_sets(rows: Any, what: str) -> list[set]:
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise InputError(f"{what} must be the indices of rows, whole numbers, for each sample.")
    # Integers of Python lists are hashed several times faster than NumPy's.
    listed = rows.tolist() if hasattr(rows, "tolist") else list(rows)
    sets = [set(sample) if isinstance(sample, Iterable) else {sample} for sample in listed]
    for i, found in enumerate(sets):
        for row in found:
            if not isinstance(row, Real) or row != row // 1:
                raise InputError(f"{what} of sample {i} hold {row!r}: rows are whole numbers.")
    return sets
