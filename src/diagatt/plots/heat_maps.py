"""Heat maps of slides, and a folder with one per slide, GeoJSON and the top patches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.files import write_atomically
from diagatt.kinds.slides.patches import SlidePatches, slide_patches, to_geojson, top_patches
from diagatt.kinds.slides.samples import SlideSamples
from diagatt.plots.canvas import COLOURS, axes_or_new, figure_bytes
from diagatt.tables import csv_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST, MOST = 0.1, 10.0  # ends of the colour scale; the upper one grows with the weights
DPI = 150


def slide(
    coords: Any,
    relative: Any,
    side: float,
    *,
    located: Any = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the patches of a slide at their coordinates.

    Parameters
    ----------
    coords : array of shape (n, 2)
        Left upper corners (x, y) of the patches.
    relative : array of shape (n,)
        Attention times the count of rows of the sample: 1 is uniform attention. Colours are on a
        logarithmic scale from 0.1 up.
    side : float
        Side of a patch, in the units of `coords`.
    located : bool array of shape (n,), optional
        Patches to frame: rows of interest.
    title : str, optional
    ax : Axes, optional

    Examples
    --------
    >>> ax = slide([[0, 0], [256, 0], [0, 256]], [0.2, 2.6, 0.2], 256, located=[False, True, False])
    >>> ax.get_aspect()
    1.0
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    corners, weights = np.asarray(coords, dtype=float), np.asarray(relative, dtype=float)
    if corners.shape != (len(weights), 2) or weights.ndim != 1 or len(weights) == 0:
        raise ValueError(
            f"coords must have shape (n, 2) and relative (n,), got {corners.shape} and "
            f"{weights.shape}."
        )
    ax = axes_or_new(ax, (6, 5))
    boxes = PatchCollection(
        [Rectangle((x, y), side, side) for x, y in corners],
        cmap="viridis",
        norm=LogNorm(LEAST, max(MOST, weights.max())),
        linewidth=0,
    )
    boxes.set_array(np.maximum(weights, LEAST))
    ax.add_collection(boxes)
    low, high = corners.min(axis=0), corners.max(axis=0) + side
    ax.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]), xticks=[], yticks=[], title=title or "")
    ax.set_aspect("equal")
    frame = max(side, 0.015 * float((high - low).max()))  # visible however large the slide is
    for x, y in corners[np.asarray(located, dtype=bool)] if located is not None else ():
        centre = (x + side / 2 - frame / 2, y + side / 2 - frame / 2)
        ax.add_patch(Rectangle(centre, frame, frame, fill=False, ec=COLOURS[1], lw=1.5))
    ax.figure.colorbar(boxes, ax=ax, label="attention × number of patches", shrink=0.8)
    return ax


def write_heat_maps(
    folder: str | Path,
    model: Any,
    slides: SlideSamples,
    *,
    mpp: float | None = None,
    most: int = 10,
) -> list[Path]:
    """Write ``{slide}.png`` and ``{slide}.geojson`` for every slide, and ``top_patches.csv``.

    Parameters
    ----------
    folder : path-like
        It is made if it does not exist; files of the same names are replaced.
    model : fitted estimator
    slides : SlideSamples
    mpp : float, optional
        Micrometres per pixel. Without it, slides whose coordinates are in micrometres (STAMP) get
        a heat map but no GeoJSON, whose coordinates are pixels.
    most : int
        Patches per sample in ``top_patches.csv``.

    Returns
    -------
    list of Path
        The files. Slides without coordinates have no heat map; their patches are in the table.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    lines: list[dict[str, Any]] = []
    own: list[SlidePatches] = []  # the slides of the present sample
    for patches in slide_patches(model, slides):
        if own and own[0].sample != patches.sample:
            lines += top_patches(own, most)
            own = []
        own.append(patches)
        if patches.coords is None:
            continue
        contents = {".png": _picture(patches)}
        if patches.unit == "px" or mpp is not None:
            contents[".geojson"] = to_geojson(patches, mpp).encode()
        for ending, content in contents.items():
            path = folder / f"{patches.slide}{ending}"
            write_atomically(path, content)
            written.append(path)
    lines += top_patches(own, most)
    table = folder / "top_patches.csv"
    cells = [list(line.values()) for line in lines]
    write_atomically(table, csv_table(list(lines[0]), cells).encode())
    return [*written, table]


def _picture(patches: Any) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    slide(
        *(patches.coords, patches.relative, patches.side),
        located=patches.located,
        title=patches.slide,
        ax=figure.subplots(),
    )
    return figure_bytes(figure, "png", dpi=DPI)
