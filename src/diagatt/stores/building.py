"""Stores from anything that holds samples, streamed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self, cast

from diagatt.stores.indexing import index_folder
from diagatt.stores.layout import COVARIATES
from diagatt.stores.manifest import read_manifest
from diagatt.stores.sources import Block, transformed_blocks
from diagatt.stores.writing import RowStoreWriter

Location = str | os.PathLike
MEMORY = 1024  # MiB


class StoreBuilders:
    """Class methods of `RowStore` that write a store and open it.

    ``**options`` are those of `RowStoreWriter`: ``shard_mib``, ``dtype`` and ``overwrite``.
    """

    @classmethod
    def write(cls, path: Location, samples: Iterable[Any], **options: Any) -> Self:
        """Write samples that come one after the other.

        Parameters
        ----------
        path : path-like
        samples : iterable
            Each a (p, d) array, a tuple (X, y), or a mapping with the keys X and, if wanted, y,
            weight, covariates and payload.
        **options : see `RowStoreWriter`

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> from diagatt.stores import RowStore
        >>> lines = ({"X": np.ones((p, 2)), "y": p % 2 == 0, "name": str(p)} for p in (1, 2))
        >>> RowStore.write(tempfile.mkdtemp() + "/store", lines).part(0).payload("name")
        ['1', '2']
        """
        with RowStoreWriter(path, **options) as writer:
            for sample in samples:
                if isinstance(sample, Mapping):
                    writer.add(**sample)
                elif isinstance(sample, tuple):
                    writer.add(*sample)
                else:
                    writer.add(sample)
        return cls._opened(path)

    @classmethod
    def from_rows(
        cls,
        path: Location,
        rows: Any,
        y: Any = None,
        weights: Any = None,
        covariates: Any = None,
        *,
        shard_mib: float = 64,
        dtype: Any = "float32",
        overwrite: bool = False,
        **payload: Any,
    ) -> Self:
        """Write samples that are in memory.

        Parameters
        ----------
        path : path-like
        rows : RaggedRows, or anything that packs into it
        y, weights : array-like of shape (n,), optional
        covariates : array of shape (n, q), optional
        shard_mib, dtype, overwrite : see `RowStoreWriter`
        **payload : array-likes of shape (n,)

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> from diagatt.stores import RowStore
        >>> X, y = np.ones((5, 3, 2)), ["a", "b", "a", "a", "b"]
        >>> RowStore.from_rows(tempfile.mkdtemp() + "/store", X, y).response_type
        'string'
        """
        block = {"rows": rows, "y": y, "weights": weights, COVARIATES: covariates, **payload}
        options = {"shard_mib": shard_mib, "dtype": dtype, "overwrite": overwrite}
        return cls._from_blocks(path, [block], options)

    @classmethod
    def from_transformer(
        cls,
        path: Location,
        transformer: Any,
        inputs: Iterable[Any],
        y: Iterable[Any] | None = None,
        weights: Iterable[Any] | None = None,
        covariates: Iterable[Any] | None = None,
        *,
        chunk: int = 1024,
        payload: str | None = None,
        **options: Any,
    ) -> Self:
        """Send inputs through a transformer and write its rows, chunk by chunk.

        Parameters
        ----------
        path : path-like
        transformer : fitted transformer
            Its ``transform`` takes a list of inputs and returns RaggedRows: `TextRows`,
            `PatchRows`, a pipeline that ends in one.
        inputs : iterable
            Texts, images, paths; read once and never held all together.
        y, weights, covariates : iterables, optional
            One item an input.
        chunk : int
            Inputs that are transformed together.
        payload : str, optional
            Name under which the inputs, then strings or paths, are kept: "text", "path".
        **options : see `RowStoreWriter`

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> from diagatt.images import PatchRows
        >>> from diagatt.stores import RowStore
        >>> images = np.ones((9, 8, 8))
        >>> patches = PatchRows(4).fit(images)
        >>> RowStore.from_transformer(tempfile.mkdtemp() + "/store", patches, images, chunk=5)
        RowStore(n_samples=9, n_rows=36, n_features=16, dtype=float32, n_shards=1)
        """
        given = {"y": y, "weights": weights, COVARIATES: covariates}
        columns = {name: values for name, values in given.items() if values is not None}
        blocks = transformed_blocks(transformer, inputs, columns, chunk, payload)
        return cls._from_blocks(path, blocks, options)

    @classmethod
    def index(cls, folder: Location) -> Self:
        """Make the manifest of a folder of shards that several writers made, and open it.

        Every shard is read and checked: columns, features, at least one sample, finite numbers.
        Shards stand in the order of their names.

        Parameters
        ----------
        folder : path-like
            Holds files ``*.arrow``, from stores of the same columns, and no manifest.

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> from diagatt.stores import RowStore
        >>> store = RowStore.write(tempfile.mkdtemp() + "/store", [np.ones((3, 2))])
        >>> (store.path / "store.json").unlink()
        >>> RowStore.index(store.path).digest == store.digest
        True
        """
        index_folder(Path(folder))
        return cls._opened(folder)

    @classmethod
    def _from_blocks(cls, path: Location, blocks: Iterable[Block], options: dict) -> Self:
        with RowStoreWriter(path, **options) as writer:
            for block in blocks:
                writer.extend(**block)
        return cls._opened(path)

    @classmethod
    def _opened(cls, path: Location) -> Self:
        """Open what was written; whoever chose large shards has the memory for two."""
        largest = max(info.bytes for info in read_manifest(Path(path)).shards)
        return cast(Any, cls)(path, memory=max(MEMORY, 2 * largest / 2**20))
