"""HDF5 files, in which cells and slides are stored."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

READERS = ("h5py", "anndata", "scipy")


@contextmanager
def open_hdf5(path: Path, extra: str) -> Iterator[Any]:
    """Open a file for reading; `extra` is the optional dependency that brings h5py.

    Parts of a file are read when they are needed: an error of the reader inside the block is about
    the file, and names it.
    """
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
        file = h5py.File(path, "r")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "truncated, damaged or foreign"
        raise ValueError(f"{path} is not a readable HDF5 file: {reason}.") from error
    with file:
        try:
            yield file
        except Exception as error:
            if not _is_of_a_reader(error):
                raise
            raise ValueError(
                f"{path} is damaged: a part of it cannot be read. Restore a copy of it."
            ) from error


def _is_of_a_reader(error: Exception) -> bool:
    """Return whether one of the libraries that read files has raised an error."""
    place = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    return any(reader in place.parts for reader in READERS)
