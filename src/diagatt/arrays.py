"""Arrays of numbers from what users have: lists, tensors, frames, masked arrays, objects.

Nothing is guessed: words, dates, complex numbers and masked entries are refused, and missing
entries become NaN. Errors name the entry, in the words of the caller.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence, Set, ValuesView
from typing import Any
from unicodedata import normalize

import narwhals as nw
import numpy as np
import torch

LONGEST_ENTRY = 100  # characters of an entry that a message shows
Place = Callable[[tuple[int, ...]], str]  # names the entry of an array at an index

# What becomes of words among numbers, for messages.
CODED = "code words as columns of zeros and ones, as pandas.get_dummies(…, dtype=float) does"


class InputError(ValueError, TypeError):
    """X, y, sample weights or covariates cannot be read."""


def float_matrix(values: Any, what: str, place: Place) -> np.ndarray:
    """Return a contiguous (rows, features) array of floats; see `float_array`."""
    matrix = float_array(values, what, place)
    if matrix.ndim != 2:
        raise InputError(
            f"{what} must be a 2-D array (rows × features), got {matrix.ndim}-D. Reshape your data."
        )
    if matrix.shape[1] == 0:
        raise InputError(
            f"{what} has 0 features: found 0 feature(s) (shape={matrix.shape}) while a minimum of "
            "1 is required."
        )
    return matrix


def float_array(
    values: Any, what: str, place: Place, words: str = "pass real numbers"
) -> np.ndarray:
    """Return a C-contiguous array of real numbers; None and nulls become NaN.

    Parameters
    ----------
    values : array-like
        float32 and float64 are kept, other real types become float64.
    what : str
        What it is, for messages.
    place : callable
        Names the entry at an index, for messages.
    words : str
        What to do with words, for messages.
    """
    array = plain_array(values, what, place)
    refuse_kind(array, what, "MmcSUV", words)
    if array.dtype == object:
        array = _from_objects(array, what, place, words)
    if array.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # what is too large becomes infinity, and is named
            array = array.astype(np.float64)
    return np.ascontiguousarray(array) if array.ndim else array


def is_sparse(values: Any) -> bool:
    """Whether values are a sparse matrix or array of scipy."""
    return hasattr(values, "toarray") and hasattr(values, "tocsr")


def from_arrow_sparse(values: Any) -> Any:
    """Return a sparse Arrow matrix as one of scipy that shares its memory, and others unchanged."""
    is_arrow = type(values).__module__.split(".")[0] == "pyarrow"
    return values.to_scipy() if is_arrow and hasattr(values, "to_scipy") else values


def sparse_matrix(values: Any, what: str) -> Any:
    """Return a CSR array of floats with sorted indices; types other than float32 become float64.

    Entries are copied only if they have to be.
    """
    from scipy.sparse import csr_array

    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{what} must be a 2-D matrix (rows × features), got {values.shape}.")
    refuse_kind(np.empty(0, values.dtype), what, "MmcSUVO")
    kind = np.float32 if values.dtype == np.float32 else np.float64
    matrix = csr_array(values.tocsr()).astype(kind, copy=False)
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    return matrix


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor from any device as an array, detached."""
    tensor = tensor.detach().cpu()
    if tensor.dtype is torch.bfloat16:  # unknown to NumPy, exact in float32
        tensor = tensor.float()
    return tensor.numpy()


