"""What may be passed with X: responses, weights, groups, offsets and covariates."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from diagatt.arrays import (
    CODED,
    InputError,
    Place,
    float_array,
    plain_array,
    refuse_dates,
    refuse_kind,
    refuse_lookalikes,
    refuse_missing,
)
from diagatt.coerce.usable import WEIGHTS
from diagatt.names import match, names_of

NEVER = -1e6  # logarithm of the weight of rows that are known not to be active
ROUTING = (
    " In cross_val_score and other tools of scikit-learn, pass diagatt.WithCovariates(X, "
    "covariates) as X; or call sklearn.set_config(enable_metadata_routing=True), and give scores "
    "by name as scoring=diagatt.scoring.scorer(name)."
)


def response(y: Any, n_samples: int) -> np.ndarray:
    """Return numeric responses, (n,) float64.

    Examples
    --------
    >>> response([1, None, 2], 3)
    Traceback (most recent call last):
    diagatt.arrays.InputError: y[1] is NaN: drop the sample or impute the entry.
    """
    classes = "if these are classes, use a classifier, such as DiagAttClassifier"
    found = float_array(column(y, n_samples), "y", entry("y"), classes)
    return finite(found.astype(np.float64, copy=False), "y")


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
    count = int(shape[1]) if shape is not None and len(shape) == 2 else 1
    if count == 0:
        raise InputError("y has no column: pass one response per sample.")
    return count


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
    labels, lengths = whole_labels(row_labels), np.diff(offsets)
    if labels.shape != lengths.shape:
        raise InputError(
            f"row_labels must be one whole number per sample ({len(lengths)} of them, -1 where the "
            f"row is not known), got shape {labels.shape}."
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


def whole_labels(given: Any) -> np.ndarray:
    """Return row labels as an array of whole numbers, of any shape.

    Examples
    --------
    >>> whole_labels([0.5, 1])
    Traceback (most recent call last):
    diagatt.arrays.InputError: row_labels must be whole numbers, ..., got an array of float64.
    """
    labels = plain_array(given, "row_labels", entry("row_labels"))
    if labels.dtype.kind not in "iu":
        raise InputError(
            "row_labels must be whole numbers, the places of rows in their samples, got an array "
            f"of {labels.dtype}."
        )
    return labels.astype(np.int64)


def groups(given: Any, n_samples: int) -> np.ndarray:
    """Return codes of groups, (n,): one per different number or word."""
    codes = plain_array(given, "groups", entry("groups"))
    if codes.ndim != 1 or codes.dtype.kind not in "iufbUSO":
        raise InputError(
            f"groups must be one number or word per sample, got {codes.dtype} of {codes.ndim} "
            "dimensions."
        )
    if len(codes) != n_samples:
        raise InputError(f"groups has {len(codes)} entries, but there are {n_samples} samples.")
    refuse_missing(codes, "groups", lambda i: f"groups[{i}] is missing: give every sample a group.")
    different, found = np.unique(codes, return_inverse=True)
    refuse_lookalikes(different, "names in groups")
    return found.reshape(-1)


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
    given = float_array(sample_weight, "sample_weight", entry("sample_weight"))
    if given.ndim != 1:
        raise InputError(f"Sample weights must be 1D array or scalar, got {given.ndim}-D.")
    if len(given) != n_samples:
        raise InputError(f"sample_weight has {len(given)} entries, X has {n_samples} samples.")
    given = finite(given.astype(np.float64, copy=False), "sample_weight")
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
        Z = float_array(given, "covariates", entry("covariates"), CODED)
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
    return finite(Z.astype(np.float64, copy=False), "covariates")


def responses(y: Any, n_samples: int, width: int, what: str) -> np.ndarray:
    """Return responses of several numbers each, (n, width) float64.

    Parameters
    ----------
    y : array or frame of shape (n, width)
    n_samples, width : int
    what : str
        What the columns are, for error messages.
    """
    if y is None:
        raise InputError("fitting requires y to be passed, but the target y is None.")
    table = float_array(y, "y", entry("y"))
    if table.ndim != 2 or table.shape[1] != width:
        raise InputError(f"y must have {width} columns, {what}; got shape {table.shape}.")
    if len(table) != n_samples:
        raise InputError(f"y has {len(table)} lines, X has {n_samples} samples.")
    return finite(table.astype(np.float64, copy=False), "y")


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
        known = float_array(given, "offset", entry("offset"))
        known = known[:, None] if known.ndim == 1 else known
        if known.ndim != 2 or len(known) != n_samples or known.shape[1] not in (1, n_outputs):
            raise InputError(
                f"offset must be one number per sample, {n_samples}, got shape {known.shape}."
            )
        total += finite(known.astype(np.float64, copy=False), "offset")
    if exposure is not None:
        times = float_array(exposure, "exposure", entry("exposure"))
        if times.shape != (n_samples,):
            raise InputError(
                f"exposure must be one number per sample, {n_samples}, got shape {times.shape}."
            )
        times = finite(times.astype(np.float64, copy=False), "exposure")
        if np.any(times <= 0):
            i = int(np.argmax(times <= 0))
            raise InputError(
                f"exposure[{i}] = {times[i]:g} is not positive: nothing can be observed without "
                "exposure; drop the sample."
            )
        total += np.log(times)[:, None]
    return None if given is None and exposure is None else total


def times(given: Any, *, increasing: bool) -> np.ndarray:
    """Return times at which functions are to be evaluated, (T,) float64.

    Parameters
    ----------
    given : array of shape (T,)
    increasing : bool
        Whether they must be increasing, as the steps of a function are.

    Examples
    --------
    >>> times([3.0, 1.0], increasing=True)
    Traceback (most recent call last):
    diagatt.arrays.InputError: times[1] = 1 is not above times[0] = 3: sort the times, or ...
    """
    found = float_array(given, "times", entry("times")).astype(np.float64, copy=False)
    if found.ndim != 1 or len(found) == 0:
        raise InputError(f"times must be a list of at least one time, got shape {found.shape}.")
    finite(found, "times", "leave it out")
    if np.any(found < 0):
        i = int(np.argmax(found < 0))
        raise InputError(f"times[{i}] = {found[i]:g} is negative: times are 0 or positive.")
    down = np.flatnonzero(np.diff(found) <= 0)
    if increasing and len(down):
        i = int(down[0])
        raise InputError(
            f"times[{i + 1}] = {found[i + 1]:g} is not above times[{i}] = {found[i]:g}: sort the "
            "times, or pass return_array=True."
        )
    return found


def column(y: Any, n_samples: int) -> np.ndarray:
    """Return y as a 1-D array of words, numbers or objects."""
    if y is None:
        raise InputError("fitting requires y to be passed, but the target y is None.")
    array = plain_array(y, "y", entry("y"))
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


def entry(what: str) -> Place:
    """Return what names the entry of an array at an index."""
    return lambda at: f"{what}[{', '.join(map(str, at))}]"


def finite(
    array: np.ndarray, what: str, advice: str = "drop the sample or impute the entry"
) -> np.ndarray:
    """Return an array of finite numbers; refuse others, naming the entry."""
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        at = tuple(wrong[0])
        kind = "NaN" if np.isnan(array[at]) else "infinity"
        raise InputError(f"{entry(what)(at)} is {kind}: {advice}.")
    return array
