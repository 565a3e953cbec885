"""The data block of the page: compact arrays, small pictures, and JSON that stays data."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from diagatt.localization import row_positions
from diagatt.report.samples import Samples
from diagatt.report.top import DRAWINGS

# Budgets in bytes: for pictures, for all data together, and for rows however long the texts are.
PICTURE_BYTES = 12_000_000
PAGE_BYTES = 19_000_000
ROW_BYTES = 4_000_000

# Longest sides in pixels, tried in turn until all pictures fit the page.
SIDES = (512, 256, 128, 64, 32)
_LARGEST_HALF, _LEAST_HALF = 65504.0, 2.0**-24
# Characters that could end the script element, start a comment in it or end a line of JavaScript,
# and lone surrogates, which UTF-8 cannot encode.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def contents(samples: Samples) -> dict[str, Any]:
    """Return samples as plain data for `safe_json`; ``data.js`` reads the packed arrays."""
    shown = _payload(samples)
    used = sum(len(x.encode("utf-8", "surrogatepass")) for x in shown.get("texts", []))
    used += sum(len(uri) for uri in shown.get("images", []))
    priority = samples.weights.max(axis=1)
    priority[samples.packed_located] += 1  # located rows are always shown
    heads = samples.weights.shape[1]
    kept = kept_rows(priority, samples.offsets, _most_rows(samples, used), least=max(5, heads))
    cuts = np.searchsorted(kept, samples.offsets)
    trimmed = len(kept) < len(samples.weights)
    within = kept - np.repeat(samples.offsets[:-1], np.diff(cuts))  # row indices in their samples
    if samples.spans is not None:
        spans = shown.pop("spans")[kept]
        shown["starts"] = integers(spans[:, 0])
        shown["lengths"] = integers(spans[:, 1] - spans[:, 0])
    if samples.boxes is not None:
        shown["boxes"] = integers(samples.boxes[kept].ravel())
    return {
        **_answers(samples),
        **shown,
        "kind": samples.kind,
        "heads": heads,
        "rows": integers(np.diff(samples.offsets)),
        "kept": integers(np.diff(cuts)),
        "index": integers(within) if trimmed else None,
        "weights": shares(samples.weights[kept].ravel()),
        "scores": None if samples.scores is None else halves(samples.scores[kept].ravel()),
        "rowIds": None if samples.row_ids is None else samples.row_ids[kept].tolist(),
        "located": integers(samples.located.ravel()),
        "trueRows": samples.true_rows,
    }


def _answers(samples: Samples) -> dict[str, Any]:
    """Return prediction, response and confidence of every sample."""
    right = np.zeros(len(samples)) if samples.right is None else np.where(samples.right, 1, 2)
    chances = samples.probability
    return {
        "ids": samples.ids,
        "labels": samples.labels,
        "prediction": _rounded(samples.prediction),
        "truth": _rounded(samples.y),
        "probability": None if chances is None else shares(chances.ravel()),
        "classes": None if chances is None else chances.shape[1],
        "confidence": shares(samples.confidence),
        "error": _rounded(samples.error),
        "right": integers(right),  # 0 unknown, 1 right, 2 wrong
        "ambiguous": integers(samples.ambiguous),
    }


def _payload(samples: Samples) -> dict[str, Any]:
    """Return texts with the spans of all rows, or pictures with their sizes."""
    if samples.texts is not None and samples.spans is not None:
        parts = np.split(samples.spans, samples.offsets[1:-1])
        spans = [utf16_spans(t, part) for t, part in zip(samples.texts, parts, strict=True)]
        return {"texts": samples.texts, "spans": np.concatenate(spans)}
    if samples.images is not None:
        sizes = [[image.shape[1], image.shape[0]] for image in samples.images]
        return {"images": data_uris(samples.images, PICTURE_BYTES), "sizes": sizes}
    return {}


def _most_rows(samples: Samples, used: int) -> int:
    """Return how many rows fit: each takes two halves per head, an index, and a span or a box."""
    row_bytes = 4 * samples.weights.shape[1] + DRAWINGS[samples.kind].row_bytes
    if samples.row_ids is not None:
        row_bytes += np.mean([len(name.encode()) + 3 for name in samples.row_ids.tolist()])
    return int(max(ROW_BYTES, PAGE_BYTES - used) * 3 / 4 / row_bytes)


def _rounded(numbers: np.ndarray | None) -> list[float] | None:
    if numbers is None or numbers.dtype.kind in "iu":
        return None if numbers is None else numbers.tolist()
    return [float(f"{number:.6g}") for number in numbers.tolist()]


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


def shares(array: np.ndarray) -> dict[str, str]:
    """Encode shares in half precision; what is not 0 or 1 does not become so by rounding."""
    kept = np.clip(array, _LEAST_HALF, 1 - 2.0**-11)
    return halves(np.where((array > 0) & (array < 1), kept, array))


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