def plain_array(values: Any, what: str, place: Place, dates: bool = False) -> np.ndarray:
    """Return an array of any type without masked entries; with `dates`, frames may hold dates."""
    if isinstance(values, torch.Tensor):
        return _from_tensor(values, what)
    if hasattr(values, "toarray"):
        raise InputError(f"{what} is sparse: pass {what}.toarray().")
    if isinstance(values, Iterator | Set | ValuesView):
        raise InputError(f"{what} is a {type(values).__name__}: pass a list.")
    if isinstance(values, Mapping):
        raise InputError(f"{what} is a {type(values).__name__}: pass a list, an array or a frame.")
    if not isinstance(values, np.ndarray | list | tuple):
        frame = as_frame(values, what)
        if isinstance(frame, nw.DataFrame | nw.Series):
            return _from_frame(frame, what, dates)
    if isinstance(values, list | tuple) and any(isinstance(v, np.ma.MaskedArray) for v in values):
        values = np.ma.array(values)  # np.asarray would read what the masks hide
    try:
        array = np.asanyarray(values)
    except Exception as error:  # an object makes an array of itself as it likes
        raise InputError(f"{what} is not an array of numbers: {_uneven(values, error)}.") from error
    words = isinstance(values, list | tuple) and array.ndim == 1 and array.dtype.kind in "US"
    if words and len({str if isinstance(v, str) else type(v) for v in values}) > 1:
        array = np.array(values, dtype=object)  # NumPy has written numbers and NaN as words
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.argwhere(np.ma.getmaskarray(array))
        if len(hidden):
            at = tuple(hidden[0])
            raise InputError(f"{place(at) if at else what} is masked: drop it or fill it in.")
    return np.asarray(array)


def _from_tensor(tensor: torch.Tensor, what: str) -> np.ndarray:
    """Return a tensor as an array; refuse those that are sparse, quantized or hold no data."""
    try:
        return as_numpy(tensor)
    except (TypeError, RuntimeError) as error:
        kind = f"{tensor.dtype}, {tensor.layout} on {tensor.device}"
        raise InputError(
            f"{what} is a tensor ({kind}) that NumPy cannot read: pass a dense tensor of numbers."
        ) from error


def refuse_unreadable(values: Any, what: str) -> None:
    """Refuse objects that hold numbers and are none: lazy and grouped tables, and AnnData."""
    if callable(getattr(values, "collect", None)):  # polars has not computed it yet
        raise InputError(f"{what} is a {type(values).__name__}: pass {what}.collect().")
    if hasattr(values, "ngroups") or type(values).__name__ == "GroupBy":  # of pandas, of polars
        raise InputError(
            f"{what} is a {type(values).__name__}, which yields pairs of a name and a table: read "
            "the table itself, RaggedRows.from_frame(table, sample=column)."
        )
    if _is_pair(values):
        raise InputError(
            f"{what} is a pair of a name and a table, as groupby yields them: read the whole "
            "table, RaggedRows.from_frame(table, sample=column)."
        )
    if type(values).__module__.split(".")[0] == "anndata":
        raise InputError(
            f"{what} is an {type(values).__name__}: join the objects with anndata.concat, and pass "
            'one with sample_key="patient"; or pass their matrices, .X.'
        )


def _is_pair(values: Any) -> bool:
    """Return whether values are a name and a table."""
    return isinstance(values, tuple) and len(values) == 2 and hasattr(values[1], "columns")


def as_frame(values: Any, what: str) -> Any:
    """Return a frame or series of any library in the words of narwhals; others as they are."""
    refuse_unreadable(values, what)
    try:
        return nw.from_native(values, pass_through=True, eager_only=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        name = twin(list(values.columns))
        raise InputError(f"{what} has two columns {name!r}: give each its own name.") from None


def twin(names: Sequence[Any]) -> Any:
    """Return the first name that occurs twice."""
    return next(name for name in names if names.count(name) > 1)


def _uneven(values: Any, error: Exception) -> str:
    """Say which entries of a list differ in length, or else what NumPy says."""
    if isinstance(values, list | tuple) and values:
        lengths = [len(v) if hasattr(v, "__len__") else None for v in values]
        for i, length in enumerate(lengths):
            if length != lengths[0]:
                said = ["no length" if n is None else f"{n} entries" for n in (length, lengths[0])]
                return f"entry {i} has {said[0]}, entry 0 has {said[1]}"
    return str(error)


def _from_frame(frame: Any, what: str, dates: bool) -> np.ndarray:
    """Return the values of a frame or a series; in a frame dates would silently become numbers."""
    for column in [frame] if isinstance(frame, nw.Series) else frame.iter_columns():
        if column.dtype.is_temporal() and not dates:
            raise InputError(
                f"{what} holds dates or durations ({column.name}: {column.dtype}): pass numbers, "
                "such as days since the first."
            )
    if isinstance(frame, nw.DataFrame) and not frame.columns:  # narwhals makes no such array
        return np.empty((len(frame), 0))
    return frame.to_numpy()


def refuse_kind(array: np.ndarray, what: str, kinds: str, words: str = "pass real numbers") -> None:
    """Refuse arrays whose entries are of one of these kinds, in NumPy's letters."""
    if array.dtype.kind not in kinds:
        return
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {what} is complex; pass real numbers.")
    if array.dtype.kind in "Mm":
        raise InputError(
            f"{what} is not numeric but holds dates or durations ({array.dtype}): pass numbers, "
            "such as days since the first."
        )
    raise InputError(f"{what} is not numeric (dtype {array.dtype}): {words}.")


def refuse_dates(array: np.ndarray, what: str) -> None:
    """Refuse objects that are dates or durations."""
    for at, value in np.ndenumerate(array) if array.dtype == object else ():
        if isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.generic) and (
            not isinstance(value, np.generic) or value.dtype.kind in "Mm"
        ):
            place = f"{what}[{', '.join(map(str, at))}]"
            raise InputError(
                f"{place} is {value!r}: pass numbers or labels, not dates or durations."
            )


