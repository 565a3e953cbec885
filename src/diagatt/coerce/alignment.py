"""Refuse y, weights and the like whose labels say that they are not in the order of X."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import torch

from diagatt.arrays import InputError


def index_of(frame: Any) -> list[str] | None:
    """Return the labels of the lines of a pandas frame or series, as text; None if it has none.

    Lines that are only counted, as pandas does by default, have no labels.

    Examples
    --------
    >>> import pandas as pd
    >>> index_of(pd.Series([1.0, 2.0], index=["ann", "bob"])), index_of(pd.Series([1.0, 2.0]))
    (['ann', 'bob'], None)
    """
    if frame is None or isinstance(frame, np.ndarray | list | tuple | torch.Tensor):
        return None
    try:
        frame = nw.from_native(frame, pass_through=True, eager_only=True, allow_series=True)
    except nw.exceptions.DuplicateError:  # the function that reads the columns names it
        return None
    is_table = isinstance(frame, nw.DataFrame | nw.Series)
    labels = nw.maybe_get_index(frame) if is_table else None
    if labels is None or type(labels).__name__ == "RangeIndex":
        return None
    return [str(label) for label in labels]


def refuse_other_order(rows: Any, **beside: Any) -> None:
    """Refuse frames and series whose labels are ids of X's samples in another order.

    Samples are in the order in which their ids first appear, whereas a table that was grouped by
    patients is sorted by them: each line would be assigned to another sample. Labels that are not
    ids of samples are ignored, and so are counted lines, which have no labels.

    Parameters
    ----------
    rows : RaggedRows
        The samples of X.
    **beside
        The other arguments of `fit` that have one entry per sample, by name.

    Examples
    --------
    >>> import pandas as pd
    >>> from diagatt import RaggedRows
    >>> cells = pd.DataFrame({"who": ["bob", "ann"], "size": [1.0, 2.0]})
    >>> X, ids = RaggedRows.from_frame(cells, "who")
    >>> refuse_other_order(X, y=pd.Series([0.5, 0.7], index=["ann", "bob"]))
    Traceback (most recent call last):
    diagatt.arrays.InputError: y[0] is labelled 'ann', but sample 0 of X is 'bob': bring y into ...
    """
    ids: list[str] | None = None
    for what, values in beside.items():
        labels = index_of(values)
        if labels is None or rows.sample_ids is None or len(labels) != len(rows):
            continue
        ids = list(rows.sample_ids) if ids is None else ids
        known = set(ids)
        # Numbers may be ids by chance; words that are ids of samples cannot be.
        meant = [label in known for label in labels]
        words = any(own and not label.isdigit() for own, label in zip(meant, labels, strict=True))
        if labels != ids and (words or all(meant)):
            i = next(i for i in range(len(ids)) if labels[i] != ids[i])
            raise InputError(
                f"{what}[{i}] is labelled {labels[i]!r}, but sample {i} of X is {ids[i]!r}: bring "
                f"{what} into the order of X, {what}.loc[ids], or pass {what}.to_numpy() if it is."
            )
