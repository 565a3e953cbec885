"""Memory: temporary stores for samples that need too much of it, and freed memory given back."""

from __future__ import annotations

import ctypes
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

IN_MEMORY = 0.25  # share of the memory that rows may take; larger ones are written to a store


def give_back() -> None:
    """Return freed memory to the system, that of pyarrow's pool and that of the C library.

    Allocators keep what is freed, in case it is needed again. After millions of names have been
    read, that is hundreds of MiB. It takes a few milliseconds; where the C library has no such call
    (it is glibc's), its memory stays where it is.
    """
    import pyarrow as pa  # here, because it takes 0.1 s

    pa.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(ctypes.c_size_t(0))


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
