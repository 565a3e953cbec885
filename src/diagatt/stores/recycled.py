"""Memory for rows that are widened: what was used before is used again.

Fresh memory costs ten times the conversion itself, because the system hands it out page by page
and fills it with zeros.
"""

from __future__ import annotations

import ctypes
import weakref

import numpy as np

KEPT = 1  # free blocks: a pass holds the part in use and the next one, and gives one back

_free: list[bytearray] = []


def float32_array(size: int) -> np.ndarray:
    """Return an array of so many numbers, of any content.

    Its memory serves again when neither it nor anything that stands on it is left.

    Examples
    --------
    >>> float32_array(3).shape
    (3,)
    """
    fitting = [block for block in _free if 4 * size <= len(block) <= 8 * size]
    try:
        block = fitting[0]
        _free.remove(block)  # of two threads that want it, one gets it
    except (IndexError, ValueError):
        block = bytearray(4 * size)
    lease = (ctypes.c_char * (4 * size)).from_buffer(block)
    # Views, tensors and slices all hold the lease, and nobody else does.
    weakref.finalize(lease, _take_back, block).atexit = False
    return np.frombuffer(memoryview(lease), np.float32)


def _take_back(block: bytearray) -> None:
    _free.append(block)
    del _free[:-KEPT]
