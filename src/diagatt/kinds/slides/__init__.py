"""Whole slides: a sample is a patient, and its rows are patches whose features an encoder made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagatt.kinds.base import KINDS, Columns, Inputs, Kind, Option
from diagatt.kinds.temporary import IN_MEMORY, temporary_store

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
        ),
        Option("slide", "Column of slide ids; default: slide_id, slide, FILENAME or wsi."),
        Option(
            "slide_table",
            "Table of slides and patients, if DATA have one line per patient.",
            changes=True,
        ),
    )

    def reads(self, path: Path, columns: Columns) -> bool:
        """Return whether a folder of slides was named."""
        return "slides" in columns.asked

    def open(self, path: Path, columns: Columns, memory: float) -> Inputs:
        """Find the slides; rows of more than a quarter of `memory` go through a temporary store."""
        slides = self.slides(path, columns)
        if slides.nbytes > memory * 2**20 * IN_MEMORY:
            store = temporary_store(slides, memory)
            return Inputs(KINDS["store"], store, slides.y, None, slides.ids, columns)
        return Inputs(self, slides.rows(), slides.y, slides.covariates, slides.ids, columns)

    def slides(self, path: Path, columns: Columns) -> SlideSamples:
        """Return the samples, of which nothing but headers is read."""
        from diagatt.kinds.slides.samples import read_slides
        from diagatt.kinds.tables import Table

        asked: dict[str, Any] = dict(columns.asked)
        folder = asked.pop("slides")
        target = columns.target  # which new samples need not have
        target = target if target in Table.read(path).names else None
        return read_slides(folder, path, target=target, covariates=columns.covariates, **asked)
