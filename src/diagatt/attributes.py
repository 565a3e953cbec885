"""Rules that fitted attributes obey, declared by each class and checked when a file is read.

A class lists them in `fitted_rules`, as it lists the rules of its parameters in `rules`, and says
in `_fitted_shapes` which shapes its arrays have in terms of the other attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diagatt.parameters import Rule, count, shown

Rules = Mapping[str, Rule]

# Attributes that a file may lack: names, if neither rows nor covariates came in a table, and those
# that are newer than the file, for which the class has a default.
OPTIONAL = frozenset(
    {
        "feature_names_in_",
        "covariate_names_in_",
        "readout_",
        "contest_",
        "has_row_of_interest_",
        "described_",
        "n_encoded_",
        "shape_",
        "errors_note_",
        "n_rows_",
        "log_score_",
        "existence_",
        "row_temperature_",
        "row_recalibration_",
        "row_thresholds_",
        "held_out_rows_",
        "conformal_scores_",
        "conformal_classes_",
        "conformal_dispersion_",
        "conformal_dispersions_",
        "conformal_ambiguity_",
        "labelled_rows_",
        "n_outputs_",
        "outcome_names_",
        "none_score_",
        "none_value_",
        "prevalence_",
        "prevalence_interval_",
        "row_means_",
        "row_covariances_",
        "missing_",
    }
)

# Errors that invalid content of a file may cause; any other error is a defect and stays visible.
NONSENSE = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError)


def declared(kind: type) -> dict[str, Rule]:
    """Return the rules of the fitted attributes of a class and its bases."""
    rules: dict[str, Rule] = {}
    for base in reversed(kind.__mro__):
        rules |= vars(base).get("fitted_rules", {})
    return rules


def check_names(kind: type, found: Mapping[str, Any]) -> None:
    """Refuse missing attributes, and names that are not fitted attributes of the class.

    A user's own class need not declare its attributes, but they must not replace members of it.
    """
    rules = declared(kind)
    missing = sorted(set(rules) - OPTIONAL - set(found))
    if missing:
        raise ValueError(f"the fitted attribute {missing[0]} is missing")
    open_ended = not kind.__module__.startswith("diagatt.")
    for name in sorted(set(found) - set(rules)):
        own = name.endswith("_") and name.isidentifier() and not name.startswith("_")
        if not (open_ended and own and not hasattr(kind, name)):
            raise ValueError(f"{kind.__name__} has no fitted attribute {shown(name)}")


def check_values(estimator: Any) -> None:
    """Refuse fitted attributes that break their rule, and arrays that do not fit the others."""
    for name, rule in declared(type(estimator)).items():
        if name in vars(estimator) and not rule.accepts(vars(estimator)[name]):
            value = vars(estimator)[name]
            raise ValueError(f"{name} must be {rule.allowed}, got {_described(value)}")
    shapes = estimator._fitted_shapes() if hasattr(estimator, "_fitted_shapes") else {}
    for name, shape in shapes.items():
        value = getattr(estimator, name, None)
        if value is not None and np.shape(value) != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {np.shape(value)}")


def refuse_nonfinite(estimator: Any) -> None:
    """Refuse a fit whose arrays hold NaN or infinity where their rules allow none."""
    for name, rule in declared(type(estimator)).items():
        value = vars(estimator).get(name)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not rule.accepts(value):
            raise FloatingPointError(f"{name} holds NaN or infinity")


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        infinite = value.dtype.kind == "f" and not np.isfinite(value).all()
        words = f"an array of {value.dtype} and shape {value.shape}"
        return f"{words} that holds NaN or infinity" if infinite else words
    return shown(value)


# ---------------------------------------------------------------------- rules


def size(least: int = 0) -> Rule:
    """Allow whole numbers from `least` on, as large as counts of samples or bytes may become."""
    return count(least, 2**63 - 1)


def floats(*types: str) -> Rule:
    """Allow arrays of finite floats; of these types only, if any are given."""
    types = types or ("float32", "float64")

    def accepts(value: Any) -> bool:
        fits = isinstance(value, np.ndarray) and value.dtype.name in types
        return fits and bool(np.isfinite(value).all())

    return Rule(f"an array of finite numbers of type {' or '.join(types)}", accepts)


def positives() -> Rule:
    """Allow arrays of finite, positive numbers of type float64."""
    finite = floats("float64")
    return Rule(
        "an array of positive numbers of type float64",
        lambda value: finite.accepts(value) and bool((value > 0).all()),
    )


def errors() -> Rule:
    """Allow standard errors: an array of floats, or None."""

    def accepts(value: Any) -> bool:
        return value is None or (isinstance(value, np.ndarray) and value.dtype.kind == "f")

    return Rule("an array of floats or None", accepts)


def number() -> Rule:
    """Allow any number: a loss may have become infinite."""
    return Rule("a number", _is_number)


def text() -> Rule:
    """Allow a string."""
    return Rule("a string", lambda value: isinstance(value, str))


def list_of(rule: Rule) -> Rule:
    """Allow lists of what the rule allows."""
    return Rule(
        f"a list, each item {rule.allowed}",
        lambda value: isinstance(value, list) and all(rule.accepts(item) for item in value),
    )


def counts(*keys: str) -> Rule:
    """Allow a dictionary with these keys and a count under each."""
    whole = size()

    def accepts(value: Any) -> bool:
        fits = isinstance(value, dict) and set(value) == set(keys)
        return fits and all(whole.accepts(item) for item in value.values())

    return Rule(f"a dictionary of counts with the keys {', '.join(keys)}", accepts)


def whole() -> Rule:
    """Allow arrays of whole numbers."""
    return Rule(
        "an array of whole numbers",
        lambda value: isinstance(value, np.ndarray) and value.dtype.kind == "i",
    )


def numbers(*keys: str) -> Rule:
    """Allow a dictionary with these keys and a number under each."""

    def accepts(value: Any) -> bool:
        fits = isinstance(value, dict) and set(value) == set(keys)
        return fits and all(_is_number(item) for item in value.values())

    return Rule(f"a dictionary of numbers with the keys {', '.join(keys)}", accepts)


def report() -> Rule:
    """Allow reports of a fit: numbers, words and None in lists and dictionaries."""

    def accepts(value: Any) -> bool:
        if isinstance(value, list | tuple):
            return all(accepts(item) for item in value)
        if isinstance(value, dict):
            return all(isinstance(k, str) and accepts(item) for k, item in value.items())
        return value is None or isinstance(value, str | bool | np.bool_) or _is_number(value)

    return Rule(
        "a list of numbers, words, lists and dictionaries",
        lambda value: isinstance(value, list) and accepts(value),
    )


def names() -> Rule:
    """Allow an array of different strings."""

    def accepts(value: Any) -> bool:
        if not (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "UO"):
            return False
        items = value.tolist()
        return all(isinstance(item, str) for item in items) and len(set(items)) == len(items)

    return Rule("an array of different strings", accepts)


def classes() -> Rule:
    """Allow an array of at least two different labels in ascending order."""

    def accepts(value: Any) -> bool:
        if not (isinstance(value, np.ndarray) and value.ndim == 1 and len(value) >= 2):
            return False
        if value.dtype.kind == "O":
            words = all(isinstance(item, str) for item in value)
            if not words and not all(isinstance(item, bool | int | float) for item in value):
                return False
        return bool((value[:-1] < value[1:]).all())  # False for NaN

    return Rule("an array of two or more different labels in ascending order", accepts)


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating)
    return number and not isinstance(value, bool | np.timedelta64)
