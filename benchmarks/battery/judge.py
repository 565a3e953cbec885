"""What became of a case: right, refused in our words, somebody else's error, silent, or hung."""

from __future__ import annotations

import re
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

VERDICTS = ("silent", "raw", "hang", "refused", "right")
# Seconds of work after which a case counts as hung (compiling the group lasso takes a minute),
# and of waiting: a busy machine may give it little.
SECONDS = 240
LONGEST = 3600

# Whose sentences are fit for users: ours, and those of scikit-learn's validation.
OURS = re.compile(r"/diagatt/|/sklearn/utils/(validation|multiclass)\.py|battery/commands\.py")


class Hung(BaseException):
    """The case took too long; nothing catches it on the way."""


@dataclass(frozen=True)
class Case:
    """One call with hostile or unusual input.

    Attributes
    ----------
    family : str
        Which part of the battery it belongs to.
    name : str
        What it does.
    act : callable
        Makes the call and returns its answer.
    refuses : bool or None
        Whether the call must be refused; None if it may be, or be answered rightly.
    right : callable
        Whether an answer is the right one.
    words : str
        Regular expression of what a refusal must name.
    """

    family: str
    name: str
    act: Callable[[], Any]
    refuses: bool | None
    right: Callable[[Any], bool] = lambda answer: True
    words: str = "."


@dataclass(frozen=True)
class Finding:
    """A case with its verdict, and what was said."""

    case: Case
    verdict: str
    said: str


def judge(case: Case, seconds: float = SECONDS) -> Finding:
    """Run a case and say what became of it."""
    before = [(which, signal.signal(which, _hang)) for which in (signal.SIGPROF, signal.SIGALRM)]
    _set_clocks(seconds, LONGEST)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer = case.act()
            _set_clocks(0, 0)
            is_right = case.refuses is not True and case.right(answer)
    except Hung:
        return Finding(case, "hang", f"no answer in {seconds:g} s")
    except Exception as error:  # the verdict is about every kind of error
        return Finding(case, *_refusal(case, error))
    finally:
        _set_clocks(0, 0)
        for which, handler in before:
            signal.signal(which, handler)
    return Finding(case, "right" if is_right else "silent", "" if is_right else _shown(answer))


def _refusal(case: Case, error: Exception) -> tuple[str, str]:
    said = f"{type(error).__name__}: {error}"
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError)
    named = re.search(case.words, str(error)) is not None
    if not (expected and named and OURS.search(where.replace("\\", "/"))):
        return "raw", f"{said} ({where})"
    return (
        ("silent", f"refused what is right: {said}") if case.refuses is False else ("refused", said)
    )


def _shown(answer: Any) -> str:
    return f"answered {repr(answer)[:200]}"


def _set_clocks(work: float, wait: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, work)
    signal.setitimer(signal.ITIMER_REAL, wait)


def _hang(*_: Any) -> None:
    raise Hung


def equal(answer: Any, expected: Any) -> bool:
    """Whether two answers of a method are the same up to rounding, and finite."""
    a, b = _flat(answer), _flat(expected)
    if a.shape != b.shape or a.dtype.kind not in "fiub":
        return a.shape == b.shape and bool((a == b).all())
    return bool(np.isfinite(a).all()) and np.allclose(a, b, rtol=1e-4, atol=1e-4)


def finite(answer: Any) -> bool:
    """Whether an answer of a method holds neither NaN nor infinity."""
    flat = _flat(answer)
    return flat.dtype.kind not in "fc" or bool(np.isfinite(flat).all())


def _flat(answer: Any) -> np.ndarray:
    if hasattr(answer, "__dataclass_fields__"):
        answer = [getattr(answer, name) for name in answer.__dataclass_fields__]
    if isinstance(answer, list | tuple):
        return np.concatenate([np.ravel(_flat(item)) for item in answer])
    return np.asarray(answer)
