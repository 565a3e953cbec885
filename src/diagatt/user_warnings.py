"""Warnings that point at the line of the user who called us, however deep they arise."""

from __future__ import annotations

import sys
import warnings

# Packages whose frames stand between a warning and the user: ours, and what wraps our functions.
_BETWEEN = {"diagatt", "torch", "contextlib"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and show the line outside of the library that led to the warning.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warn("rows are few")
    >>> str(shown[0].message)
    'rows are few'
    """
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
