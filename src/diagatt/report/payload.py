"""Checks of what is shown with the samples: texts with spans, images with boxes, known rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from diagatt.coerce import offsets_from

__all__ = ["check_boxes", "check_count", "check_images", "check_spans", "check_true_rows"]


def check_count(values: Any, n: int, name: str) -> Any:
    """Return the values if there is one per sample."""
    if len(values) != n:
        raise ValueError(
            f"{name} has {len(values)} entries, X has {n} samples: pass one per sample."
        )
    return values


def check_spans(texts: Any, spans: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Return the spans of all rows, (N, 2), each inside its text; an empty span is no text."""
    packed = _pack(spans, texts, lengths, ("spans", "texts"), "(start, stop)")
    if packed is not None:
        ends = np.repeat([len(str(text)) for text in texts], lengths)
        wrong = (packed[:, 0] < 0) | (packed[:, 0] > packed[:, 1]) | (packed[:, 1] > ends)
        _refuse(wrong, packed, lengths, "span", "0 ≤ start ≤ stop ≤ length of the text")
    return packed


def check_boxes(images: Any, boxes: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Return the boxes (top, left, height, width) of all rows, (N, 4), each inside its image."""
    packed = _pack(boxes, images, lengths, ("boxes", "images"), "(top, left, height, width)")
    if packed is not None:
        sizes = np.repeat([np.shape(image)[:2] for image in images], lengths, axis=0)  # (N, 2)
        start, size = packed[:, :2], packed[:, 2:]
        outside = ((start < 0) | (size < 1) | (start + size > sizes)).any(axis=1)
        _refuse(outside, packed, lengths, "box", "inside the image")
    return packed


def check_images(images: Any, n: int) -> list[np.ndarray] | None:
    """Return grey (h, w) or RGB (h, w, 3) arrays of uint8, one per sample."""
    if images is None:
        return None
    arrays = [np.asarray(image) for image in check_count(images, n, "images")]
    for i, image in enumerate(arrays):
        shaped = image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)
        if image.dtype != np.uint8 or not shaped or image.size == 0:
            raise ValueError(
                f"image {i} is {image.dtype} of shape {image.shape}: pass uint8 of shape "
                "(height, width) or (height, width, 3)."
            )
    return arrays


def check_true_rows(true_rows: Any, lengths: np.ndarray) -> list[list[int]] | None:
    """Return the known rows of each sample as lists of indices inside the sample."""
    if true_rows is None:
        return None
    listed = [
        [int(j) for j in rows] if isinstance(rows, Iterable) else [int(rows)]
        for rows in check_count(true_rows, len(lengths), "true_rows")
    ]
    for i, (sample, p) in enumerate(zip(listed, lengths, strict=True)):
        if any(not 0 <= j < p for j in sample):
            raise ValueError(f"true_rows of sample {i} are {sample}, but it has rows 0 to {p - 1}.")
    return listed


def _pack(
    parts: Any, things: Any, lengths: np.ndarray, names: tuple[str, str], form: str
) -> np.ndarray | None:
    """Return the places of all rows in one integer array, or None if nothing was given."""
    name, width = names[0], form.count(",") + 1
    if (parts is None) != (things is None):
        raise ValueError(f"{names[1]} and {name} belong together: pass both or none.")
    if parts is None:
        return None
    arrays = [np.asarray(part) for part in check_count(parts, len(lengths), name)]
    for i, (array, p) in enumerate(zip(arrays, lengths, strict=True)):
        if array.shape != (p, width) or array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} of sample {i} have shape {array.shape}, but its {p} rows need integers "
                f"{form}, shape {(int(p), width)}."
            )
    return np.concatenate(arrays).astype(np.int64)


def _refuse(wrong: np.ndarray, packed: np.ndarray, lengths: np.ndarray, name: str, rule: str):
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        offsets = offsets_from(lengths)
        sample = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(
            f"sample {sample}, row {row - offsets[sample]}: {name} {tuple(packed[row].tolist())} "
            f"must be {rule}."
        )
