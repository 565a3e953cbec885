"""The data block of the page: all samples, as small as they can be shown from."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.report.encoding import data_uris, halves, integers, kept_rows, utf16_spans
from diagatt.report.samples import Samples
from diagatt.report.top import DRAWINGS

__all__ = ["contents"]

# Budgets in bytes: for pictures, for all data together, and for rows however long the texts are.
PICTURE_BYTES = 12_000_000
PAGE_BYTES = 19_000_000
ROW_BYTES = 4_000_000


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
        "weights": halves(samples.weights[kept].ravel()),
        "scores": None if samples.scores is None else halves(samples.scores[kept].ravel()),
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
        "probability": None if chances is None else halves(chances.ravel()),
        "classes": None if chances is None else chances.shape[1],
        "confidence": halves(samples.confidence),
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
    return int(max(ROW_BYTES, PAGE_BYTES - used) * 3 / 4 / row_bytes)


def _rounded(numbers: np.ndarray | None) -> list[float] | None:
    if numbers is None or numbers.dtype.kind in "iu":
        return None if numbers is None else numbers.tolist()
    return [float(f"{number:.6g}") for number in numbers.tolist()]
