"""Ids of samples and rows: text, in an array or in a column of Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.arrays import frozen


def checked_ids(given: Any, what: str, count: int) -> Any:
    """Return ids as text; None if there are none.

    A column of Arrow stays one: a store has an id for every row, and fits do not look at them.
    """
    if given is None:
        return None
    if type(given).__name__ == "StringArray" and len(given) == count:
        return given
    ids = np.array([str(one) for one in given], dtype=object)
    if len(ids) != count:
        raise ValueError(f"{what} has {len(ids)} entries: {count} are needed.")
    return frozen(ids)


def id_texts(ids: Any) -> np.ndarray | None:
    """Return ids as an array of str."""
    if ids is None or isinstance(ids, np.ndarray):
        return ids
    return frozen(np.array(ids.to_pylist(), dtype=object))


def chosen_ids(ids: Any, which: Any) -> Any:
    """Return some of the ids, in an array or a column of Arrow."""
    if isinstance(ids, np.ndarray) or isinstance(which, slice):
        return ids[which]
    return ids.take(which)


def joined_ids(ids: list[Any]) -> np.ndarray | None:
    """Return the ids of several parts; None if a part has none."""
    return None if any(own is None for own in ids) else np.concatenate(ids)
