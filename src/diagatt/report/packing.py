"""Compact and safe data for the page: half-precision numbers in base64, JSON that stays data."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

__all__ = ["halves", "integers", "kept_rows", "safe_json"]

_LARGEST_HALF = 65504.0
# What could end the script element, start a comment in it, or end a line of JavaScript; and lone
# surrogates, which UTF-8 cannot hold.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def safe_json(data: Any) -> str:
    r"""JSON for a script element of type application/json, whatever its strings hold.

    Examples
    --------
    >>> print(safe_json(["</script>", "<!--", "a&b"]))
    ["\u003c/script\u003e","\u003c!--","a\u0026b"]
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def halves(array: np.ndarray) -> dict[str, str]:
    """Numbers in half precision (eleven binary digits, up to ±65504)."""
    clipped = np.clip(array, -_LARGEST_HALF, _LARGEST_HALF)
    return {"type": "f2", "data": _base64(clipped.astype("<f2"))}


def integers(array: np.ndarray) -> dict[str, str]:
    """Whole numbers from 0 on, in as few bytes as the largest needs."""
    largest = int(np.max(array, initial=0))
    kind = "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4"
    return {"type": kind, "data": _base64(np.asarray(array).astype(f"<{kind}"))}


def kept_rows(priority: np.ndarray, offsets: np.ndarray, most: int, least: int = 5) -> np.ndarray:
    """Positions of the rows to keep, ascending: in each sample those of the highest priority.

    As many of each sample as let all samples together keep about `most` rows.

    Parameters
    ----------
    priority : array of shape (N,)
    offsets : array of shape (n + 1,)
    most : int
    least : int
        A sample keeps this many rows (or all it has) whatever `most` says.

    Examples
    --------
    >>> import numpy as np
    >>> priority = np.array([5, 0, 0, 1, 2, 3, 4, 9])
    >>> kept_rows(priority, np.array([0, 7, 8]), 6)
    array([0, 3, 4, 5, 6, 7])
    """
    if len(priority) <= most:
        return np.arange(len(priority))
    lengths = np.diff(offsets)
    a_sample = least
    while np.minimum(lengths, a_sample + 1).sum() <= most:
        a_sample += 1
    sample = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((-priority, sample))  # by sample, then largest weight first
    rank = np.arange(len(priority)) - np.repeat(offsets[:-1], lengths)
    return np.sort(order[rank < a_sample])


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
