"""Attention back onto the slides: every patch with its weight, GeoJSON for QuPath, top patches."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.kinds.answers import answer
from diagatt.kinds.slides.samples import SlideSamples

_COLOUR = {True: [213, 94, 0], False: [120, 120, 120]}  # of located patches, and of the others


@dataclass(frozen=True)
class SlidePatches:
    """The patches of one slide with their attention.

    Attributes
    ----------
    slide, sample : str
    weights : array of shape (n_patches, n_heads)
        Attention; it sums to 1 over all patches of the sample, which may have several slides.
    relative : array of shape (n_patches,)
        The largest weight of a head times the count of patches of the sample: 1 is uniform.
    located : bool array of shape (n_patches,)
        Whether a patch is the row of interest of a head.
    coords : array of shape (n_patches, 2), or None
    side : float
        Side of a patch, in the units of `coords`.
    unit : {"px", "um"}
    """

    slide: str
    sample: str
    weights: np.ndarray
    relative: np.ndarray
    located: np.ndarray
    coords: np.ndarray | None
    side: float
    unit: str


def slide_patches(model: Any, slides: SlideSamples) -> Iterator[SlidePatches]:
    """Yield every slide with the attention of its patches; one sample is in memory at a time."""
    Z = slides.named_covariates
    for i, sample in enumerate(slides.ids):
        own = None if Z is None else Z.slice(i, 1)
        answers = answer(model, slides.rows(slice(i, i + 1)), own)
        if answers.weights is None:
            raise TypeError(f"{type(model).__name__} gives its rows no attention weights.")
        weights = answers.weights[0]  # (p, R)
        relative, located = weights.max(axis=1) * len(weights), np.zeros(len(weights), dtype=bool)
        located[answers.located[0][answers.located[0] >= 0]] = True
        start = 0
        for slide in slides.slides[i]:
            file = slides.files[slide]
            own, coords = slice(start, start + file.shape[0]), file.coordinates()
            side = file.patch_side(coords) if coords is not None else 1.0
            found = weights[own], relative[own], located[own]
            yield SlidePatches(slide, sample, *found, coords, side, file.unit)
            start = own.stop


def to_geojson(patches: SlidePatches, mpp: float | None = None) -> str:
    """Return the patches as GeoJSON that QuPath imports: drag the file onto the open slide.

    Patches are tiles with the measurements ``attention`` (of each head) and ``relative``; located
    ones have the class "row of interest".

    Parameters
    ----------
    patches : SlidePatches
    mpp : float, optional
        Micrometres per pixel of the full resolution; needed if coordinates are in micrometres.
    """
    if patches.coords is None:
        raise ValueError(f"slide {patches.slide} has no coordinates: its file holds features only.")
    if patches.unit == "um" and mpp is None:
        raise ValueError(
            f"slide {patches.slide} has coordinates in micrometres, and QuPath counts pixels: give "
            "mpp, the micrometres per pixel of the slide."
        )
    scale = 1.0 if patches.unit == "px" or mpp is None else 1 / mpp
    corners = (patches.coords * scale).tolist()
    features = [
        _feature(patches, j, x, y, patches.side * scale) for j, (x, y) in enumerate(corners)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def _feature(patches: SlidePatches, j: int, x: float, y: float, side: float) -> dict[str, Any]:
    weights, located = patches.weights[j].tolist(), bool(patches.located[j])
    names = ["attention"] if len(weights) == 1 else [f"attention {r}" for r in range(len(weights))]
    measured = dict(zip(names, weights, strict=True)) | {"relative": float(patches.relative[j])}
    kind = "row of interest" if located else "patch"
    ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    return {
        "type": "Feature",
        # The same patch has the same id in every file, so that importing twice shows nothing twice.
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"diagatt:{patches.slide}:{j}")),
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {
            "objectType": "tile",
            "classification": {"name": kind, "color": _COLOUR[located]},
            "measurements": measured,
        },
    }


def top_patches(found: list[SlidePatches], most: int = 10) -> list[dict[str, Any]]:
    """Return the patches with the largest weights of every sample, best first, as lines of a table.

    Parameters
    ----------
    found : list of SlidePatches
    most : int
        Patches per sample.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}.")
    lines: dict[str, list[dict[str, Any]]] = {}
    for patches in found:
        weights = patches.weights.max(axis=1)
        for j in np.argsort(-weights, kind="stable")[:most]:
            x, y = (None, None) if patches.coords is None else patches.coords[j].tolist()
            line = {"sample": patches.sample, "slide": patches.slide, "patch": int(j)}
            line |= {"x": x, "y": y, "side": patches.side if x is not None else None}
            line |= {"head": int(patches.weights[j].argmax()), "attention": float(weights[j])}
            line |= {"relative": float(patches.relative[j]), "located": bool(patches.located[j])}
            lines.setdefault(patches.sample, []).append(line)
    best = [sorted(own, key=lambda line: -line["attention"])[:most] for own in lines.values()]
    return [line for own in best for line in own]
