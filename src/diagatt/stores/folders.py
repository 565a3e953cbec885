"""A folder that is whole or not there."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from diagatt.files import name_beside, remove_strays, strays, sync_folder
from diagatt.stores.manifest import MANIFEST, StoreError


def begin_folder(path: Path, overwrite: bool) -> Path:
    """Make a hidden folder beside the target, after cleaning up behind killed writers."""
    if not path.parent.is_dir():
        raise StoreError(f"{path.parent} does not exist: make this folder first.")
    for old in strays(path, "old"):
        if path.exists():
            _discard(old, path)
        else:  # its writer was killed between the two renames of `place_folder`
            os.rename(old, path)
    remove_strays(path)
    _check_target(path, overwrite)
    folder = name_beside(path)
    folder.mkdir()
    return folder


def place_folder(folder: Path, path: Path, overwrite: bool) -> None:
    """Give a whole folder its name; a store that has it is removed afterwards."""
    _check_target(path, overwrite)
    if path.exists():
        old = name_beside(path, "old")
        os.rename(path, old)
        try:
            os.rename(folder, path)
        except BaseException:
            os.rename(old, path)
            raise
        _discard(old, path)
    else:
        os.rename(folder, path)
    sync_folder(path.parent)


def _discard(old: Path, path: Path) -> None:
    """Delete a replaced store; first it loses its name, so that no half of it is restored."""
    doomed = name_beside(path)
    os.rename(old, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def not_written(what: str, folder: Path, error: OSError) -> StoreError:
    """Say that a file has no room, or why else it cannot be written."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        reason = f"there is no room ({reason}); free some or choose another folder"
    return StoreError(f"{what} cannot be written to {folder}: {reason}. Nothing was left behind.")


def _check_target(path: Path, overwrite: bool) -> None:
    """Refuse to replace what is there unasked, or what is not only a store."""
    if not path.exists():
        return
    if not overwrite:
        raise StoreError(
            f"{path} exists: pass overwrite=True to replace a store, or choose another path."
        )
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    if MANIFEST not in names or any(not n.endswith(".arrow") for n in names - {MANIFEST}):
        raise StoreError(
            f"{path} is not a row store, or holds other files too, and is not replaced: choose "
            "another path."
        )
