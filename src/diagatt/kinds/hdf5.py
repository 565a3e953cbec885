"""HDF5 files, in which cells and slides are stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def open_hdf5(path: Path, extra: str) -> Any:
    """Open a file for reading; `extra` is the optional dependency that brings h5py."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f"reading {path.suffix} files needs h5py: pip install 'diagatt[{extra}]'."
        ) from error
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise ValueError(f"{path} is not a readable HDF5 file: it is a folder.")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "truncated, damaged or foreign"
        raise ValueError(f"{path} is not a readable HDF5 file: {reason}.") from error
