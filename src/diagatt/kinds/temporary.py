"""Samples that are too large for memory, in a store that is gone when nobody needs it any more."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

__all__ = ["IN_MEMORY", "temporary_store"]

IN_MEMORY = 0.25  # share of the memory that rows may take; beyond, they go through a store


def temporary_store(samples: Any, memory: float) -> Any:
    """Write samples, which have a method `to_store`, to a folder that is removed with the store.

    Parameters
    ----------
    samples : CellSamples or SlideSamples
    memory : float
        MiB that readers of the store may use.
    """
    folder = tempfile.mkdtemp(prefix="diagatt-")
    try:
        shard_mib = min(64, memory / 16)
        store = samples.to_store(Path(folder, "rows"), memory, shard_mib=shard_mib)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
    return store
