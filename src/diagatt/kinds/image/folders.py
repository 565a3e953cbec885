"""A user's own images: a folder of classes or a table of paths, checked before any is decoded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.kinds.image import SUFFIXES
from diagatt.kinds.image.reading import MAX_PIXELS, image_size
from diagatt.kinds.tables import Table

MAX_TOTAL_PIXELS = 1_000_000_000  # 4 GB of grey rows


@dataclass(frozen=True)
class ImageFiles:
    """Image files, which `PatchRows` and the estimators take as they are, and their responses."""

    images: list[Path]
    y: np.ndarray | None  # (n,)


def read_folder(
    folder: str | os.PathLike,
    *,
    max_pixels: int = MAX_PIXELS,
    max_total_pixels: int = MAX_TOTAL_PIXELS,
) -> ImageFiles:
    """Return the images of a folder, in the order of their names.

    Parameters
    ----------
    folder : path-like
        With one subfolder per class, whose name is the label; or with images and no subfolder of
        images, which have no labels. Hidden files and other kinds of files are passed over.
    max_pixels : int
        A larger image is refused; only its header is read for that.
    max_total_pixels : int
        More pixels in all images together are refused, because all rows are kept in memory.

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
            f"{root} holds images next to subfolders of images: {loose[0].name} has no class; move "
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
    """Return the images that a table names, in its order.

    Parameters
    ----------
    table : path of a CSV, TSV, JSONL, Parquet or Feather file, DataFrame, pyarrow Table, or mapping
    path : str
        Column of paths.
    response : str, optional
        Column of responses or labels.
    folder : path-like, optional
        What relative paths are relative to; by default the folder of the file, or the current one.
    max_pixels, max_total_pixels : int
        As in `read_folder`.
    """
    if isinstance(table, str | os.PathLike):
        folder = Path(table).parent if folder is None else folder
        found = Table.read(Path(table))
    else:
        found = Table(table)
    images = [Path(folder or "") / name for name in found.strings(path)]
    y = None if response is None else np.asarray(found.values(response))
    if not images:
        raise ValueError("the table names no image.")
    _check_sizes(images, max_pixels, max_total_pixels)
    return ImageFiles(images, y)


def _image_files(folder: Path) -> list[Path]:
    files = (p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    return sorted(p for p in files if not p.name.startswith("."))


def _check_sizes(images: Sequence[Path], max_pixels: int, max_total_pixels: int) -> None:
    total = 0
    for i, path in enumerate(images):
        height, width = image_size(path, f"image {i}", max_pixels)
        total += height * width
        if total > max_total_pixels:
            raise ValueError(
                f"the first {i + 1} of {len(images)} images have {total} pixels together, more "
                f"than max_total_pixels={max_total_pixels}: load fewer, shrink them, or raise the "
                "limit if they fit in memory."
            )
