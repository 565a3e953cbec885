"""The block of data inside the page: all samples, as small as they can be shown from."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.report.packing import halves, integers, kept_rows
from diagatt.report.payload import data_uris, utf16_spans
from diagatt.report.samples import Samples
from diagatt.report.top import DRAWINGS

__all__ = ["contents"]

# Bytes of a page: what pictures may take, what all data together should take, and what rows
# always get, however long the texts are.
PICTURE_BYTES = 12_000_000
PAGE_BYTES = 19_000_000
ROW_BYTES = 4_000_000


def contents(samples: Samples) -> dict[str, Any]:
    """Samples as plain data for `safe_json`; packed arrays are base64 (see ``data.js``)."""
    shown = _payload(samples)
    used = sum(len(x.encode("utf-8", "surrogatepass")) for x in shown.get("texts", []))
    used += sum(len(uri) for uri in shown.get("images", []))
    priority = samples.weights.max(axis=1)
    priority[samples.offsets[:-1, None] + samples.located] += 1  # located rows are always shown
    heads = samples.weights.shape[1]
    kept = kept_rows(priority, samples.offsets, _most_rows(samples, used), least=max(5, heads))
    cuts = np.searchsorted(kept, samples.offsets)
    trimmed = len(kept) < len(samples.weights)
    within = kept - np.repeat(samples.offsets[:-1], np.diff(cuts))  # row numbers in their samples
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
        "weights": halves(samples.weights[kept].ravel()),
        "scores": None if samples.scores is None else halves(samples.scores[kept].ravel()),
        "located": integers(samples.located.ravel()),
        "trueRows": samples.true_rows,
    }


def _answers(samples: Samples) -> dict[str, Any]:
    """What is predicted, known and how sure, a number a sample."""
    right = np.zeros(len(samples)) if samples.right is None else np.where(samples.right, 1, 2)
    error = samples.error
    return {
        "ids": samples.ids,
        "labels": samples.labels,
        "prediction": _rounded(samples.prediction),
        "truth": None if samples.y is None else _rounded(samples.y),
        "probability": None if samples.probability is None else halves(samples.probability.ravel()),
        "classes": None if samples.probability is None else samples.probability.shape[1],
        "confidence": halves(samples.confidence),
        "error": None if error is None else _rounded(error),
        "right": integers(right),  # 0 unknown, 1 right, 2 wrong
        "ambiguous": integers(samples.ambiguous),
    }


def _payload(samples: Samples) -> dict[str, Any]:
    """Texts with the spans of all rows, or pictures with their sizes."""
    if samples.texts is not None and samples.spans is not None:
        parts = np.split(samples.spans, samples.offsets[1:-1])
        spans = [utf16_spans(t, part) for t, part in zip(samples.texts, parts, strict=True)]
        return {"texts": samples.texts, "spans": np.concatenate(spans)}
    if samples.images is not None:
        sizes = [[image.shape[1], image.shape[0]] for image in samples.images]
        return {"images": data_uris(samples.images, PICTURE_BYTES), "sizes": sizes}
    return {}


def _most_rows(samples: Samples, used: int) -> int:
    """Rows that fit beside what is used: two halves a head, a number, and a span or a box."""
    bytes_a_row = 4 * samples.weights.shape[1] + DRAWINGS[samples.kind].row_bytes
    return int(max(ROW_BYTES, PAGE_BYTES - used) * 3 / 4 / bytes_a_row)


def _rounded(numbers: np.ndarray) -> list[float]:
    if numbers.dtype.kind in "iu":
        return numbers.tolist()
    return [float(f"{number:.6g}") for number in numbers.tolist()]
