"""Classes: what labels of samples may be, and how much each class counts."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from diagatt.arrays import InputError, is_sparse, refuse_lookalikes, refuse_missing
from diagatt.coerce.beside import column, entry, finite, n_outcomes, responses, weights
from diagatt.user_warnings import warn


def classes(y: Any, n_samples: int) -> np.ndarray:
    """Return class labels as they are, (n,)."""
    labels = column(y, n_samples)
    if labels.dtype.kind == "f":
        finite(labels, "y")
    refuse_missing(labels, "y", lambda i: f"y[{i}] is missing: drop the sample.")
    if labels.dtype.kind in "OS":
        labels = _classes_of_objects(labels)
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise InputError(
            f"{str(error).partition('.')[0]}: classes are words, whole numbers or truth values; "
            "for other numbers, use the regressor of this method."
        ) from None
    different = np.unique(labels)
    refuse_lookalikes(different, "labels in y")
    _warn_of_capitals(different)
    return labels


def _warn_of_capitals(labels: np.ndarray) -> None:
    """Warn of classes that differ in capital letters alone: they may be meant as one."""
    seen: dict[str, str] = {}
    for label in labels.tolist() if labels.dtype.kind in "UO" else ():
        other = seen.setdefault(label.casefold(), label) if isinstance(label, str) else label
        if other != label:
            warn(
                f"labels in y differ in capital letters alone: {other!r} and {label!r} are two "
                "classes; write them in one way if they are one.",
            )
            return


def _classes_of_objects(labels: np.ndarray) -> np.ndarray:
    """Return labels that are objects as words or numbers; refuse others, such as intervals."""
    given = labels.tolist()
    for kind in (str, bool | np.bool_, numbers.Real):
        if all(isinstance(label, kind) for label in given):
            found = labels if kind is str else np.asarray(given)
            if kind is str or found.dtype != object:
                return found
    if all(isinstance(label, numbers.Real) for label in given):
        raise InputError(
            "y holds whole numbers of more than 64 bits, which no array holds: write the classes "
            "as words."
        )
    i = next((i for i, one in enumerate(given) if not isinstance(one, str | numbers.Real)), 0)
    raise InputError(
        f"y[{i}] is {given[i]!r} ({type(given[i]).__name__}): classes are words, whole numbers or "
        "truth values; write them as words."
    )


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
            f"{entry('y')(at)} = {table[at]:g}, but several labels are 0 or 1 each: for outcomes "
            "of more classes, fit every column by itself, for example with scikit-learn's "
            "MultiOutputClassifier."
        )
    return table


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
                    f"class_weight[{label!r}] = {weight!r} is not a positive number: to ignore a "
                    "class, leave its samples out."
                )
    return weights(sample_weight, n_samples) * compute_sample_weight(class_weight, labels_)
