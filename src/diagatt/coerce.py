"""What X, y, sample weights and covariates may be: the one place that knows.

Whatever users have (lists, NumPy arrays, torch tensors, pandas and polars frames, Arrow columns)
becomes contiguous arrays of floats here, or is refused in a sentence that names the sample.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import torch
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from diagatt.arrays import (
    InputError,
    Place,
    as_numpy,
    float_array,
    float_matrix,
    is_sparse,
    plain_array,
    refuse_dates,
    refuse_kind,
    refuse_missing,
    sparse_matrix,
)
from diagatt.names import Names, checked, match, names_of, order


class Packed(NamedTuple):
    """Samples as `RaggedRows` holds them, with the names that their source has."""

    values: np.ndarray  # (N, d)
    offsets: np.ndarray  # (n + 1,)
    feature_names: Names | None = None  # d
    sample_ids: Any = None  # n
    row_ids: Any = None  # N
    row_weight: Any = None  # N


WEIGHTS = (1e-30, 1e30)  # smallest and largest positive weight: float32 holds both
NEVER = -1e6  # logarithm of the weight of rows that are known not to be active
SEARCHED_ROWS = 65536  # rows that are searched for NaN in one go
ROUTING = (
    " In cross_val_score and other tools of scikit-learn, pass diagatt.WithCovariates(X, "
    "covariates) as X; or call sklearn.set_config(enable_metadata_routing=True), and give scores "
    "by name as scoring=diagatt.scoring.scorer(name)."
)


# ---------------------------------------------------------------------- samples


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
    if _is_arrow_column(X):
        return pack_arrow(X)
    if getattr(X, "is_nested", False):
        return pack_nested(X)
    if is_flat(X):
        values = float_matrix(X, "X", lambda at: f"sample {at[0]}, row 0")
        return Packed(values, np.arange(len(values) + 1), names_of(X, "X"), _index(X))
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
            raise InputError(f"of sample {i} and sample 0 one is sparse: pass all alike.")
        if matrix.shape[0] == 0:
            raise InputError(
                f"sample {i} has no rows: every sample needs at least one row; drop it."
            )
        parts.append(matrix)
        ids.append(_index(sample))
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
    if isinstance(frame, Mapping):
        columns: dict[str, Any] = dict(frame)
    else:
        names_of(frame, "the table")  # refuses two columns of one name
        table = nw.from_native(frame, eager_only=True)
        columns = {name: table[name] for name in table.columns}
    keys = [key for key in (sample, row, row_weight) if key is not None]
    for name in [*keys, *(features or [])]:
        if name not in columns:
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
    values = np.column_stack([float_array(columns[c], *_column_of(c)) for c in chosen])
    words, line = _column_of(sample)
    ids = np.asarray(plain_array(columns[sample], words, line, dates=True))
    refuse_missing(ids, words, lambda i: f"{line((i,))} names no sample: drop the line.")
    unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
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


def _index(frame: Any) -> list[str] | None:
    """Return the labels of the lines of a pandas frame, as text; None if it has none of its own."""
    if isinstance(frame, np.ndarray | list | tuple | torch.Tensor):
        return None
    frame = nw.from_native(frame, pass_through=True, eager_only=True)
    labels = nw.maybe_get_index(frame) if isinstance(frame, nw.DataFrame) else None
    if labels is None or type(labels).__name__ == "RangeIndex":
        return None
    return [str(label) for label in labels]


def pack_arrow(column: Any) -> Packed:
    """Pack a pyarrow column of lists of rows."""
    import pyarrow as pa

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


def row_weights(row_weight: Any, offsets: np.ndarray) -> np.ndarray:
    """Return the weights of rows, (N,) float64, which are positive numbers.

    Examples
    --------
    >>> row_weights([1.0, 0.0], np.array([0, 2]))
    Traceback (most recent call last):
    diagatt.arrays.InputError: sample 0, row 1 has the weight 0: weights are positive; drop the row.
    """
    given = float_array(row_weight, "row_weight", lambda at: f"row_weight[{at[0]}]")
    given = given.astype(np.float64, copy=False)
    if given.shape != (int(offsets[-1]),):
        raise InputError(
            f"row_weight must be one number per row, {int(offsets[-1])} of them, got shape "
            f"{given.shape}."
        )
    low, high = WEIGHTS
    wrong = np.flatnonzero(~((given >= low) & (given <= high)))  # NaN, too
    if len(wrong):
        i = int(wrong[0])
        advice = "drop the row" if given[i] == 0 else f"they lie between {low:g} and {high:g}"
        raise InputError(
            f"{row_name(offsets, i)} has the weight {given[i]:g}: weights are positive; {advice}."
        )
    return given


def refuse_nonfinite(rows: Any) -> None:
    """Refuse NaN and infinity in `RaggedRows`, naming the sample and the row."""
    if rows.is_sparse:
        return _refuse_nonfinite_entries(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.values.sum(dtype=np.float64)):  # one pass, no temporary
            return
    for start in range(0, len(rows.values), SEARCHED_ROWS):
        block = rows.values[start : start + SEARCHED_ROWS]
        wrong = np.flatnonzero(~np.isfinite(block).all(axis=1))
        if len(wrong):
            kind = "NaN" if np.isnan(block[wrong[0]]).any() else "infinity"
            where = row_name(rows.offsets, start + int(wrong[0]))
            raise InputError(f"{where} contains {kind}: drop the row or impute it.")


def _refuse_nonfinite_entries(rows: Any) -> None:
    """Do the same with sparse rows, of which only stored entries are looked at."""
    wrong = np.flatnonzero(~np.isfinite(rows.values.data))
    if len(wrong):
        kind = "NaN" if np.isnan(rows.values.data[wrong[0]]) else "infinity"
        row = int(np.searchsorted(rows.values.indptr, wrong[0], side="right")) - 1
        raise InputError(
            f"{row_name(rows.offsets, row)} contains {kind}: drop the row or impute it."
        )


def refuse_huge(rows: Any) -> None:
    """Refuse `RaggedRows` to fit to whose squares are beyond their type, naming the row."""
    limit = np.sqrt(np.finfo(rows.dtype).max)
    if max(rows.values.max(), -rows.values.min()) > limit:
        at = int(np.abs(rows.values).max(axis=1).argmax())
        raise InputError(
            f"{row_name(rows.offsets, at)} holds {np.abs(rows.values[at]).max():.3g}, which is too "
            f"large: its square is beyond {rows.dtype}. Standardize the rows, or drop this one."
        )


def refuse_overflow(rows: Any) -> None:
    """Refuse `RaggedRows` from which something was computed that is no number, naming the row."""
    at = int(np.abs(rows.values).max(axis=1).argmax())
    largest = np.abs(rows.values[at]).max()
    raise InputError(
        f"{row_name(rows.offsets, at)} holds an entry of size {largest:.3g}, which is too large "
        f"for this model: its score or prediction is beyond {rows.dtype}. Drop or scale the row."
    )


def row_name(offsets: np.ndarray, packed: int) -> str:
    """Name the sample and the row that stand at a place of the packed rows.

    Examples
    --------
    >>> row_name(np.array([0, 2, 5]), 3)
    'sample 1, row 1'
    """
    sample = int(np.searchsorted(offsets, packed, side="right")) - 1
    return f"sample {sample}, row {packed - int(offsets[sample])}"


def offsets_from(lengths: Any) -> np.ndarray:
    """Return 0 and the running sums of the lengths: where samples begin and end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _is_matrix(item: Any) -> bool:
    """Whether an item of a list is a matrix and not a row."""
    try:
        return (item.ndim if hasattr(item, "ndim") else np.ndim(item)) == 2
    except ValueError:  # an inhomogeneous nested list
        return False


