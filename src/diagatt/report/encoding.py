"""Compact and safe data for the page: packed arrays, pictures, and JSON that stays data."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from diagatt.localization import row_positions

__all__ = ["data_uris", "halves", "integers", "kept_rows", "safe_json", "utf16_spans"]

# Longest sides in pixels, tried in turn until all pictures fit the page.
SIDES = (512, 256, 128, 64, 32)
_LARGEST_HALF = 65504.0
# Characters that could end the script element, start a comment in it or end a line of JavaScript,
# and lone surrogates, which UTF-8 cannot encode.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def safe_json(data: Any) -> str:
    r"""Return JSON for a script element of type application/json, whatever its strings contain.

    Examples
    --------
    >>> print(safe_json(["</script>", "<!--", "a&b"]))
    ["\u003c/script\u003e","\u003c!--","a\u0026b"]
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def halves(array: np.ndarray) -> dict[str, str]:
    """Encode numbers in half precision (eleven binary digits, up to ±65504)."""
    clipped = np.clip(array, -_LARGEST_HALF, _LARGEST_HALF)
    return _packed(clipped, "f2")


def integers(array: np.ndarray) -> dict[str, str]:
    """Encode integers ≥ 0 in as few bytes as the largest one needs."""
    largest = int(np.max(array, initial=0))
    return _packed(array, "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4")


def _packed(array: np.ndarray, kind: str) -> dict[str, str]:
    raw = np.asarray(array).astype(f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(raw).decode()}


def kept_rows(priority: np.ndarray, offsets: np.ndarray, most: int, least: int = 5) -> np.ndarray:
    """Return the packed positions of the rows to keep, ascending: the best rows of each sample.

    Every sample keeps equally many rows, chosen so that all samples together keep about `most`.

    Parameters
    ----------
    priority : array of shape (N,)
    offsets : array of shape (n + 1,)
    most : int
    least : int
        A sample keeps at least this many rows (or all it has), whatever `most` says.

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
    per_sample = least
    while np.minimum(lengths, per_sample + 1).sum() <= most:
        per_sample += 1
    sample = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((-priority, sample))  # by sample, then highest priority first
    return np.sort(order[row_positions(offsets) < per_sample])


def utf16_spans(text: str, spans: np.ndarray) -> np.ndarray:
    """Return spans in JavaScript's units: a character beyond U+FFFF counts as two.

    Examples
    --------
    >>> import numpy as np
    >>> utf16_spans("a😀b", np.array([[1, 2], [2, 3]])).tolist()
    [[1, 3], [3, 4]]
    """
    if not text or max(text) <= "\uffff":
        return spans
    units = np.concatenate([[0], np.cumsum([1 + (c > "\uffff") for c in text])])
    return units[spans]


def data_uris(images: Sequence[np.ndarray], budget: int) -> list[str]:
    """Return PNG data URIs, all scaled down until they take about `budget` bytes together."""
    probe = [images[i] for i in np.linspace(0, len(images) - 1, min(64, len(images))).astype(int)]
    for side in SIDES:
        size = sum(len(_data_uri(image, side)) for image in probe) * len(images) / len(probe)
        if size <= budget:
            break
    return [_data_uri(image, side) for image in images]


def _data_uri(image: np.ndarray, side: int) -> str:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('images need pillow: pip install "diagatt[images]".') from error
    picture = Image.fromarray(image)
    picture.thumbnail((side, side))
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
