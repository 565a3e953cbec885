"""A folder that shows where a model looked: a heat map per slide, GeoJSON, and top patches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diagatt.files import write_atomically
from diagatt.kinds.slides.patches import SlidePatches, slide_patches, to_geojson, top_patches
from diagatt.kinds.slides.samples import SlideSamples
from diagatt.plots.canvas import figure_bytes
from diagatt.plots.slide import slide
from diagatt.tables import csv_table

DPI = 150


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