def _is_arrow_column(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "pyarrow" and hasattr(X, "null_count")


# ---------------------------------------------------------------------- y, weights, covariates


def response(y: Any, n_samples: int) -> np.ndarray:
    """Return numeric responses, (n,) float64.

    Examples
    --------
    >>> response([1, None, 2], 3)
    Traceback (most recent call last):
    diagatt.arrays.InputError: y[1] is NaN: drop the sample or impute the entry.
    """
    column = float_array(_column(y, n_samples), "y", _entry("y"))
    return _finite(column.astype(np.float64, copy=False), "y")


def classes(y: Any, n_samples: int) -> np.ndarray:
    """Return class labels as they are, (n,)."""
    labels = _column(y, n_samples)
    if labels.dtype.kind == "f":
        _finite(labels, "y")
    refuse_missing(labels, "y", lambda i: f"y[{i}] is missing: drop the sample.")
    check_classification_targets(labels)
    return labels


def n_outcomes(y: Any) -> int:
    """Return how many columns responses have, 1 if they are one number or class per sample.

    Examples
    --------
    >>> n_outcomes([1, 0, 1]), n_outcomes([[1, 0], [0, 0]])
    (1, 2)
    """
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and len(y):
        shape = (len(y), *np.shape(y[0])[:1])
    return int(shape[1]) if shape is not None and len(shape) == 2 else 1


def labels(y: Any, n_samples: int, count: int) -> np.ndarray:
    """Return several labels of each sample, 0 or 1, (n, count) float64.

    Examples
    --------
    >>> labels([[1, 0], [2, 0]], 2, 2)
    Traceback (most recent call last):
    diagatt.arrays.InputError: y[1, 0] = 2, but several labels are 0 or 1 each: ...
    """
    given = y.toarray() if is_sparse(y) else y
    table = responses(given, n_samples, count, "0 or 1 for every label")
    wrong = np.argwhere((table != 0) & (table != 1))
    if len(wrong):
        at = tuple(wrong[0])
        raise InputError(
            f"{_entry('y')(at)} = {table[at]:g}, but several labels are 0 or 1 each: for outcomes "
            "of more classes, fit every column by itself, for example with scikit-learn's "
            "MultiOutputClassifier."
        )
    return table


def known_rows(row_labels: Any, offsets: np.ndarray) -> np.ndarray:
    """Return 0 for rows that may be active and a large negative number for others, (N,).

    Parameters
    ----------
    row_labels : int array of shape (n,)
        The active row of each sample, from 0, or −1 if it is not known.
    offsets : array of shape (n + 1,)

    Examples
    --------
    >>> known_rows([1, -1], np.array([0, 2, 4])) == 0
    array([False,  True,  True,  True])
    """
    labels, lengths = np.asarray(row_labels), np.diff(offsets)
    if labels.dtype.kind not in "iu" or labels.shape != lengths.shape:
        raise InputError(
            f"row_labels must be one whole number per sample ({len(lengths)} of them, -1 where the "
            f"row is not known), got {labels.dtype} of shape {labels.shape}."
        )
    wrong = np.flatnonzero((labels < -1) | (labels >= lengths))
    if len(wrong):
        i = wrong[0]
        raise InputError(
            f"row_labels[{i}] = {labels[i]}, but sample {i} has {lengths[i]} rows, which are "
            "counted from 0; -1 says that the row is not known."
        )
    position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    label = np.repeat(labels, lengths)
    return np.where((label >= 0) & (position != label), NEVER, 0.0)


def groups(given: Any, n_samples: int) -> np.ndarray:
    """Return codes of groups, (n,): one per different number or word."""
    codes = np.asarray(given)
    if codes.ndim != 1 or codes.dtype.kind not in "iufbUSO":
        raise InputError(
            f"groups must be one number or word per sample, got {codes.dtype} of {codes.ndim} "
            "dimensions."
        )
    if len(codes) != n_samples:
        raise InputError(f"groups has {len(codes)} entries, but there are {n_samples} samples.")
    missing = [i for i, code in enumerate(codes.tolist()) if code is None or code != code]
    if missing:
        raise InputError(f"groups[{missing[0]}] is missing: give every sample a group.")
    if codes.dtype.kind == "O":
        codes = codes.astype(str)
    return np.unique(codes, return_inverse=True)[1].reshape(-1)


def weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return sample weights, (n,) float64: finite, not negative, not all zero."""
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, numbers.Number):
        sample_weight = np.full(n_samples, sample_weight)
    if isinstance(sample_weight, str | bytes | Mapping):
        raise InputError(
            f"sample_weight must be a number or one number per sample, got {sample_weight!r}."
        )
    given = float_array(sample_weight, "sample_weight", _entry("sample_weight"))
    if given.ndim != 1:
        raise InputError(f"Sample weights must be 1D array or scalar, got {given.ndim}-D.")
    if len(given) != n_samples:
        raise InputError(f"sample_weight has {len(given)} entries, X has {n_samples} samples.")
    given = _finite(given.astype(np.float64, copy=False), "sample_weight")
    if np.any(given < 0):
        i = int(np.argmax(given < 0))
        raise InputError(f"sample_weight[{i}] = {given[i]:g} is negative: weights are ≥ 0.")
    if not np.any(given > 0):
        raise InputError("all sample weights are zero: at least one sample must count.")
    low, high = WEIGHTS
    wrong = np.flatnonzero((given > high) | ((given > 0) & (given < low)))
    if len(wrong):
        i = int(wrong[0])
        size = "large" if given[i] > high else "small"
        raise InputError(
            f"sample_weight[{i}] = {given[i]:g} is too {size}: weights are 0 or between {low:g} "
            f"and {high:g}; multiply all of them by one number."
        )
    return given


def class_weights(class_weight: Any, y: Any, sample_weight: Any, n_samples: int) -> Any:
    """Return sample weights times the weights of the samples' classes, as in scikit-learn.

    Parameters
    ----------
    class_weight : "balanced", mapping from classes to weights, or None
        "balanced" weighs classes by n / (classes · samples of the class); a class that a mapping
        lacks has weight 1.
    y : array of shape (n,), or (n, q) of labels, for which "balanced" multiplies the weights of all
    sample_weight : array of shape (n,), number or None
    n_samples : int

    Examples
    --------
    >>> class_weights("balanced", [0, 0, 0, 1], None, 4).round(3)
    array([0.667, 0.667, 0.667, 2.   ])
    """
    if class_weight is None:
        return sample_weight
    several = n_outcomes(y)
    if class_weight != "balanced" and (several > 1 or not isinstance(class_weight, Mapping)):
        raise InputError(
            f"class_weight must be 'balanced' or, of one response per sample, a dictionary from "
            f"classes to weights, got {class_weight!r}."
        )
    labels_ = classes(y, n_samples) if several == 1 else labels(y, n_samples, several)
    if class_weight != "balanced":
        known = np.unique(labels_).tolist()
        for label, weight in class_weight.items():
            if label not in known:
                raise InputError(
                    f"class_weight has the class {label!r}, but those of y are "
                    f"{', '.join(map(str, known))}."
                )
            if not isinstance(weight, numbers.Real) or not 0 < float(weight) < np.inf:
                raise InputError(
                    f"class_weight[{label!r}] = {weight!r} is no positive number: leave the "
                    "samples of a class out that is not to count."
                )
    return weights(sample_weight, n_samples) * compute_sample_weight(class_weight, labels_)


def covariates(
    given: Any, n_samples: int, expected: int | None = None, names: Sequence[str] | None = None
) -> np.ndarray:
    """Return shared covariates z, (n, q) float64; q = 0 without any.

    Parameters
    ----------
    given : array or frame of shape (n, q), or None
    n_samples : int
    expected : int, optional
        What q must be: that of the fit.
    names : names, optional
        Those of the fit: columns of a frame are taken in this order.
    """
    if given is None:
        Z, found = np.empty((n_samples, 0)), None
    else:
        Z = float_array(given, "covariates", _entry("covariates"))
        found = names_of(given, "covariates")
    if Z.ndim != 2:
        raise InputError(
            f"covariates must have shape (n_samples, n_covariates), got {Z.ndim}-D: pass a single "
            "covariate z as z[:, None]."
        )
    if len(Z) != n_samples:
        raise InputError(f"covariates have {len(Z)} lines, X has {n_samples} samples.")
    if expected is not None and (given is not None or expected):
        if Z.shape[1] != expected and (found is None or names is None or not expected):
            raise InputError(
                f"the model was fitted with {expected} covariates, got {Z.shape[1]}: pass the same "
                "covariates to fit and to predict." + (ROUTING if given is None else "")
            )
        place = match(found, names, "covariates", "covariates[list(model.covariate_names_in_)]")
        Z = Z if place is None else np.ascontiguousarray(Z[:, place])
    return _finite(Z.astype(np.float64, copy=False), "covariates")


def responses(y: Any, n_samples: int, width: int, what: str) -> np.ndarray:
    """Return responses of several numbers each, (n, width) float64.

    Parameters
    ----------
    y : array or frame of shape (n, width)
    n_samples, width : int
    what : str
        What the columns are, for the sentence that refuses others.
    """
    if y is None:
        raise InputError("fitting requires y to be passed, but the target y is None.")
    table = float_array(y, "y", _entry("y"))
    if table.ndim != 2 or table.shape[1] != width:
        raise InputError(f"y must have {width} columns, {what}; got shape {table.shape}.")
    if len(table) != n_samples:
        raise InputError(f"y has {len(table)} lines, X has {n_samples} samples.")
    return _finite(table.astype(np.float64, copy=False), "y")


def offset(given: Any, exposure: Any, n_samples: int, n_outputs: int) -> np.ndarray | None:
    """Return the known part of the predictor, (n, K) float64: the offset plus log exposure.

    Parameters
    ----------
    given : array of shape (n,) or (n, K), or None
    exposure : array of shape (n,), or None
        Positive: years, areas, sequencing depths.
    n_samples, n_outputs : int

    Examples
    --------
    >>> offset(None, [1.0, 2.0], 2, 1).round(3)
    array([[0.   ],
           [0.693]])
    """
    total = np.zeros((n_samples, n_outputs))
    if given is not None:
        known = float_array(given, "offset", _entry("offset"))
        known = known[:, None] if known.ndim == 1 else known
        if known.ndim != 2 or len(known) != n_samples or known.shape[1] not in (1, n_outputs):
            raise InputError(
                f"offset must be one number per sample, {n_samples}, got shape {known.shape}."
            )
        total += _finite(known.astype(np.float64, copy=False), "offset")
    if exposure is not None:
        times = float_array(exposure, "exposure", _entry("exposure"))
        if times.shape != (n_samples,):
            raise InputError(
                f"exposure must be one number per sample, {n_samples}, got shape {times.shape}."
            )
        times = _finite(times.astype(np.float64, copy=False), "exposure")
        if np.any(times <= 0):
            i = int(np.argmax(times <= 0))
            raise InputError(
                f"exposure[{i}] = {times[i]:g} is not positive: nothing can be observed without "
                "exposure; drop the sample."
            )
        total += np.log(times)[:, None]
    return None if given is None and exposure is None else total


def _column(y: Any, n_samples: int) -> np.ndarray:
    """Return y as a 1-D array of words, numbers or objects."""
    if y is None:
        raise InputError("fitting requires y to be passed, but the target y is None.")
    array = plain_array(y, "y", _entry("y"))
    refuse_kind(array, "y", "Mmc")
    refuse_dates(array, "y")
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        raise InputError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    column = column_or_1d(array, warn=True)
    if len(column) != n_samples:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples} "
            f"samples, y has {len(column)} responses."
        )
    return column


def _entry(what: str) -> Place:
    return lambda at: f"{what}[{', '.join(map(str, at))}]"


def _row_of(sample: int) -> Place:
    return lambda at: f"sample {sample}, row {at[0]}"


def _column_of(name: str) -> tuple[str, Place]:
    return f"column {name!r}", lambda at: f"line {at[0]} of column {name!r}"


def _finite(array: np.ndarray, what: str) -> np.ndarray:
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        at = tuple(wrong[0])
        kind = "NaN" if np.isnan(array[at]) else "infinity"
        raise InputError(f"{_entry(what)(at)} is {kind}: drop the sample or impute the entry.")
    return array
