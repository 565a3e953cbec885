"""Files and folders that are whole or not there."""

from __future__ import annotations

import os
import secrets
import shutil
from glob import escape
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: temporary file, fsync, rename.

    A process killed at any moment leaves the old file or the new one. Temporary files that killed
    writers left beside it are removed.
    """
    remove_strays(path)
    temporary = name_beside(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def name_beside(path: Path, ending: str = "tmp") -> Path:
    """Return a hidden name in the same folder that tells which process writes there."""
    return path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.{ending}"


def remove_strays(path: Path) -> None:
    """Delete temporary files and folders of this target whose writer no longer runs."""
    for stray in strays(path):
        if stray.is_dir():
            shutil.rmtree(stray, ignore_errors=True)
        else:
            stray.unlink(missing_ok=True)


def strays(path: Path, ending: str = "tmp") -> list[Path]:
    """Names of `name_beside` whose writer no longer runs."""
    found = []
    for stray in path.parent.glob(f".{escape(path.name)}.*.{ending}"):
        writer, *rest = stray.name[len(path.name) + 2 :].split(".")
        own = len(rest) == 2  # a longer name belongs to another target, "a.7" and not "a"
        if own and writer.isdigit() and not _is_running(int(writer)):
            found.append(stray)
    return found


def sync_folder(folder: Path) -> None:
    """Bring renames in a folder to the disk."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is not harmless
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
