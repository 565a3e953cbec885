"""Texts with spans and images with boxes: what rows were before they became numbers."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from diagatt.coerce import offsets_from

__all__ = ["check_boxes", "check_images", "check_spans", "data_uris", "utf16_spans"]

# Longest sides in pixels that are tried until all pictures fit the page.
SIDES = (512, 256, 128, 64, 32)


def check_spans(texts: Any, spans: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Spans of all rows, (N, 2); each must lie in its text. An empty span is a row without text."""
    if (texts is None) != (spans is None):
        raise ValueError("texts and spans belong together: pass both or none.")
    if texts is None:
        return None
    packed = _pack(spans, lengths, 2, "spans", "(start, stop)")
    ends = np.repeat([len(str(text)) for text in texts], lengths)
    wrong = (packed[:, 0] < 0) | (packed[:, 0] > packed[:, 1]) | (packed[:, 1] > ends)
    _refuse(wrong, packed, lengths, "span", "0 ≤ start ≤ stop ≤ length of the text")
    return packed


def check_images(images: Any, n: int) -> list[np.ndarray] | None:
    """Grey (h, w) or RGB (h, w, 3) arrays of uint8, one a sample."""
    if images is None:
        return None
    if len(images) != n:
        raise ValueError(f"images has {len(images)} entries, X has {n} samples: pass one a sample.")
    arrays = [np.asarray(image) for image in images]
    for i, image in enumerate(arrays):
        shaped = image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)
        if image.dtype != np.uint8 or not shaped or image.size == 0:
            raise ValueError(
                f"image {i} is {image.dtype} of shape {image.shape}: pass uint8 of shape "
                "(height, width) or (height, width, 3)."
            )
    return arrays


def check_boxes(images: Any, boxes: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Boxes (top, left, height, width) of all rows, (N, 4); each must lie in its image."""
    if (images is None) != (boxes is None):
        raise ValueError("images and boxes belong together: pass both or none.")
    if images is None:
        return None
    packed = _pack(boxes, lengths, 4, "boxes", "(top, left, height, width)")
    sizes = np.repeat([np.shape(image)[:2] for image in images], lengths, axis=0)  # (N, 2)
    outside = (packed[:, :2] < 0) | (packed[:, 2:] < 1) | (packed[:, :2] + packed[:, 2:] > sizes)
    _refuse(outside.any(axis=1), packed, lengths, "box", "inside the image")
    return packed


def utf16_spans(text: str, spans: np.ndarray) -> np.ndarray:
    """Spans counted as JavaScript counts: characters beyond U+FFFF are two units.

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
    """PNG images as data URIs, made smaller together until they take about `budget` bytes."""
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


def _pack(parts: Any, lengths: np.ndarray, width: int, name: str, form: str) -> np.ndarray:
    if len(parts) != len(lengths):
        raise ValueError(
            f"{name} has {len(parts)} entries, X has {len(lengths)} samples: pass one a sample."
        )
    arrays = []
    for i, (part, p) in enumerate(zip(parts, lengths, strict=True)):
        array = np.asarray(part)
        if array.shape != (p, width) or array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} of sample {i} have shape {array.shape}, but its {p} rows need integers "
                f"{form}, shape {(int(p), width)}."
            )
        arrays.append(array)
    return np.concatenate(arrays).astype(np.int64)


def _refuse(wrong: np.ndarray, packed: np.ndarray, lengths: np.ndarray, name: str, rule: str):
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        offsets = offsets_from(lengths)
        sample = int(np.searchsorted(offsets, at, side="right")) - 1
        raise ValueError(
            f"sample {sample}, row {at - offsets[sample]}: {name} {tuple(packed[at].tolist())} "
            f"must be {rule}."
        )
