"""A block of samples on its way into a store: its columns checked, its layout agreed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diagatt.ragged import RaggedRows
from diagatt.stores.columns import checked_column, checked_covariates
from diagatt.stores.layout import COVARIATES, RESERVED, RESPONSE, WEIGHT
from diagatt.stores.manifest import Layout, StoreError


def checked_block(
    rows: RaggedRows, given: Mapping[str, Any], first: int, layout: Layout | None, dtype: np.dtype
) -> tuple[Layout, dict[str, Any]]:
    """Layout and columns of a block whose first sample is the store's sample `first`.

    Parameters
    ----------
    rows : RaggedRows
    given : mapping
        Columns by name.
    first : int
    layout : Layout or None
        Of the samples before, with which these must agree.
    dtype : dtype
        Of the rows, if there are no samples before.
    """
    kinds = {} if layout is None else dict(layout.columns)
    width = None if layout is None else layout.n_covariates
    if layout is not None:
        _check_same(layout, rows.n_features, set(given), first)
    columns: dict[str, Any] = {}
    for name, values in given.items():
        if name in RESERVED and name not in (RESPONSE, WEIGHT, COVARIATES):
            raise StoreError(f"payload cannot be called {name!r}: choose another name.")
        if name == COVARIATES:
            columns[name] = checked_covariates(values, len(rows), first, width)
            kinds[name], width = "float64", columns[name].shape[1]
        else:
            kind = "float64" if name == WEIGHT else kinds.get(name)
            columns[name], kinds[name] = checked_column(name, values, len(rows), first, kind)
    return layout or Layout(rows.n_features, str(dtype), kinds, width or 0), columns


def _check_same(layout: Layout, n_features: int, names: set[str], first: int) -> None:
    if n_features != layout.n_features:
        raise StoreError(
            f"sample {first} has {n_features} features, those before have {layout.n_features}: "
            "all samples need the same number of features."
        )
    for name in sorted(names ^ set(layout.columns)):
        has, others = ("", "none") if name in names else ("no ", "one")
        raise StoreError(
            f"sample {first} has {has}{name}, those before have {others}: give it for all samples "
            "or for none."
        )
