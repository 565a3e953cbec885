"""Arguments of public functions, checked by their annotations.

`check_arguments` wraps the functions that a module exports, so that a wrong argument raises one
sentence that names it. Other modules of the library import these functions from where they are
defined and skip the checks.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from diagatt.arrays import InputError, float_array
from diagatt.parameters import (
    LARGEST_COUNT,
    LARGEST_SEED,
    ParameterError,
    Rule,
    boolean,
    count,
    either,
    finite,
    instance,
    optional,
    positive,
    shown,
    whole,
)

__all__ = [
    "Count",
    "Labels",
    "Numbers",
    "Positive",
    "Seed",
    "Size",
    "Truths",
    "WholeNumbers",
    "check_arguments",
    "with_checked_arguments",
]

# Annotations of arguments, which demand more than a type does.
Numbers = Any  # finite numbers, in whatever holds them
WholeNumbers = Any  # from 0
Truths = Any  # True and False, or 1 and 0
Labels = Any  # a list of them, in whatever holds it
Count = int  # from 1
Size = int  # from 1, however large
Positive = float
Seed = int | Sequence[int] | None


def check_arguments(module: dict[str, Any]) -> None:
    """Wrap the functions that a module exports, given its ``globals()``."""
    exported = {name: module[name] for name in module["__all__"]}
    classes = {name: value for name, value in exported.items() if inspect.isclass(value)}
    for name, value in exported.items():
        if inspect.isfunction(value):
            module[name] = with_checked_arguments(value, **classes)


def with_checked_arguments(function: Any, **classes: type) -> Any:
    """Return the function with its arguments checked; `classes` are those that it names.

    Examples
    --------
    >>> def power(base: float, exponent: int = 2) -> float:
    ...     return base**exponent
    >>> with_checked_arguments(power)(3.0, exponent=0.5)
    Traceback (most recent call last):
    diagatt.parameters.ParameterError: exponent must be a whole number, got 0.5.
    """
    signature = inspect.signature(function)
    rules = {
        name: rule
        for name, parameter in signature.parameters.items()
        if (rule := _rule(str(parameter.annotation), classes)) is not None
    }
    readers = {
        name: _READERS[kind]
        for name, parameter in signature.parameters.items()
        if (kind := str(parameter.annotation).removesuffix(" | None")) in _READERS
    }

    @wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            names = ", ".join(signature.parameters)
            raise TypeError(f"{function.__name__}: {error}; its arguments are {names}.") from None
        for name, value in bound.arguments.items():
            if name in rules and not rules[name].accepts(value):
                raise ParameterError(f"{name} must be {rules[name].allowed}, got {shown(value)}.")
            if name in readers and not (value is None and "None" in annotation_of[name]):
                bound.arguments[name] = readers[name](value, name)
        try:
            return function(*bound.args, **bound.kwargs)
        except (ArithmeticError, LookupError, AttributeError, MemoryError) as error:
            raise InputError(
                f"{function.__name__} cannot work with these arguments "
                f"({str(error).rstrip('.') or type(error).__name__}); its documentation says "
                "what it takes."
            ) from error

    annotation_of = {n: str(p.annotation) for n, p in signature.parameters.items()}
    return checked


def _rule(annotation: str, classes: Mapping[str, type]) -> Rule | None:
    """Return what an annotation allows; None if it does not say."""
    known = _RULES | {
        name: instance(f"{_article(name)} {name}", kind) for name, kind in classes.items()
    }
    if annotation in known:
        return known[annotation]
    one, _, other = annotation.rpartition(" | ")
    if other == "None" and (inner := _rule(one, classes)) is not None:
        return optional(inner)
    if annotation.startswith("Sequence["):
        inner = _rule(annotation[len("Sequence[") : -1], classes)
        return _sequence_of(inner or _ANYTHING)
    return None


def _article(name: str) -> str:
    return "an" if name[0] in "AEIOU" else "a"


def _sequence_of(inner: Rule) -> Rule:
    def accepts(value: Any) -> bool:
        is_list = isinstance(value, Sequence | np.ndarray) or hasattr(value, "__array__")
        return is_list and not isinstance(value, str | bytes) and all(map(inner.accepts, value))

    return Rule(
        "a list" if inner.allowed == "anything" else f"a list, each entry {inner.allowed}", accepts
    )


def _is_seed(value: Any) -> bool:
    if value is None or whole(0).accepts(value):
        return True
    return _sequence_of(whole(0)).accepts(value)


def _numbers(value: Any, name: str) -> np.ndarray:
    """Read finite numbers, of any shape."""
    array = float_array(value, name, lambda at: _place(name, at))
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        at = tuple(wrong[0])
        raise InputError(f"{_place(name, at)} is {array[at]:g}: pass finite numbers.")
    return array


def _whole_numbers(value: Any, name: str) -> np.ndarray:
    """Read whole numbers from 0, of any shape."""
    array = _numbers(value, name)
    wrong = np.argwhere((array != np.floor(array)) | (array < 0) | (array > LARGEST_COUNT))
    if len(wrong):
        at = tuple(wrong[0])
        raise InputError(f"{_place(name, at)} is {array[at]:g}: pass whole numbers from 0.")
    return array.astype(np.int64)


def _truths(value: Any, name: str) -> np.ndarray:
    """Read truth values, which may be written as 0 and 1."""
    array = _numbers(value, name)
    wrong = np.argwhere((array != 0) & (array != 1))
    if len(wrong):
        at = tuple(wrong[0])
        raise InputError(f"{_place(name, at)} is {array[at]:g}: pass 0 or 1, or truth values.")
    return array == 1


def _place(name: str, at: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, at))}]" if at else name


_ANYTHING = Rule("anything", lambda value: True)
_STRING = instance("a string", str)
_SMALL = Rule(
    "a whole number", lambda value: whole().accepts(value) and abs(value) <= LARGEST_COUNT
)
_RANGE = Rule(
    "a pair (low, high) of these",
    lambda value: (
        isinstance(value, tuple | list) and len(value) == 2 and all(map(_SMALL.accepts, value))
    ),
)
#: What the annotations of public functions allow.
_RULES = {
    "float": finite(),
    "Labels": _sequence_of(_ANYTHING),
    "Positive": positive(),
    "Count": count(1),
    "Size": whole(1),
    "int": _SMALL,
    "bool": boolean(),
    "dict": instance("a dictionary", dict),
    "Axes": Rule("axes of matplotlib", lambda value: hasattr(value, "get_figure")),
    "str": _STRING,
    "int | tuple[int, int]": either(_SMALL, _RANGE),
    "Seed": Rule(f"None, a whole number from 0 to {LARGEST_SEED} or a list of them", _is_seed),
}
#: What turns arguments into arrays.
_READERS = {"Numbers": _numbers, "WholeNumbers": _whole_numbers, "Truths": _truths}
