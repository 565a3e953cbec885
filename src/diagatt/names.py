"""Names of columns, which columns of new data are matched by, and ids of samples and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from diagatt.arrays import InputError, frozen, refuse_lookalikes, twin
from diagatt.spelling import nearly
from diagatt.user_warnings import warn

Names = tuple[str, ...]

SHOWN = 5  # names that a message lists before it counts the rest


def names_of(values: Any, what: str) -> Names | None:
    """Return the names of the columns of a frame; None if it has none.

    Columns that are counted from 0 (as pandas does by default) have no names; those with other
    numbers, dates or several levels have these as text.

    Examples
    --------
    >>> import pandas as pd
    >>> names_of(pd.DataFrame({"age": [31], "size": [1.8]}), "X")
    ('age', 'size')
    >>> names_of([[31, 1.8]], "X") is None
    True
    >>> names_of(pd.DataFrame([[31, 1.8]], columns=[1, 0]), "X")
    ('1', '0')
    """
    if isinstance(values, np.ndarray | list | tuple | torch.Tensor):
        return None
    if hasattr(values, "feature_names"):
        return values.feature_names
    # pyarrow says column_names, all others say columns; narwhals would refuse twins unnamed.
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if columns is None or callable(columns):
        return None
    found = list(columns)
    words = [isinstance(name, str) for name in found]
    if not any(words):
        if len(set(found)) < len(found):
            raise InputError(f"{what} has two columns {twin(found)!r}: give each its own name.")
        return None if found == list(range(len(found))) else tuple(str(name) for name in found)
    if not all(words):
        raise InputError(
            f"{what} has columns that are named by words and by others, such as "
            f"{found[words.index(False)]!r}: feature names must all be strings."
        )
    return checked(found, what)


def checked(names: Sequence[Any], what: str, count: int | None = None) -> Names:
    """Return names as a tuple; refuse non-strings, duplicates and any count other than `count`."""
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        raise InputError(f"the names of {what} must be a list of strings, got {names!r}.")
    found = [str(name) if isinstance(name, np.str_) else name for name in names]
    for name in found:
        if not isinstance(name, str):
            raise InputError(f"the names of {what} must be strings, got {name!r}.")
    if len(set(found)) < len(found):
        raise InputError(f"{what} has two columns {twin(found)!r}: give each its own name.")
    together = "".join(found)
    if not together.isascii() or together.split() != [together]:  # looked for where it may be
        refuse_lookalikes(np.array(found, dtype=object), f"names of columns of {what}")
    if count is not None and len(found) != count:
        raise InputError(f"{len(found)} names were given for the {count} columns of {what}.")
    return tuple(found)


def order(found: Names, wanted: Sequence[str], what: str, select: str) -> np.ndarray | None:
    """Return where the wanted columns stand; None if they are all there, in this order.

    Parameters
    ----------
    found, wanted : names
    what : str
        What has the columns, for messages.
    select : str
        How to select the wanted columns, for the message about others.

    Examples
    --------
    >>> order(("size", "age"), ("age", "size"), "X", "X[names]")
    array([1, 0])
    """
    if found == tuple(wanted):
        return None
    place = {name: i for i, name in enumerate(found)}
    missing = [name for name in wanted if name not in place]
    if missing:
        raise InputError(
            f"The feature names should match those that were passed during fit: {what} has no "
            f"column {listed(missing)}; it has {listed(found)}.{nearly(missing, found)}"
        )
    if len(found) > len(wanted):
        known = set(wanted)
        more = [name for name in found if name not in known]
        raise InputError(
            f"The feature names should match those that were passed during fit: {what} also has "
            f"the column {listed(more)}, which the fit did not have. Select the others: {select}."
        )
    return np.array([place[name] for name in wanted])


def match(
    found: Names | None, wanted: Sequence[str] | None, what: str, select: str
) -> np.ndarray | None:
    """Return where the columns of the fit stand among those found; None if nothing moves.

    If only one side has names, columns are taken in their order, with scikit-learn's warning.
    """
    if found is None and wanted is not None:
        _warn(
            f"{what} does not have valid feature names, but the model was fitted with feature "
            f"names ({listed(wanted)}): columns are taken in this order."
        )
    if found is not None and wanted is None:
        _warn(
            f"{what} has feature names, but the model was fitted without feature names: columns "
            "are taken in their order."
        )
    return None if found is None or wanted is None else order(found, wanted, what, select)


def listed(names: Sequence[str]) -> str:
    """Name the first few: ``'a', 'b' and 7 others``.

    Examples
    --------
    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 3 others")
    """
    words = ", ".join(repr(name) for name in names[:SHOWN])
    return words if len(names) <= SHOWN else f"{words} and {len(names) - SHOWN} others"


def _warn(message: str) -> None:
    warn(message)


def checked_ids(given: Any, what: str, count: int) -> Any:
    """Return ids as text; None if there are none.

    A column of Arrow stays one: a store has an id for every row, and fits do not look at them.
    """
    if given is None:
        return None
    if type(given).__name__ == "StringArray" and len(given) == count:
        return given
    given = list(given)
    ids = np.array([str(one) for one in given], dtype=object)
    if len(ids) != count:
        raise ValueError(f"{what} has {len(ids)} entries: {count} are needed.")
    words = {one for one in given if isinstance(one, str)}
    for one in given if words else ():
        if not isinstance(one, str) and str(one) in words:
            raise ValueError(
                f"{what} has {one!r} and {str(one)!r}, which read alike: use one type."
            )
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
