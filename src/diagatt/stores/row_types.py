"""Types in which a store holds rows, and what becomes of them when they are read.

Rows of float16 and bfloat16 take half the disk of float32, and nothing is computed in them. NumPy
and Arrow lack bfloat16, the upper half of a float32: it is stored as uint16.

Rows that are widened go to memory that was used before. Fresh memory costs ten times the conversion
itself, because the system hands it out page by page and fills it with zeros.
"""

from __future__ import annotations

import ctypes
import weakref
from contextlib import suppress
from typing import Any

import numpy as np

ROW_TYPES = ("float32", "float64", "float16", "bfloat16")
KEPT = 1  # free blocks: a pass holds the part in use and the next one, and gives one back

_free: list[bytearray] = []


def row_type(dtype: Any) -> str:
    """Return the name of a type of rows, given as a name or as a dtype of NumPy or torch.

    Examples
    --------
    >>> row_type("bfloat16"), row_type(np.float16)
    ('bfloat16', 'float16')
    """
    name = str(dtype).removeprefix("torch.")
    with suppress(TypeError):  # of names that NumPy lacks
        name = name if name in ROW_TYPES else str(np.dtype(dtype))
    if name not in ROW_TYPES:
        raise ValueError(f"dtype must be one of {', '.join(ROW_TYPES)}, got {dtype!r}.")
    return name


def disk_dtype(name: str) -> np.dtype:
    """Return the dtype of arrays that lie in a file."""
    return np.dtype("uint16" if name == "bfloat16" else name)


def memory_dtype(name: str) -> np.dtype:
    """Return the dtype that rows have when they are read."""
    return np.dtype("float32" if name in ("float16", "bfloat16") else name)


def rounded(values: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as they lie in a file, and as numbers, which are the same except for bfloat16."""
    if name != "bfloat16":
        kept = np.ascontiguousarray(values, dtype=name)
        return kept, kept
    import torch  # here, because it takes a second

    nearest = torch.from_numpy(np.array(values, dtype=np.float32)).bfloat16()
    return nearest.view(torch.int16).numpy().view(np.uint16), nearest.float().numpy()


def widened(values: np.ndarray) -> np.ndarray:
    """Return rows as they lie in a file in the type in which they are computed.

    Examples
    --------
    >>> widened(np.array([0x3F80, 0xC000], np.uint16))
    array([ 1., -2.], dtype=float32)
    """
    if values.dtype not in (np.float16, np.uint16):
        return values
    import torch  # whose conversion is eight times as quick as NumPy's

    kind = torch.float16 if values.dtype == np.float16 else torch.bfloat16
    values = np.ascontiguousarray(values)
    # Through the address, because torch warns of memory that may not be written; nothing is.
    memory = (ctypes.c_char * values.nbytes).from_address(values.ctypes.data)
    wide = float32_array(values.size)
    torch.from_numpy(wide).copy_(torch.frombuffer(memory, dtype=kind))
    return wide.reshape(values.shape)


def float32_array(size: int) -> np.ndarray:
    """Return an array of `size` numbers, of any content.

    Its memory is used again once neither it nor any view of it is left.

    Examples
    --------
    >>> float32_array(3).shape
    (3,)
    """
    fitting = [block for block in _free if 4 * size <= len(block) <= 8 * size]
    try:
        block = fitting[0]
        _free.remove(block)  # of two threads that take it, one succeeds
    except (IndexError, ValueError):
        block = bytearray(4 * size)
    lease = (ctypes.c_char * (4 * size)).from_buffer(block)
    # Views, tensors and slices all hold the lease, and nothing else does.
    weakref.finalize(lease, _take_back, block).atexit = False
    return np.frombuffer(memoryview(lease), np.float32)


def _take_back(block: bytearray) -> None:
    _free.append(block)
    del _free[:-KEPT]
