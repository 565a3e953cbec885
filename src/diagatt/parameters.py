"""Rules that parameters must obey, declared beside `__init__` and checked before any work.

A class lists its rules in a class attribute, and `check` compares them with an object's parameters:

>>> from sklearn.base import BaseEstimator
>>> class Shrunk(BaseEstimator):
...     rules = {"ridge": several(at_least(0)), "max_iter": count(1)}
...
...     def __init__(self, ridge=1.0, max_iter=100):
...         self.ridge, self.max_iter = ridge, max_iter
>>> check(Shrunk(ridge=[0.1, 1.0]))
>>> check(Shrunk(max_iter=2.5))
Traceback (most recent call last):
diagatt.parameters.ParameterError: max_iter must be a whole number of at least 1, got 2.5.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # the commands check names of columns before they import these, for two seconds
    from sklearn.base import BaseEstimator

LARGEST_COUNT = 2**31 - 1
LARGEST_SEED = 2**32 - 1  # of NumPy's RandomState


class ParameterError(ValueError, TypeError):
    """A parameter has a value that it cannot have."""


@dataclass(frozen=True)
class Rule:
    """What a parameter may be: the words after "must be" in messages, and a test of values."""

    allowed: str
    accepts: Callable[[Any], bool]


def check(obj: BaseEstimator, prefix: str = "") -> None:
    """Refuse the first parameter that breaks its rule; `rules` of base classes count as well.

    A parameter that has rules of its own, such as a solver, is checked with them.

    Parameters
    ----------
    obj : BaseEstimator
    prefix : str
        What stands before the names in messages: "solver__" for the parameters of a solver.
    """
    rules: dict[str, Rule] = {}
    for base in reversed(type(obj).__mro__):
        rules |= vars(base).get("rules", {})
    for name, value in obj.get_params(deep=False).items():
        if name in rules and not rules[name].accepts(value):
            raise ParameterError(
                f"{prefix}{name} must be {rules[name].allowed}, got {shown(value)}."
            )
        if hasattr(value, "rules") and hasattr(value, "get_params") and not isinstance(value, type):
            check(value, f"{prefix}{name}__")


def values_to_try(value: Any, grid: tuple) -> tuple:
    """Return the values of a parameter with the rule `several`: `grid` if it is "auto".

    Examples
    --------
    >>> values_to_try("auto", (0.1, 1.0)), values_to_try([1, 2], ()), values_to_try(3, ())
    ((0.1, 1.0), (1, 2), (3,))
    """
    if isinstance(value, str) and value == "auto":
        return grid
    return tuple(value) if _is_list(value) else (value,)


# ---------------------------------------------------------------------- rules


def one_of(*values: str | int | None) -> Rule:
    """Allow these names (or whole numbers, or None) and nothing else."""

    def accepts(value: Any) -> bool:
        simple = value is None or isinstance(value, str) or _is_whole(value)
        return bool(simple and value in values)

    *others, last = (repr(value) for value in values)
    return Rule(f"{', '.join(others)} or {last}" if others else last, accepts)


def positive() -> Rule:
    """Allow finite numbers above 0."""
    return Rule("a positive number", lambda value: _is_finite(value) and value > 0)


def finite() -> Rule:
    """Allow finite numbers."""
    return Rule("a finite number", _is_finite)


def whole(least: int | None = None) -> Rule:
    """Allow whole numbers that a float can hold, from `least` on."""
    words = "a whole number" if least is None else f"a whole number of at least {least}"
    low = -math.inf if least is None else least
    return Rule(words, lambda value: _is_whole(value) and _is_finite(value) and low <= value)


def at_least(least: float) -> Rule:
    """Allow finite numbers from `least` on."""
    words = f"a number of at least {least:g}"
    return Rule(words, lambda value: _is_finite(value) and value >= least)


def share(*, whole: bool = False) -> Rule:
    """Allow numbers in [0, 1), or in [0, 1] if the `whole` may be taken."""

    def accepts(value: Any) -> bool:
        return _is_finite(value) and (0 <= value < 1 or (whole and value == 1))

    return Rule("a number in [0, 1]" if whole else "a number in [0, 1)", accepts)


def check_share(value: Any, name: str) -> None:
    """Refuse an argument that is not a number between 0 and 1.

    Examples
    --------
    >>> check_share(90, "level")
    Traceback (most recent call last):
    ValueError: level must be between 0 and 1, got 90.
    """
    if not _is_finite(value) or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}.")


def check_count(value: Any, name: str, least: int, most: int = LARGEST_COUNT) -> None:
    """Refuse an argument that is not a whole number from `least` to `most`.

    Examples
    --------
    >>> check_count(2.5, "n_bootstraps", 1)
    Traceback (most recent call last):
    diagatt.parameters.ParameterError: n_bootstraps must be a whole number of at least 1, got 2.5.
    """
    rule = count(least, most)
    if not rule.accepts(value):
        raise ParameterError(f"{name} must be {rule.allowed}, got {shown(value)}.")


def count(least: int = 0, most: int = LARGEST_COUNT) -> Rule:
    """Allow whole numbers from `least` to `most`."""
    words = f"of at least {least}" if most == LARGEST_COUNT else f"from {least} to {most}"
    return Rule(
        f"a whole number {words}", lambda value: _is_whole(value) and least <= value <= most
    )


def boolean() -> Rule:
    """Allow True and False."""
    return Rule("True or False", lambda value: isinstance(value, bool | np.bool_))


def instance(words: str, *classes: type) -> Rule:
    """Allow objects of these classes; `words` describe them in messages."""
    return Rule(words, lambda value: isinstance(value, classes))


def path() -> Rule:
    """Allow the path of a file."""
    return instance("a path", str, os.PathLike)


def seed() -> Rule:
    """Allow what scikit-learn calls a random state."""

    def accepts(value: Any) -> bool:
        whole = _is_whole(value) and 0 <= value <= LARGEST_SEED
        return value is None or whole or isinstance(value, np.random.RandomState)

    return Rule(f"None, a whole number from 0 to {LARGEST_SEED} or a RandomState", accepts)


def device() -> Rule:
    """Allow torch devices that this machine has."""

    def accepts(value: Any) -> bool:
        import torch

        if not isinstance(value, str | torch.device):
            return False
        try:
            return torch.zeros(1, device=value).item() == 0
        except Exception:  # every kind of device has its own error
            return False

    return Rule("a torch device that this machine has, such as 'cpu'", accepts)


def optional(rule: Rule) -> Rule:
    """Allow None as well."""
    return either(rule, Rule("None", lambda value: value is None))


def either(*rules: Rule) -> Rule:
    """Allow what any of the rules allows."""
    words = " or ".join(rule.allowed for rule in rules)
    return Rule(words, lambda value: any(rule.accepts(value) for rule in rules))


def several(rule: Rule) -> Rule:
    """Allow one value, a list of values to try, or "auto"; see `values_to_try`."""

    def accepts(value: Any) -> bool:
        if isinstance(value, str) and value == "auto":
            return True
        if not _is_list(value):
            return rule.accepts(value)
        return len(value) > 0 and all(rule.accepts(item) for item in value)

    return Rule(f"{rule.allowed}, a list of such values to try or 'auto'", accepts)


# ---------------------------------------------------------------------- values


def _is_whole(value: Any) -> bool:
    # To Python a bool is an int, and to NumPy a duration is an integer.
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def _is_finite(value: Any) -> bool:
    """Whether the value is a real number that a float can hold."""
    if not _is_whole(value) and not isinstance(value, float | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)


def shown(value: Any) -> str:
    """Return the value as messages show it, cut off after 100 characters."""
    try:
        words = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        words = f"a number of {value.bit_length()} bits"
    return words if len(words) <= 100 else f"{words[:100]}…"
