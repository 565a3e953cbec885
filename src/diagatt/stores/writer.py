"""Writing a store by streaming, in bounded memory: it is written completely or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Set
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from diagatt.coerce import offsets_from
from diagatt.files import clean_up_folder, make_folder_beside, place_folder, sync_folder
from diagatt.names import Names, listed, names_of
from diagatt.ragged import RaggedRows
from diagatt.stores.checks import check_payload, checked_column, checked_covariates, checked_rows
from diagatt.stores.manifest import MANIFEST, Manifest, measure, read_manifest
from diagatt.stores.responses import checked_responses, response_columns
from diagatt.stores.row_types import disk_dtype, row_type
from diagatt.stores.shard import (
    CARRIED,
    COVARIATES,
    RESPONSE,
    ROW_IDS,
    ROW_WEIGHT,
    SAMPLE_IDS,
    WEIGHT,
    Layout,
    Shard,
    ShardInfo,
    StoreError,
)


class RowStoreWriter:
    """Write samples to a new store, shard by shard.

    All files are written to a hidden folder next to `path`, which is renamed when it is complete.
    If anything fails, the folder is removed; if the process is killed, the next writer removes it.

    Parameters
    ----------
    path : path-like
        Folder to make.
    shard_mib : float
        Size of a shard in MiB, at most 1024; writing takes the memory of about three. A sample
        that is larger has a shard of its own.
    dtype : {"float32", "float64", "float16", "bfloat16"}
        Type in which rows are stored. float16 and bfloat16 take half the disk, for features that
        were computed in them; such rows are read and computed in float32.
    overwrite : bool
        Whether an existing store is replaced, once the new one is complete. A folder that contains
        any other file is refused.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from diagatt.stores import RowStore, RowStoreWriter
    >>> path = tempfile.mkdtemp() + "/store"
    >>> with RowStoreWriter(path) as writer:
    ...     for p in (2, 3):
    ...         writer.add(np.ones((p, 4)), y=float(p), name=f"sample of {p}")
    >>> RowStore(path).responses()
    array([2., 3.])
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        shard_mib: float = 64,
        dtype: Any = "float32",
        overwrite: bool = False,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        if not 0 < shard_mib <= 1024:
            raise ValueError(f"shard_mib must be above 0 and at most 1024, got {shard_mib}.")
        self.dtype = row_type(dtype)
        self.overwrite = overwrite
        self._limit = int(shard_mib * 2**20)
        self._shards: list[ShardInfo] = []
        self._buffer: _Buffer | None = None
        self._folder: Path | None = None
        self._failed = False
        self.n_samples = 0

    def __enter__(self) -> Self:
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path.parent} does not exist: make this folder first.")
        clean_up_folder(self.path)
        _check_target(self.path, self.overwrite)
        self._folder = make_folder_beside(self.path)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self._folder is not None
        try:
            if kind is None:
                self._finish(self._folder)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def add(
        self, X: Any, y: Any = None, weight: Any = None, covariates: Any = None, **payload: Any
    ) -> None:
        """Add one sample.

        Parameters
        ----------
        X : array of shape (p, d)
        y : number, truth value or string, optional
            Several outcomes are an array, or a mapping from their names to numbers; times to an
            event a mapping of ``time`` and ``event``, and so on as in `diagatt.lifetimes`.
        weight : float, optional
        covariates : array of shape (q,), optional
        **payload : numbers or strings
            Anything to keep with the sample, such as ``text=`` or ``path=``.
        """
        name = f"sample {self.n_samples}"
        try:
            rows = RaggedRows(X, [0, len(X)])
        except ValueError as error:  # RaggedRows calls its only sample "values" or "sample 0"
            said = str(error).replace("values", name, 1).replace("sample 0", name, 1)
            raise StoreError(said) from None
        except TypeError as error:  # of something that has no length
            raise StoreError(f"{name} is not a matrix of numbers: {error}.") from None
        given = {RESPONSE: y, WEIGHT: weight, COVARIATES: covariates, **payload}
        self._put(rows, {key: [value] for key, value in given.items() if value is not None})

    def extend(
        self, rows: Any, y: Any = None, weights: Any = None, covariates: Any = None, **payload: Any
    ) -> None:
        """Add many samples.

        If one of them is refused, no store is written; after a refused `add` one may go on.

        Parameters
        ----------
        rows : RaggedRows, or anything that packs into it
            Names of features, ids of samples and rows, and weights of rows are kept.
        y : array-like of shape (n,), or (n, q) for several outcomes, optional
            A frame names its outcomes. Times to an event are what `DiagAttSurvival.fit` takes.
        weights : array-like of shape (n,), optional
        covariates : array or frame of shape (n, q), optional
        **payload : array-likes of shape (n,)
        """
        given = {RESPONSE: y, WEIGHT: weights, COVARIATES: covariates, **payload}
        try:
            self._put(RaggedRows.coerce(rows), {k: v for k, v in given.items() if v is not None})
        except BaseException:
            self._failed = True
            raise

    def _put(self, rows: RaggedRows, given: Mapping[str, Any]) -> None:
        """Check samples and spread them over shards."""
        if self._folder is None:
            raise StoreError("use the writer in a with block: with RowStoreWriter(path) as writer.")
        if self._failed:
            raise StoreError("an earlier block or shard failed: begin a new store.")
        before = None if self._buffer is None else self._buffer.layout
        rows = _by_name(rows, before, self.n_samples)
        layout, columns = _checked_block(rows, given, self.n_samples, before, self.dtype)
        buffer = self._buffer or _Buffer(layout, self._limit)
        ends = np.cumsum(_sample_bytes(layout, rows.lengths, columns))
        start, written, offsets = 0, 0, rows.offsets
        while start < len(rows):
            stop = start + buffer.room(ends[start:], written)
            if start == stop:
                self._flush()
                continue
            local = offsets[start : stop + 1] - offsets[start]
            values = rows.values[offsets[start] : offsets[stop]]
            kept = checked_rows(values, local, self.dtype, self.n_samples)
            part = {name: items[start:stop] for name, items in columns.items()}
            buffer.put(kept, np.diff(local), part, int(ends[stop - 1]) - written)
            self._buffer = buffer  # only now, so that a refused first sample has no influence
            self.n_samples += stop - start
            start, written = stop, int(ends[stop - 1])

    def _flush(self) -> None:
        """Write the samples in the buffer as a shard."""
        assert self._buffer is not None
        assert self._folder is not None
        path = self._folder / f"shard-{len(self._shards):05d}.arrow"
        self._failed = True  # until the shard is on the disk
        batch = self._buffer.batch()
        try:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as file:
                file.write_batch(batch)
            with open(path, "rb+") as written:
                os.fsync(written.fileno())
        except OSError as error:
            raise _not_written(f"shard {path.name}", self.path.parent, error) from error
        self._shards.append(measure(Shard(path)))
        self._buffer.clear()
        self._failed = False

    def _finish(self, folder: Path) -> None:
        if self._failed:
            raise StoreError("a block or shard failed, so that no store is written.")
        if self._buffer is None:
            raise StoreError("no sample was added: a store holds at least one.")
        self._flush()
        try:
            Manifest(self._buffer.layout, tuple(self._shards)).write(folder)
            sync_folder(folder)
        except OSError as error:
            raise _not_written(MANIFEST, self.path.parent, error) from error
        _check_target(self.path, self.overwrite)
        place_folder(folder, self.path)


