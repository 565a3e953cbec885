"""Images: a sample is an image, and its rows are patches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.kinds.base import Columns, Inputs, Kind, Option, diagonal

if TYPE_CHECKING:
    from diagatt.kinds.answers import Answers
    from diagatt.kinds.tables import Table


SUFFIXES = {
    *(".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png"),
    *(".pnm", ".ppm", ".tif", ".tiff", ".webp"),
}


class Image(Kind):
    """Image files whose paths stand in a column of a table, or a folder of them."""

    name = "image"
    columns = (Option("image", "Column of image paths, relative to the table."),)
    settings = (
        Option("patch", "Side of the patches of images.", int, 8, 1, makes_rows=True, value="N"),
        Option(
            *("stride", "Step from patch to patch of images; default: the side of a patch."),
            *(int | None, None, 1),
            makes_rows=True,
            value="N",
        ),
    )
    home = "diagatt.kinds.image.estimator"
    models = ("ImageClassifier", "ImageRegressor")
    payload = "path"
    target = "folder"

    def opens(self, path: Path) -> bool:
        """Return whether the path is a folder with images, or with subfolders of images."""
        if not path.is_dir():
            return False
        places = [path, *(child for child in path.iterdir() if child.is_dir())]
        return any(file.suffix.lower() in SUFFIXES for place in places for file in place.iterdir())

    def open(self, path: Path, columns: Columns, memory: float) -> Inputs:
        """Read a folder: subfolders are classes; images without subfolders have no response."""
        from diagatt.kinds.image.folders import read_folder

        found = read_folder(path)
        ids = [image.relative_to(path).as_posix() for image in found.images]
        return Inputs(self, found.images, found.y, None, ids, columns)

    def samples(self, table: Table, column: str) -> tuple[list[Path], Sequence[Any]]:
        """Return the paths; the samples are named as the table names them."""
        names = table.strings(column)
        return [Path(table.name).parent / name for name in names], names

    def transformer(self, X: Any, **settings: Any) -> Any:
        """Return `PatchRows` that knows the channels of the first image."""
        from diagatt.kinds.image.patches import PatchRows

        return PatchRows(settings["patch"], settings["stride"], padding="edge").fit(X[:1])

    def model(
        self, classifies: bool, n_samples: int, asked: dict[str, Any], seed: int, **settings: Any
    ) -> Any:
        """Return an `ImageClassifier` or `ImageRegressor`."""
        from diagatt.kinds.image.estimator import ImageClassifier, ImageRegressor

        return (ImageClassifier if classifies else ImageRegressor)(
            (settings["patch"], settings["patch"]),
            settings["stride"],
            padding="edge",
            estimator=diagonal(classifies)(**asked, verbose=True),
            random_state=seed,
        )

    def places(self, answers: Answers, head: int) -> dict[str, Any]:
        """Return the patch of interest as row, weight and box in pixels."""
        boxes = answers.prepared.boxes(answers.located[:, [head]])[:, 0]
        sides = zip(("top", "left", "bottom", "right"), boxes.T, strict=True)
        return super().places(answers, head) | dict(sides)

    def drawing(self, prepared: Any) -> dict[str, Any]:
        """Return the images and the box of every row, as far as it lies inside."""
        from diagatt.kinds.image.reading import read_image

        images, side, boxes = [read_image(path) for path in prepared.images], prepared.side, []
        for image, corners in zip(images, prepared.corners(), strict=True):
            boxes.append(np.hstack([corners, np.minimum(side, image.shape[:2] - corners)]))
        return {"images": images, "boxes": boxes}
