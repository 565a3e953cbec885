"""Temporary stores for samples that are too large for memory."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

IN_MEMORY = 0.25  # share of the memory that rows may take; larger ones are written to a store


def temporary_store(samples: Any, memory: float) -> Any:
    """Write samples to a folder, which is deleted when the returned store is no longer used.

    Parameters
    ----------
    samples : CellSamples, SlideSamples, or another object with a method `to_store`
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
