"""A user's own images: a folder of classes or a table of paths, checked before any is decoded."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.images.reading import MAX_PIXELS, image_size

__all__ = ["ImageFiles", "read_folder", "read_table"]

SUFFIXES = {
    *(".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png"),
    *(".pnm", ".ppm", ".tif", ".tiff", ".webp"),
}
MAX_TOTAL_PIXELS = 1_000_000_000  # 4 GB of grey rows


@dataclass(frozen=True)
class ImageFiles:
    """Image files and their responses.

    Attributes
    ----------
    images : list of Path
        `PatchRows` and the pipelines take them as they are and decode one at a time.
    y : array of shape (n,) or None
    """

    images: list[Path]
    y: np.ndarray | None


def read_folder(
    folder: str | os.PathLike,
    *,
    max_pixels: int = MAX_PIXELS,
    max_total_pixels: int = MAX_TOTAL_PIXELS,
) -> ImageFiles:
    """Images of a folder, in the order of their names.

    Parameters
    ----------
    folder : path-like
        With one subfolder a class, whose name is the label; or with images and no subfolder of
        images, which have no labels. Hidden files and other kinds of files are passed over.
    max_pixels : int
        An image with more is refused, from its header.
    max_total_pixels : int
        Images with more together are refused: all their rows would stand in memory.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for label in ("cat", "dog"):
    ...         (Path(name) / label).mkdir()
    ...         Image.new("L", (8, 8)).save(Path(name) / label / "1.png")
    ...     read_folder(name).y
    array(['cat', 'dog'], dtype='<U3')
    """
    root = Path(folder)
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder.")
    loose = _image_files(root)
    labelled = [
        (path, child.name)
        for child in sorted(root.iterdir())
        if child.is_dir() and not child.name.startswith(".")
        for path in _image_files(child)
    ]
    if loose and labelled:
        raise ValueError(
            f"{root} holds images beside subfolders of images: {loose[0].name} has no class; move "
            "it into a subfolder."
        )
    images = loose or [path for path, _ in labelled]
    if not images:
        raise ValueError(f"{root} holds no image: looked for {', '.join(sorted(SUFFIXES))}.")
    _check_sizes(images, max_pixels, max_total_pixels)
    return ImageFiles(images, np.array([label for _, label in labelled]) if labelled else None)


def read_table(
    table: Any,
    path: str = "path",
    response: str | None = None,
    *,
    folder: str | os.PathLike | None = None,
    max_pixels: int = MAX_PIXELS,
    max_total_pixels: int = MAX_TOTAL_PIXELS,
) -> ImageFiles:
    """Images that a table names, in its order.

    Parameters
    ----------
    table : path of a CSV file with a header, DataFrame, pyarrow Table, or mapping of columns
    path : str
        Column of paths.
    response : str, optional
        Column of responses or labels. In a CSV file it is read as numbers if all cells are.
    folder : path-like, optional
        What relative paths are relative to; by default the folder of the CSV file, or the current
        one.
    max_pixels, max_total_pixels : int
        As in `read_folder`.
    """
    if isinstance(table, str | os.PathLike):
        folder = Path(table).parent if folder is None else folder
        table = _read_csv(Path(table))
    names = list(getattr(table, "column_names", None) or getattr(table, "columns", table))
    for name in (path, response):
        if name is not None and name not in names:
            raise ValueError(f"column {name!r} is not in the table; it has {names}.")
    root = Path() if folder is None else Path(folder)
    images = [root / str(cell) for cell in np.asarray(table[path], dtype=object)]
    if not images:
        raise ValueError("the table names no image.")
    _check_sizes(images, max_pixels, max_total_pixels)
    return ImageFiles(images, None if response is None else np.asarray(table[response]))


def _image_files(folder: Path) -> list[Path]:
    files = (p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    return sorted(p for p in files if not p.name.startswith("."))


def _read_csv(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.reader(file))
    if not lines:
        raise ValueError(f"{path} is empty: its first line must name the columns.")
    header, cells = lines[0], [line for line in lines[1:] if line]
    for number, line in enumerate(cells, 1):
        if len(line) != len(header):
            raise ValueError(
                f"{path}: entry {number} has {len(line)} cells, the header {len(header)}."
            )
    return {name: _as_column([line[k] for line in cells]) for k, name in enumerate(header)}


def _as_column(cells: list[str]) -> np.ndarray:
    column = np.array(cells, dtype=str)
    for kind in (np.int64, np.float64):
        try:
            return column.astype(kind)
        except ValueError:
            continue
    return column


def _check_sizes(images: Sequence[Path], max_pixels: int, max_total_pixels: int) -> None:
    total = 0
    for number, path in enumerate(images):
        height, width = image_size(path, f"image {number}", max_pixels)
        total += height * width
        if total > max_total_pixels:
            raise ValueError(
                f"the first {number + 1} of {len(images)} images have {total} pixels together, "
                f"more than max_total_pixels={max_total_pixels}: load fewer, shrink them, or raise "
                "the limit if they fit in memory."
            )