class _Buffer:
    """The shard that is being filled: samples up to `limit` bytes, or one larger sample alone."""

    def __init__(self, layout: Layout, limit: int) -> None:
        self.layout = layout
        self._limit = limit
        capacity = limit // layout.row_bytes
        self._values = np.empty(
            (capacity, layout.n_features), disk_dtype(layout.dtype)
        )  # touched as filled
        self.clear()

    def clear(self) -> None:
        """Drop all samples."""
        self._filled = self._values[:0]
        self._lengths: list[int] = []
        self._columns: dict[str, list] = {name: [] for name in self.layout.columns}
        self._bytes = 0

    def room(self, ends: np.ndarray, start: int) -> int:
        """Return how many samples fit; they end at these bytes, and the first begins at `start`."""
        free = self._limit - self._bytes
        fitting = int(np.searchsorted(ends, start + free, side="right"))
        return max(fitting, 0 if self._lengths else 1)

    def put(self, values: np.ndarray, lengths: np.ndarray, columns: dict, size: int) -> None:
        """Take in samples for which there is room."""
        start = len(self._filled)
        if start + len(values) > len(self._values):  # one large sample, alone
            self._filled = values.copy()  # the caller may change its own
        else:
            self._values[start : start + len(values)] = values
            self._filled = self._values[: start + len(values)]
        self._lengths.extend(lengths.tolist())
        for name, items in columns.items():
            flat = items.ravel().tolist() if name in self.layout.widths else items
            self._columns[name].extend(flat)
        self._bytes += size

    def batch(self) -> pa.RecordBatch:
        """Return the samples as one record batch, on the memory of this buffer."""
        return self.layout.batch(self._filled, offsets_from(self._lengths), self._columns)


def _sample_bytes(layout: Layout, lengths: np.ndarray, columns: Mapping[str, Any]) -> np.ndarray:
    """Return the bytes that each sample takes in a shard."""
    fixed = sum(8 for kind in layout.columns.values() if kind in ("float64", "int64", "bool"))
    sizes = lengths * layout.row_bytes + 8 + fixed + 8 * sum(layout.widths.values())
    for name, kind in layout.columns.items():
        if kind == "string":
            sizes += 4 + np.fromiter(map(len, map(str.encode, columns[name])), np.int64)
        elif kind == "strings":
            sizes += 4 + np.array([sum(4 + len(i.encode()) for i in ids) for ids in columns[name]])
        elif kind == "floats":
            sizes += 4 + 8 * lengths
    return sizes


