"""Freed memory goes back to the system."""

import platform
from pathlib import Path

import numpy as np
import pytest

from diagatt.kinds.memory import give_back

STATUS = Path("/proc/self/status")


def resident_mib():
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) / 1024


@pytest.mark.skipif(
    not STATUS.exists() or platform.libc_ver()[0] != "glibc", reason="other allocators keep more"
)
def test_holes_between_arrays_are_given_back():
    arrays = [np.ones(8192) for _ in range(2048)]  # 128 MiB in pieces that are not mapped
    kept = arrays[::64]
    del arrays
    before = resident_mib()
    give_back()
    assert resident_mib() < before - 64
    assert all((one == 1).all() for one in kept)
