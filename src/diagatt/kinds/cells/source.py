"""AnnData where estimators expect samples: ``fit(adata, sample_key="patient", target="disease")``.

`diagatt.estimators.containers` calls `opened`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diagatt.kinds.cells.samples import CellSamples
from diagatt.kinds.cells.table import CellTable
from diagatt.kinds.memory import give_back, temporary_store

# Up to this many bytes, sparse rows are made dense and rows on disk are read into memory; above it,
# a sparse matrix stays sparse, and rows on disk are written to a store.
IN_MEMORY = 2**28
MEMORY = 128  # MiB that the rows of such a store may take; a contest takes several times as much


def read_cells(
    adata: Any,
    sample_key: str,
    *,
    target: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    covariates: Any = (),
    groups: str | None = None,
    sample_weight: str | None = None,
) -> CellSamples:
    """Group the cells of an AnnData object into samples.

    Parameters
    ----------
    adata : AnnData
        In memory or backed.
    sample_key : str
        Column of ``obs`` that says which sample a cell belongs to: the patient, the donor.
    target : str, optional
        Column of responses; the same for all cells of a sample, which is checked.
    layer, obsm : str, optional
        Where the features are: a layer, or an entry of obsm such as ``"X_scVI"``; by default
        ``X``.
    covariates : list of str
        Columns of numbers whose effect is added to the predictor, constant within samples.
    groups, sample_weight : str, optional
        Columns of groups that are held out together, and of weights of samples.

    Returns
    -------
    CellSamples
        ``.rows()`` are RaggedRows whose features are named by ``var_names``, samples by
        `sample_key` and rows by ``obs_names``; ``.y`` and ``.covariates`` stand in the same order,
        which is that of first appearance.
    """
    return CellSamples.of(
        CellTable.of(adata, layer, obsm),
        sample_key,
        target=target,
        covariates=covariates,
        groups=groups,
        sample_weight=sample_weight,
    )


def write_store(path: Any, adata: Any, sample_key: str, **how: Any) -> Any:
    """Write the samples of an AnnData object to a `RowStore`, in blocks, and open it.

    Parameters
    ----------
    path : path-like
        Folder to make.
    adata, sample_key, **how
        As in `read_cells`; ``shard_mib``, ``dtype`` and ``overwrite`` as in `RowStoreWriter`.
    """
    options = {k: how.pop(k) for k in ("shard_mib", "dtype", "overwrite") if k in how}
    return read_cells(adata, sample_key, **how).to_store(path, **options)


@contextmanager
def opened(
    adata: Any, given: Mapping[str, Any], fits: bool
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield samples and the other arguments of an estimator's method.

    A large file or backed object is copied, sample by sample, to a temporary store.
    """
    given = dict(given)
    words = ["sample_key", "layer", "obsm"]
    how = {word: given.pop(word) for word in words if word in given}
    if "sample_key" not in how:
        raise TypeError('say which cells belong together: pass sample_key="patient" with AnnData.')
    named = ("covariates", "target", "groups", "sample_weight") if fits else ("covariates",)
    columns = {k: given.pop(k) for k in named if given.get(k) is not None}
    if fits and "target" not in columns:
        raise TypeError('say what to predict: pass target="disease", a column of adata.obs.')
    key = how.pop("sample_key")
    if columns.get("target") == key:
        raise ValueError(
            f"target and sample_key are both {key!r}: the name of a sample is not a response."
        )
    with _table(adata, **how) as table:
        samples = CellSamples.of(table, key, **columns)
        few = table.nbytes <= IN_MEMORY
        kept = table.entries is not None and not (table.is_on_disk and table.entries > IN_MEMORY)
        if few or kept or not table.is_on_disk:
            rows, rest = samples.rows(kept and not few), given | arguments(samples, fits)
        else:
            if samples.groups is not None:
                raise ValueError(
                    "groups need samples in memory: read the object with adata.to_memory()."
                )
            rows, rest = temporary_store(samples, MEMORY), given
    del samples, table  # millions of names are not needed while the model is fitted
    give_back()
    yield rows, rest


@contextmanager
def _table(adata: Any, **how: Any) -> Iterator[CellTable]:
    """Open a file, or take an object."""
    if isinstance(adata, str | Path):
        with CellTable.opened(Path(adata), **how) as table:
            yield table
    else:
        yield CellTable.of(adata, **how)


def arguments(samples: CellSamples, fits: bool) -> dict[str, Any]:
    """Return what a method takes besides the rows."""
    found = {"covariates": samples.covariates}
    if fits:
        weights = samples.weights
        found |= {"y": samples.y, "groups": samples.groups, "sample_weight": weights}
    return {name: value for name, value in found.items() if value is not None}
