"""Whole slides: a sample is a patient, and its rows are patches whose features an encoder made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagatt.kinds.base import KINDS, Columns, Inputs, Kind, Option
from diagatt.kinds.memory import IN_MEMORY, temporary_store

if TYPE_CHECKING:
    from diagatt.kinds.slides.samples import SlideSamples


class Slides(Kind):
    """A table of labels, and a folder of features of the slides that it lists."""

    name = "slide"
    reading = (
        Option(
            "slides",
            "Folder of slide features (TRIDENT, CLAM, STAMP, .h5, .pt, .npy); DATA are labels.",
            changes=True,
            value="FOLDER",
        ),
        Option(
            "slide",
            "Column of slide ids; default: slide_id, slide, FILENAME or wsi.",
            value="COLUMN",
        ),
        Option(
            "slide_table",
            "Table of slides and patients, if DATA have one line per patient.",
            changes=True,
            value="FILE",
        ),
    )
    takes = ("target", "covariates", "groups", *(option.name for option in reading))
    bounded = True

    def reads(self, path: Path, columns: Columns) -> bool:
        """Return whether a folder of slides was named."""
        return "slides" in columns.asked

    def open(self, path: Path, columns: Columns, memory: float) -> Inputs:
        """Find the slides; rows of more than a quarter of `memory` go through a temporary store."""
        slides = self.slides(path, columns)
        if slides.nbytes > memory * 2**20 * IN_MEMORY:
            if slides.groups is not None:
                least = slides.nbytes / IN_MEMORY / 2**20
                raise ValueError(
                    f"--groups needs samples in memory: give --memory {least:,.0f} (MiB) or more."
                )
            store = temporary_store(slides, memory)
            return Inputs(KINDS["store"], store, slides.y, None, slides.ids, columns)
        known = (slides.rows(), slides.y, slides.covariates, slides.ids, columns, slides.groups)
        return Inputs(self, *known)

    def slides(self, path: Path, columns: Columns) -> SlideSamples:
        """Return the samples, of which nothing but headers is read."""
        from diagatt.kinds.slides.samples import read_slides
        from diagatt.kinds.tables import Table

        asked: dict[str, Any] = dict(columns.asked)
        folder = asked.pop("slides")
        names = Table.read(path).names  # new samples need neither responses nor groups
        target = columns.target if columns.target in names else None
        if columns.target is not None and target is None and not columns.of_a_model:
            has = ", ".join(names)
            raise ValueError(f"{path} has no column {columns.target!r}; it has {has}.")
        groups = None if columns.of_a_model and columns.groups not in names else columns.groups
        asked |= {"target": target, "covariates": columns.covariates, "groups": groups}
        return read_slides(folder, path, **asked)
