"""Freed memory is given back to the system before the next large step needs more."""

from __future__ import annotations

import ctypes
import sys

import pyarrow as pa


def give_back() -> None:
    """Return freed memory to the system, that of pyarrow's pool and that of the C library.

    Allocators keep what is freed, in case it is needed again. After millions of names have been
    read, that is hundreds of MiB. It takes a few milliseconds; where the C library has no such call
    (it is glibc's), its memory stays where it is.
    """
    pa.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(ctypes.c_size_t(0))
