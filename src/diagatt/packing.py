"""Rows of all samples and their offsets, out of what users have: lists, arrays, tables, columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

Packed = tuple[np.ndarray, np.ndarray]  # values (N, d), offsets (n + 1,)


def pack_samples(samples: Iterable[Any]) -> Packed:
    """A list of ``(p_i, d)`` matrices."""
    matrices: list[np.ndarray] = []
    for i, sample in enumerate(samples):
        matrix = as_float_matrix(sample, f"sample {i}")
        if matrices and matrix.shape[1] != matrices[0].shape[1]:
            raise ValueError(
                f"sample {i} has {matrix.shape[1]} features, sample 0 has "
                f"{matrices[0].shape[1]}: all samples need the same number of features."
            )
        if len(matrix) == 0:
            raise ValueError(
                f"sample {i} has no rows: every sample needs at least one row; drop it."
            )
        matrices.append(matrix)
    if not matrices:
        raise ValueError("the list of samples is empty: pass at least one (p, d) matrix.")
    values = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
    return values, offsets_from([len(m) for m in matrices])


def pack_padded(padded: Any, lengths: Any, mask: Any) -> Packed:
    """The real rows of an ``(n, p_max, d)`` array: the first of each sample, or those of a mask."""
    dense = np.asarray(padded)
    if dense.ndim != 3:
        raise ValueError(f"padded must have shape (n, p_max, d), got {dense.shape}.")
    if (lengths is None) == (mask is None):
        raise ValueError("give exactly one of lengths and mask.")
    if mask is None:
        counts = np.asarray(lengths)
        if counts.shape != dense.shape[:1] or counts.dtype.kind not in "iu":
            raise ValueError(f"lengths must be {len(dense)} integers, one a sample.")
        wrong = np.flatnonzero((counts < 0) | (counts > dense.shape[1]))
        if len(wrong):
            raise ValueError(
                f"sample {wrong[0]} has length {counts[wrong[0]]}, outside 0..{dense.shape[1]}."
            )
        real = np.arange(dense.shape[1]) < counts[:, None]  # (n, p_max)
    else:
        real = np.asarray(mask)
        if real.shape != dense.shape[:2] or real.dtype != bool:
            raise ValueError(f"mask must be boolean with shape {dense.shape[:2]}.")
    return dense[real], offsets_from(real.sum(axis=1))


def pack_frame(frame: Any, sample: str, features: Sequence[str] | None) -> tuple[Any, Any, Any]:
    """A long table, and the ids of its samples in the order in which they first appear."""
    names = list(getattr(frame, "column_names", None) or getattr(frame, "columns", frame))
    for name in [sample, *(features or [])]:
        if name not in names:
            raise ValueError(f"column {name!r} is not in the table; it has {names}.")
    columns = [c for c in names if c != sample] if features is None else list(features)
    if not columns:
        raise ValueError("the table has no feature column.")
    values = np.column_stack([_as_column(frame[c], c) for c in columns])
    ids = _as_ids(frame[sample], sample)
    unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(unique))  # order of first appearance
    number = rank[inverse]  # (N,) sample of each line
    if np.any(np.diff(number) < 0):
        values = values[np.argsort(number, kind="stable")]
    return values, offsets_from(np.bincount(number)), unique[np.argsort(first)]


def pack_arrow(column: Any) -> Packed:
    """A pyarrow column of lists of rows."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):  # combining even one chunk would copy it
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # an empty column stays chunked
        raise ValueError("the column is empty: pass at least one sample.")
    if column.null_count:
        raise ValueError("the column has a null sample: drop it.")
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not hasattr(
        kind.value_type, "value_type"
    ):
        raise TypeError(f"expected a list of lists of numbers, got {kind}.")
    start = column.offsets[0].as_py()
    offsets = column.offsets.to_numpy() - start
    rows = column.flatten()
    if rows.null_count:
        raise ValueError("the column has a null row: drop it.")
    if pa.types.is_fixed_size_list(rows.type):
        width = rows.type.list_size
    else:
        widths = np.diff(rows.offsets.to_numpy())
        width = int(widths[0]) if len(widths) else 1
        if np.any(widths != width):
            raise ValueError("rows have differing numbers of features.")
    flat = rows.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(rows), width), offsets


def as_float_matrix(array: Any, what: str) -> np.ndarray:
    """A C-contiguous (rows, features) array of floats; errors say what it was."""
    if isinstance(array, torch.Tensor):
        array = as_numpy(array)
    try:
        matrix = np.asarray(array)
        if matrix.dtype == object:
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is not a matrix of numbers: {error}.") from error
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be a 2-D array (rows × features), got {matrix.ndim}-D.")
    if matrix.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} is complex; pass real numbers.")
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{what} is not numeric (dtype {matrix.dtype}): pass real numbers.")
    if matrix.shape[1] == 0:
        raise ValueError(f"{what} has 0 features: every row needs at least one.")
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    return np.ascontiguousarray(matrix)


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """A tensor from any device, detached."""
    tensor = tensor.detach().cpu()
    if tensor.dtype is torch.bfloat16:  # unknown to NumPy, exact in float32
        tensor = tensor.float()
    return tensor.numpy()


def offsets_from(lengths: Any) -> np.ndarray:
    """0 and the running sums of the lengths: where samples begin and end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _as_column(column: Any, name: str) -> np.ndarray:
    array = np.asarray(column)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"column {name!r} is not numeric (dtype {array.dtype}).")
    return array


def _as_ids(column: Any, name: str) -> np.ndarray:
    ids = np.asarray(column)
    if ids.dtype.kind in "fOmM":
        for line, value in enumerate(ids.tolist()):
            if _is_missing(value):
                raise ValueError(f"line {line} of column {name!r} names no sample: drop the line.")
        try:
            np.sort(ids)
        except TypeError as error:
            raise ValueError(
                f"column {name!r} mixes ids that cannot be compared ({error}): use one type."
            ) from None
    return ids


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
