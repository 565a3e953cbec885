"""Slides to samples: a table of labels says which slides belong to which patient."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.kinds.slides.files import SlideFile, SlideFolder
from diagatt.kinds.tables import Table
from diagatt.names import listed

# Names of columns that are looked for by default: those of CLAM, TRIDENT and STAMP.
SLIDE_COLUMNS = ("slide_id", "slide", "FILENAME", "filename", "wsi")
PATIENT_COLUMNS = ("case_id", "PATIENT", "patient", "patient_id", "case")
PART = 2**28  # bytes of float32 rows that are held while a store is written


@dataclass(frozen=True)
class SlideSamples:
    """Samples of patches, one per patient or per slide.

    Attributes
    ----------
    ids : list of str
    slides : list of lists of str
        Slides of each sample.
    files : dict of SlideFile by slide
    y : array of shape (n,), or None
    covariates : array of shape (n, q), or None
    covariate_names : tuple of str
    groups : array of shape (n,), or None
    """

    ids: list[str]
    slides: list[list[str]]
    files: dict[str, SlideFile] = field(repr=False)
    y: np.ndarray | None = None
    covariates: np.ndarray | None = None
    covariate_names: tuple[str, ...] = ()
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_features(self) -> int:
        """Features of a patch."""
        return next(iter(self.files.values())).shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Type that holds the features of all files."""
        return np.result_type(*{file.dtype for file in self.files.values()})

    @property
    def nbytes(self) -> int:
        """Bytes of all rows in memory, in the type in which they are computed."""
        size = 8 if self.dtype == np.float64 else 4
        return size * self.n_features * sum(file.shape[0] for file in self.files.values())

    @property
    def named_covariates(self) -> Any:
        """The covariates as a table with names; None if there are none."""
        if self.covariates is None:
            return None
        import pyarrow as pa

        return pa.table(dict(zip(self.covariate_names, self.covariates.T, strict=True)))

    def rows(self, samples: slice = slice(None)) -> Any:
        """Return samples in memory, float16 as float32; a row is called ``slide:x,y``."""
        from diagatt.ragged import RaggedRows

        own = self.slides[samples]
        dtype = np.float64 if self.dtype == np.float64 else np.float32
        lengths = [sum(self.files[s].shape[0] for s in slides) for slides in own]
        values = np.empty((sum(lengths), self.n_features), dtype)
        row_ids: list[str] = []
        start = 0
        for slide in (s for slides in own for s in slides):
            features = self.files[slide].features()
            values[start : start + len(features)] = features
            start += len(features)
            row_ids += _row_ids(slide, self.files[slide])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return RaggedRows(values, offsets, None, self.ids[samples], row_ids)

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield samples in order, as many at a time as fit into `PART` bytes."""
        size = self.nbytes / sum(file.shape[0] for file in self.files.values())
        start, held = 0, 0.0
        for stop, slides in enumerate(self.slides):
            own = size * sum(self.files[s].shape[0] for s in slides)
            if held and held + own > PART:
                yield slice(start, stop), self.rows(slice(start, stop))
                start, held = stop, 0.0
            held += own
        yield slice(start, len(self)), self.rows(slice(start, len(self)))

    def to_store(self, path: str | os.PathLike, memory: float = 1024, **options: Any) -> Any:
        """Write the samples to a `RowStore`, in the type of the features, and open it.

        Parameters
        ----------
        path : path-like
        memory : float
            MiB that readers of the store may use.
        **options : see `RowStoreWriter`
        """
        from diagatt.stores import RowStore, RowStoreWriter

        Z = self.named_covariates
        with RowStoreWriter(path, **{"dtype": self.dtype, **options}) as writer:
            for chosen, rows in self.parts():
                count = chosen.stop - chosen.start
                y = None if self.y is None else self.y[chosen]
                writer.extend(
                    rows, y, covariates=None if Z is None else Z.slice(chosen.start, count)
                )
        return RowStore(path, memory=memory)


def read_slides(
    folder: str | os.PathLike,
    labels: Any,
    *,
    target: str | None = None,
    covariates: Sequence[str] = (),
    groups: str | None = None,
    slide: str | None = None,
    sample: str | None = None,
    slide_table: Any = None,
) -> SlideSamples:
    """Find the features of the slides that a table of labels lists.

    Parameters
    ----------
    folder : path-like
        Output of TRIDENT, CLAM or STAMP, or a folder of ``.h5``, ``.pt`` or ``.npy`` files
        (`SlideFolder`). Tensors of ``.pt`` files are read without unpickling.
    labels : path, DataFrame or pyarrow Table
        One line per slide or, with `slide_table`, per patient.
    target : str, optional
        Column of responses, the same for all slides of a patient.
    covariates : list of str
        Columns of numbers whose effect is added to the predictor.
    groups : str, optional
        Column of sites or other groups whose samples are held out together.
    slide : str, optional
        Column of slide ids; by default slide_id (CLAM), slide, FILENAME (STAMP), filename or wsi.
    sample : str, optional
        Column of patients, whose slides become one sample; by default case_id (CLAM), PATIENT
        (STAMP), patient, patient_id or case. Without one, or if it is that of slides, a slide is a
        sample.
    slide_table : path, DataFrame or pyarrow Table, optional
        Which slides patients have, if `labels` has one line per patient (STAMP).

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> folder = tempfile.mkdtemp()
    >>> for name in ("a1", "a2", "b1"):
    ...     np.save(f"{folder}/{name}.npy", np.ones((5, 3), np.float16))
    >>> labels = pd.DataFrame({"case_id": ["a", "a", "b"], "slide_id": ["a1", "a2", "b1"]})
    >>> read_slides(folder, labels).rows()
    RaggedRows(n_samples=2, n_rows=15, n_features=3, dtype=float32)
    """
    table = _table(labels, (slide, sample))
    patients = _column(table, sample, PATIENT_COLUMNS)
    pairs = table if slide_table is None else _table(slide_table, (slide, sample))
    if pairs is not table and (patients is None or patients not in pairs.names):
        raise ValueError(
            f"{table.name} and {pairs.name} have no common column of patients: name it sample=."
        )
    slides = _column(pairs, slide, SLIDE_COLUMNS)
    if slides is None:
        raise ValueError(
            f"{pairs.name} has no column of slides ({', '.join(SLIDE_COLUMNS)}); it has "
            f"{pairs.listed}: name it slide=."
        )
    lines = table.strings(patients or slides)  # the sample of each line
    found = SlideFolder(folder)
    own = _slides_of(list(dict.fromkeys(lines)), pairs, patients or slides, slides, found)
    files = {name: found.file(name) for names in own.values() for name in names}
    _check_widths(files)
    y = table.responses(target)
    y = None if y is None else _per_sample(y, lines, str(target), table.name)
    Z = table.numbers(list(covariates))
    if Z is not None:
        columns = zip(Z.T, covariates, strict=True)
        Z = np.column_stack([_per_sample(z, lines, name, table.name) for z, name in columns])
    g = None if groups is None else table.labels(groups)
    g = None if g is None else _per_sample(g, lines, str(groups), table.name)
    return SlideSamples(list(own), list(own.values()), files, y, Z, tuple(covariates), g)


def _slides_of(
    samples: list[str], pairs: Table, owner: str, slide: str, folder: SlideFolder
) -> dict[str, list[str]]:
    """Return the slides of every sample, by the names of their files."""
    own: dict[str, list[str]] = {name: [] for name in samples}
    missing = []
    for name, sample in zip(pairs.strings(slide), pairs.strings(owner), strict=True):
        file = folder.find(name)
        if sample not in own:  # a table of slides may list patients without labels
            continue
        if file is None:
            missing.append(name)
        elif file not in own[sample]:
            own[sample].append(file)
    if missing:
        several = len(missing) > 1
        who = f"{len(missing)} slides, {listed(missing)}" if several else f"slide {missing[0]!r}"
        what = "their lines" if several else "its line"
        raise ValueError(
            f"{folder.place} has no features of {who}: drop {what} "
            f"from {pairs.name}; there are {listed(folder.names)}."
        )
    empty = [name for name in samples if not own[name]]
    if empty:
        raise ValueError(f"patient {listed(empty)} has no slide in {pairs.name}: drop the line.")
    return own


def _table(data: Any, named: Sequence[str | None]) -> Table:
    text = [name for name in (*named, *SLIDE_COLUMNS, *PATIENT_COLUMNS) if name]
    if isinstance(data, str | os.PathLike):
        return Table.read(Path(data), text=text)
    if isinstance(data, Table):
        return data
    import pyarrow as pa

    return Table(data if isinstance(data, pa.Table) else pa.table(dict(data)), "the labels")


def _column(table: Table, named: str | None, usual: Sequence[str]) -> str | None:
    if named is not None:
        table.column(named)  # refuses one that is not there
        return named
    return next((name for name in usual if name in table.names), None)


def _per_sample(values: np.ndarray, lines: Sequence[str], name: str, where: str) -> np.ndarray:
    """Return one value per sample, in the order of first appearance; all its lines must agree."""
    first: dict[str, Any] = {}
    for line, (sample, value) in enumerate(zip(lines, values, strict=True)):
        if first.setdefault(sample, value) != value:
            raise ValueError(
                f"{where}, line {line + 2}: {name} of {sample} is {value}, but {first[sample]} "
                "before: it must be the same for all slides of a patient."
            )
    return np.asarray(list(first.values()))


def _row_ids(slide: str, file: SlideFile) -> list[str]:
    coords = file.coordinates()
    if coords is None:
        return [f"{slide}:{j}" for j in range(file.shape[0])]
    return [f"{slide}:{x:g},{y:g}" for x, y in coords.tolist()]


def _check_widths(files: dict[str, SlideFile]) -> None:
    (first, expected), *others = ((name, file.shape[1]) for name, file in files.items())
    for name, width in others:
        if width != expected:
            raise ValueError(
                f"slide {name} has {width} features per patch, slide {first} has {expected}: use "
                "one encoder for all."
            )
