"""Files that are whole or not there."""

from __future__ import annotations

import os
import secrets
from glob import escape
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: temporary file, fsync, rename.

    A process killed at any moment leaves the old file or the new one. Temporary files that killed
    writers left beside it are removed.
    """
    _remove_strays(path)
    temporary = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
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
    if os.name == "posix":  # the rename itself must reach the disk
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _remove_strays(path: Path) -> None:
    """Delete temporary files of this target whose writer no longer runs."""
    for stray in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        writer = stray.name[len(path.name) + 2 :].split(".")[0]
        if writer.isdigit() and not _is_running(int(writer)):
            stray.unlink(missing_ok=True)


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