def _checked_block(
    rows: RaggedRows, given: Mapping[str, Any], first: int, layout: Layout | None, dtype: str
) -> tuple[Layout, dict[str, Any]]:
    """Return layout and columns of samples, which must agree with a layout that is known.

    The first of them is the store's sample `first`.
    """
    ids = _carried(rows)
    kinds: dict[str, str] = {}
    width = None
    if layout is not None:
        _check_same(layout, rows.n_features, given.keys() | ids.keys(), first)
        kinds, width = dict(layout.columns), layout.n_covariates
    check_payload(given.keys() - {RESPONSE, WEIGHT, COVARIATES})
    columns: dict[str, Any] = {}
    named = None
    answered = None if layout is None else layout.response_names
    several = response_columns(given.get(RESPONSE))
    if layout is not None and RESPONSE in given:
        _check_width(answered, several, first)
    for name, values in given.items():
        if name == RESPONSE and several is not None and len(several) == 1:
            (values,) = several.values()
        elif name == RESPONSE and several is not None:
            columns[name], answered = checked_responses(several, len(rows), first, answered)
            kinds[name] = "float64"
            continue
        if name == COVARIATES:
            named = names_of(values, f"sample {first}: covariates")
            columns[name] = checked_covariates(values, len(rows), first, width)
            kinds[name], width = "float64", columns[name].shape[1]
        else:
            kind = "float64" if name == WEIGHT else kinds.get(name)
            columns[name], kinds[name] = checked_column(name, values, len(rows), first, kind)
    for name, values in ids.items():
        columns[name], kinds[name] = values, CARRIED[name]
    if layout is None:
        names = rows.feature_names, named, answered
        return Layout(rows.n_features, dtype, kinds, width or 0, *names), columns
    if named not in (None, layout.covariate_names):
        raise StoreError(
            f"sample {first} has the covariates {listed(named)}, those before have "
            f"{listed(layout.covariate_names or ['no names'])}: give all in one order."
        )
    return layout, columns


def _carried(rows: RaggedRows) -> dict[str, list]:
    """Return the ids and weights that rows come with: one per sample, or a list per sample."""
    found: dict[str, list] = {}
    if rows.sample_ids is not None:
        found[SAMPLE_IDS] = rows.sample_ids.tolist()
    if rows.row_ids is not None:
        every, cuts = rows.row_ids.tolist(), rows.offsets.tolist()
        found[ROW_IDS] = [every[a:b] for a, b in pairwise(cuts)]
    if rows.row_weight is not None:
        weights, cuts = rows.row_weight.tolist(), rows.offsets.tolist()
        found[ROW_WEIGHT] = [weights[a:b] for a, b in pairwise(cuts)]
    return found


def _by_name(rows: RaggedRows, layout: Layout | None, first: int) -> RaggedRows:
    """Return rows with their features in the order of the samples before."""
    wanted = rows.feature_names if layout is None else layout.feature_names
    if (wanted is None) != (rows.feature_names is None):
        has, others = ("no names", "some") if wanted else ("names", "none")
        raise StoreError(
            f"the features of sample {first} have {has}, those before have {others}: name the "
            "features of all samples or of none."
        )
    if wanted is None or rows.n_features != len(wanted):  # another count is refused later
        return rows
    try:
        return rows.with_features(wanted)
    except ValueError as error:
        raise StoreError(f"sample {first}: {error}") from None


def _check_same(layout: Layout, n_features: int, names: Set[str], first: int) -> None:
    if n_features != layout.n_features:
        raise StoreError(
            f"sample {first} has {n_features} features, those before have {layout.n_features}: "
            "all samples need the same number of features."
        )
    for name in sorted(names ^ set(layout.columns)):
        has, others = ("", "none") if name in names else ("no ", "one")
        what = f"sample {first} has {has}{name}, those before have {others}"
        raise StoreError(f"{what}: give it for all samples or for none.")


def _check_width(before: Names | None, found: Mapping[str, Any] | None, first: int) -> None:
    """Refuse several responses of a sample where those before have one, and the reverse."""
    if (before is None) != (found is None or len(found) == 1):
        has, others = ("one response", "several") if before else ("several responses", "one")
        raise StoreError(
            f"sample {first} has {has}, those before have {others}: give the same for all samples."
        )


def _check_target(path: Path, overwrite: bool) -> None:
    """Refuse to replace anything unasked, or a folder with a file that is not the store's."""
    if not path.exists():
        return
    if not overwrite:
        raise StoreError(
            f"{path} exists: pass overwrite=True to replace a store, or choose another path."
        )
    try:
        own = {MANIFEST, *(info.file for info in read_manifest(path).shards)}
    except StoreError as error:
        raise StoreError(f"{path} is not replaced: it is not a valid store. {error}") from None
    for entry in sorted(path.iterdir()):
        if entry.name not in own or not entry.is_file():
            raise StoreError(
                f"{path} is not replaced: {entry.name} in it does not belong to the store. Move it "
                "elsewhere, or choose another path."
            )


def _not_written(what: str, folder: Path, error: OSError) -> StoreError:
    """Return an error that says that there is no room, or why else a file cannot be written."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        reason = f"there is no room ({reason}); free some or choose another folder"
    return StoreError(f"{what} cannot be written to {folder}: {reason}. Nothing was left behind.")