def _from_objects(array: np.ndarray, what: str, place: Place, words: str) -> np.ndarray:
    """Read Python objects as numbers one by one; missing ones become NaN."""
    result = np.empty(array.shape)
    for at, value in np.ndenumerate(array):
        try:
            if isinstance(value, str | bytes):
                raise TypeError(words)
            if isinstance(value, np.timedelta64):
                raise TypeError("durations are not numbers")
            result[at] = np.nan if _is_missing(value) else float(value)
        except (TypeError, ValueError, ArithmeticError) as error:
            where = place(at) if at else what
            found = " ".join(repr(value).split())
            found = found if len(found) <= LONGEST_ENTRY else f"{found[:LONGEST_ENTRY]}…"
            reason = words if isinstance(error, decimal.InvalidOperation) else error
            raise InputError(f"{where} holds {found}, not a number: {reason}.") from error
    return result


def refuse_missing(labels: np.ndarray, what: str, words: Callable[[int], str]) -> None:
    """Refuse missing labels, with the message that `words` makes, and labels of several types."""
    if labels.dtype.kind not in "fOmM":
        return
    for i, value in enumerate(labels.tolist()):
        if _is_missing(value):
            raise InputError(words(i))
    try:
        np.sort(labels)
    except TypeError as error:
        raise InputError(
            f"{what} mixes labels that cannot be compared ({error}): use one type."
        ) from None


def refuse_lookalikes(labels: np.ndarray, what: str) -> None:
    """Refuse words among different labels that look the same: white space around them differs.

    Infinity is refused, and numbers so large that float64 does not hold all of them: some are
    rounded.

    Examples
    --------
    >>> refuse_lookalikes(np.array(["yes", "no", "yes "]), "labels in y")
    Traceback (most recent call last):
    diagatt.arrays.InputError: labels in y look alike: 'yes' and 'yes ' differ in white space ...
    """
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise InputError(f"{what} hold infinity, which names nothing: drop it, or name it.")
    if labels.dtype.kind == "f" and len(labels) and np.abs(labels).max() >= 2.0**53:
        raise InputError(
            f"{what} are numbers of {labels.dtype} beyond 2^53, where different ones become the "
            "same: write them as words or whole numbers."
        )
    if labels.dtype.kind not in "UO":
        return
    seen: dict[str, str] = {}
    for label in labels.tolist():
        if isinstance(label, str):
            other = seen.setdefault(normalize("NFC", label).strip(), label)
            if other != label:
                raise InputError(
                    f"{what} look alike: {other!r} and {label!r} differ in white space or in how "
                    "accents are written; write them in one way."
                )


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA and arrays have no truth value
        return type(value).__name__ == "NAType"


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to."""
    view = array.view()
    view.setflags(write=False)
    return view
