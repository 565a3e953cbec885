"""What X may be: lists, arrays, tensors, frames and Arrow columns become packed rows."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import torch

from diagatt.arrays import (
    CODED,
    InputError,
    Place,
    as_frame,
    as_numpy,
    float_array,
    float_matrix,
    from_arrow_sparse,
    is_sparse,
    plain_array,
    refuse_lookalikes,
    refuse_missing,
    refuse_unreadable,
    sparse_matrix,
)
from diagatt.coerce.alignment import index_of
from diagatt.coerce.usable import row_name
from diagatt.names import Names, checked, names_of, order
from diagatt.spelling import MISSING
from diagatt.user_warnings import warn


class Packed(NamedTuple):
    """Samples as `RaggedRows` holds them, with the names that their source has."""

    values: np.ndarray  # (N, d)
    offsets: np.ndarray  # (n + 1,)
    feature_names: Names | None = None  # d
    sample_ids: Any = None  # n
    row_ids: Any = None  # N
    row_weight: Any = None  # N


def is_flat(X: Any) -> bool:
    """Whether X is one 2-D array (or nothing that can be read) and not a collection of matrices.

    Examples
    --------
    >>> is_flat([[1.0, 2.0], [3.0, 4.0]]), is_flat([[[1.0, 2.0]], [[3.0, 4.0]]])
    (True, False)
    """
    if hasattr(X, "to_rows") or _is_arrow_column(X) or getattr(X, "is_nested", False):
        return False
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object):
        return len(X) > 0 and not _is_matrix(X[0])
    return getattr(X, "ndim", 2) != 3


def samples(X: Any) -> Packed:
    """Pack whatever a user may call samples; a 2-D array is n one-row samples.

    Examples
    --------
    >>> samples([np.zeros((2, 3)), np.ones((1, 3))])[1]
    array([0, 2, 3])
    """
    if X is None:
        raise InputError("X is None: pass samples.")
    if isinstance(X, type):
        raise InputError(f"X is the class {X.__name__}: pass samples.")
    if isinstance(X, str | bytes | os.PathLike):
        raise InputError(
            f"X is {X!r}, no samples: read the file, for example a long table with "
            "RaggedRows.from_frame, or a store with RowStore."
        )
    X = from_arrow_sparse(X)
    if _is_arrow_column(X):
        return pack_arrow(X)
    if getattr(X, "is_nested", False):
        return pack_nested(X)
    if not isinstance(X, np.ndarray | list | tuple) and isinstance(as_frame(X, "X"), nw.Series):
        raise InputError(
            "X is one column: pass X.to_list() if it holds a matrix per sample, or else a frame of "
            "features."
        )
    if isinstance(X, list | tuple) and len(X):  # in place of an entry that is no matrix of numbers
        refuse_unreadable(X[0], "sample 0")
    if is_flat(X):
        values = float_matrix(X, "X", lambda at: f"sample {at[0]}, row 0")
        return Packed(values, np.arange(len(values) + 1), names_of(X, "X"), index_of(X))
    return pack_dense(X) if getattr(X, "ndim", 1) == 3 else pack_samples(X)


def pack_samples(matrices: Iterable[Any]) -> Packed:
    """Pack a list of ``(p_i, d)`` matrices; frames among them are matched by name."""
    parts: list[Any] = []
    names: Names | None = None
    ids: list[Any] = []
    for i, sample in enumerate(matrices):
        matrix, own = _matrix(sample, i), names_of(sample, f"sample {i}")
        if not parts:
            names = own
        if (own is None) != (names is None):
            named, other = (0, i) if own is None else (i, 0)
            raise InputError(
                f"sample {named} has names of features, sample {other} has none: name the columns "
                "of all samples or of none."
            )
        if own is not None and names is not None:
            place = order(own, names, f"sample {i}", "as in sample 0")
            matrix = matrix if place is None else np.ascontiguousarray(matrix[:, place])
        if parts and matrix.shape[1] != parts[0].shape[1]:
            raise InputError(
                f"sample {i} has {matrix.shape[1]} features, sample 0 has "
                f"{parts[0].shape[1]}: all samples need the same number of features."
            )
        if parts and is_sparse(matrix) != is_sparse(parts[0]):
            raise InputError(
                f"one of sample {i} and sample 0 is sparse, the other is dense: pass all samples "
                "in one form."
            )
        if matrix.shape[0] == 0:
            raise InputError(
                f"sample {i} has no rows: every sample needs at least one row; drop it."
            )
        parts.append(matrix)
        ids.append(index_of(sample))
    if not parts:
        raise InputError("the list of samples is empty: pass at least one (p, d) matrix.")
    row_ids = None if any(own is None for own in ids) else [one for own in ids for one in own]
    offsets = offsets_from([part.shape[0] for part in parts])
    return Packed(stacked(parts), offsets, names, None, row_ids)


def stacked(parts: Sequence[Any]) -> Any:
    """Put matrices, all dense or all sparse, one below the other; one alone is not copied."""
    if len(parts) == 1:
        return parts[0]
    if is_sparse(parts[0]):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def _matrix(sample: Any, i: int) -> Any:
    sample = from_arrow_sparse(sample)
    if is_sparse(sample):
        return sparse_matrix(sample, f"sample {i}")
    return float_matrix(sample, f"sample {i}", _row_of(i))


def pack_dense(array: Any) -> Packed:
    """Pack an ``(n, p, d)`` array."""
    dense = float_array(array, "X", lambda at: f"sample {at[0]}, row {at[1]}")
    if dense.ndim != 3:
        raise InputError(f"expected an (n, p, d) array, got shape {dense.shape}.")
    n, p, d = dense.shape
    return Packed(dense.reshape(n * p, d), np.arange(n + 1) * p)


def pack_padded(padded: Any, lengths: Any, mask: Any) -> Packed:
    """Pack the real rows of an ``(n, p_max, d)`` array: the first ones, or those of a mask."""
    dense = np.asanyarray(padded)  # with its mask: padding may be masked, real rows may not
    if dense.ndim != 3:
        raise InputError(f"padded must have shape (n, p_max, d), got {dense.shape}.")
    if (lengths is None) == (mask is None):
        raise InputError("give exactly one of lengths and mask.")
    if mask is None:
        counts = np.asarray(lengths)
        if counts.shape != dense.shape[:1] or counts.dtype.kind not in "iu":
            raise InputError(f"lengths must be {len(dense)} integers, one per sample.")
        wrong = np.flatnonzero((counts < 0) | (counts > dense.shape[1]))
        if len(wrong):
            raise InputError(
                f"sample {wrong[0]} has length {counts[wrong[0]]}, outside 0..{dense.shape[1]}."
            )
        real = np.arange(dense.shape[1]) < counts[:, None]  # (n, p_max)
    else:
        real = np.asarray(mask)
        if real.shape != dense.shape[:2] or real.dtype != bool:
            raise InputError(f"mask must be boolean with shape {dense.shape[:2]}.")
    return Packed(dense[real], offsets_from(real.sum(axis=1)))


def pack_nested(tensor: Any) -> Packed:
    """Pack a nested tensor, jagged or strided."""
    if tensor.layout is torch.jagged and tensor.lengths() is None:
        return Packed(as_numpy(tensor.values()), tensor.offsets().cpu().numpy())
    return pack_samples(tensor.unbind())


def pack_frame(
    frame: Any,
    sample: str,
    features: Sequence[str] | None,
    row: str | None = None,
    row_weight: str | None = None,
) -> tuple[Packed, np.ndarray]:
    """Pack a long table; also return the ids of samples in the order of first appearance."""
    columns = _columns(frame)
    keys = [sample, *(key for key in (row, row_weight) if key is not None)]
    for name in [*keys, *(features or [])]:
        if not isinstance(name, Hashable) or name not in columns:
            raise InputError(f"column {name!r} is not in the table; it has {list(columns)}.")
    chosen = checked(
        [name for name in columns if name not in keys] if features is None else features,
        "the table",
    )
    if not chosen:
        raise InputError("the table has no feature column.")
    for name in keys:
        if name in chosen:
            what = "holds weights of rows" if name == row_weight else "names samples or rows"
            raise InputError(f"column {name!r} {what}: it cannot be a feature, too.")
    values = np.column_stack([float_array(columns[c], *_column_of(c), CODED) for c in chosen])
    words, line = _column_of(sample)
    ids = np.asarray(plain_array(columns[sample], words, line, dates=True))
    if ids.shape != values.shape[:1]:
        raise InputError(f"{words} has {len(ids)} entries, and {len(values)} are needed.")
    refuse_missing(ids, words, lambda i: f"{line((i,))} names no sample: drop the line.")
    unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    refuse_lookalikes(unique, f"ids in {words}")
    _refuse_blanks(unique, first, np.bincount(inverse.reshape(-1)), line)
    rank = np.empty(len(unique), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(unique))  # order of first appearance
    index = rank[inverse]  # (N,) sample of each line
    row_ids = None if row is None else plain_array(columns[row], *_column_of(row), dates=True)
    weight = None
    if row_weight is not None:
        weight = float_array(columns[row_weight], *_column_of(row_weight))
    if np.any(np.diff(index) < 0):
        lines = np.argsort(index, kind="stable")
        values = values[lines]
        row_ids, weight = (None if a is None else a[lines] for a in (row_ids, weight))
    named = unique[np.argsort(first)]
    return Packed(values, offsets_from(np.bincount(index)), chosen, named, row_ids, weight), named


def _refuse_blanks(ids: np.ndarray, first: np.ndarray, counts: np.ndarray, line: Place) -> None:
    """Refuse an id without a letter, and warn of words that often stand for a missing id."""
    for name, place, count in zip(ids.tolist(), first, counts, strict=True):
        if isinstance(name, str) and not name.strip():
            raise InputError(f"{line((place,))} names no sample: drop the line, or fill it.")
        if isinstance(name, str) and name.strip().lower() in MISSING:
            many = "1 row is" if count == 1 else f"{count} rows are"
            warn(
                f"{many} of a sample that is called {name!r}: if this stands for a missing id, "
                "drop these rows, which belong to no sample or to several."
            )


def _columns(frame: Any) -> Mapping[str, Any]:
    """Return the columns of a table by their names."""
    if isinstance(frame, Mapping):
        return frame
    table = as_frame(frame, "the table")
    names_of(frame, "the table")  # refuses two columns of one name
    if not isinstance(table, nw.DataFrame):
        raise InputError(
            f"the table is a {type(frame).__name__}: pass a frame of pandas or polars, a table of "
            "Arrow, or a dictionary of columns."
        )
    return dict(zip(table.columns, table.iter_columns(), strict=True))


def pack_arrow(column: Any) -> Packed:
    """Pack a pyarrow column of lists of rows."""
    import pyarrow as pa

    if not _is_arrow_column(column):
        raise InputError(f"the column is a {type(column).__name__}: pass a column of Arrow.")

    if isinstance(column, pa.ChunkedArray):  # combining even one chunk would copy it
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # an empty column stays chunked
        raise InputError("the column is empty: pass at least one sample.")
    if column.null_count:
        missing = np.argmax(column.is_null().to_numpy(zero_copy_only=False))
        raise InputError(f"sample {missing} is a null sample: drop it.")
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not hasattr(
        kind.value_type, "value_type"
    ):
        raise InputError(f"expected a list of lists of numbers, got {kind}.")
    offsets = column.offsets.to_numpy() - column.offsets[0].as_py()
    rows = column.flatten()
    if rows.null_count:
        missing = np.argmax(rows.is_null().to_numpy(zero_copy_only=False))
        raise InputError(f"{row_name(offsets, int(missing))} is a null row: drop it.")
    if pa.types.is_fixed_size_list(rows.type):
        width = rows.type.list_size
    else:
        widths = np.diff(rows.offsets.to_numpy())
        width = int(widths[0]) if len(widths) else 1
        if np.any(widths != width):
            wrong = row_name(offsets, int(np.argmax(widths != width)))
            raise InputError(f"rows have differing numbers of features: {wrong} is the first.")
    flat = rows.flatten().to_numpy(zero_copy_only=False)  # nulls become NaN
    return Packed(flat.reshape(len(rows), width), offsets)


def unmasked(X: Any) -> Any:
    """Return masked arrays, or a list of them, with NaN in the place of masked entries.

    Examples
    --------
    >>> unmasked([np.ma.array([[1, 2]], mask=[[False, True]])])
    [array([[ 1., nan]])]
    """
    if isinstance(X, list | tuple) and any(isinstance(one, np.ma.MaskedArray) for one in X):
        return [unmasked(one) for one in X]
    if not isinstance(X, np.ma.MaskedArray):
        return X
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    return np.ma.filled(X.astype(kind), np.nan)


def offsets_from(lengths: Any) -> np.ndarray:
    """Return 0 and the running sums of the lengths: where samples begin and end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _is_matrix(item: Any) -> bool:
    """Whether an item of a list is a matrix and not a row."""
    try:
        return (item.ndim if hasattr(item, "ndim") else np.ndim(item)) == 2
    except ValueError:  # its rows differ in length, which is told of the sample
        return any(isinstance(row, list | tuple | np.ndarray) for row in item)


def _is_arrow_column(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "pyarrow" and hasattr(X, "null_count")


def _row_of(sample: int) -> Place:
    return lambda at: f"sample {sample}, row {at[0]}"


def _column_of(name: str) -> tuple[str, Place]:
    return f"column {name!r}", lambda at: f"line {at[0]} of column {name!r}"
