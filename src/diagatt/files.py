"""Files and folders that are written completely or not at all.

Only what a writer of this module made is deleted: temporary files and folders, recognized by their
hidden names, and folders that `place_folder` was asked to replace.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from contextlib import suppress
from glob import escape
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: temporary file, fsync, rename.

    A process killed at any moment leaves the old file or the new one. Temporary files that killed
    writers left beside it are removed. Only files are replaced: folders, pipes and devices, such as
    the null device, are refused.
    """
    named, path = path, Path(os.path.realpath(path))  # a link stays one: what it names is written
    if os.path.lexists(path) and not os.path.isfile(path):  # a device would become a file
        raise ValueError(f"{named} is not a file: name another path.")
    remove_strays(path)
    temporary = _name_beside(path)
    try:
        # The mode "x" never opens what is there; an interrupt at any point finds the name known.
        with open(temporary, "xb") as file:
            if os.path.isfile(path):  # a private file stays private
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _not_written(named, error) from error
        raise
    sync_folder(path.parent)


def as_path(path: str | os.PathLike) -> Path:
    """Return a path that a user gave; refuse anything that cannot be a path."""
    if isinstance(path, bytes) or not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a string or a path, got {path!r:.60}.")
    if "\0" in os.fspath(path):
        raise ValueError(f"path must not hold a null character, got {os.fspath(path)!r}.")
    return Path(path)


def check_place(path: Path, makes_parents: bool = False) -> None:
    """Refuse a path at which nothing can be written, before work is done for it.

    With `makes_parents`, folders above it that are missing will be made.
    """
    folder = path.parent
    while makes_parents and not os.path.lexists(folder):
        folder = folder.parent
    if not os.path.lexists(folder):
        raise FileNotFoundError(f"{path} cannot be written: make the folder {folder} first.")
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"{path} cannot be written: {folder} is not a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written: {folder} is not writable.")
    try:
        os.lstat(_name_beside(path))
    except FileNotFoundError:  # as it should be
        pass
    except OSError as error:  # the name is too long, for example
        raise _not_written(path, error) from None


def version(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file is written anew; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def make_folder_beside(path: Path) -> Path:
    """Make a hidden folder in which the content of `path` is written before it is placed."""
    folder = _name_beside(path)
    folder.mkdir()
    return folder


def place_folder(folder: Path, path: Path) -> None:
    """Give a whole folder its name; a folder that has this name is deleted afterwards.

    The caller must know that every file in the old folder may go.
    """
    if path.exists():
        old = _name_beside(path, "old")
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


def clean_up_folder(path: Path) -> None:
    """Finish or undo what writers of this folder left behind when they were killed."""
    for old in _strays(path, "old"):
        if path.exists():
            _discard(old, path)
        else:  # its writer was killed between the two renames of `place_folder`
            os.rename(old, path)
    remove_strays(path)


def sync_folder(folder: Path) -> None:
    """Bring renames in a folder to the disk."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _not_written(path: Path, error: OSError) -> OSError:
    """Return the same error with a sentence that names the target, not the temporary file."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    said = type(error)(f"{path} cannot be written: {reason}.")
    said.errno = error.errno
    return said


def _name_beside(path: Path, ending: str = "tmp") -> Path:
    """Return a hidden name in the same folder that tells which process writes there."""
    return path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.{ending}"


def _strays(path: Path, ending: str = "tmp") -> list[Path]:
    """Return the names made by `_name_beside` whose writer no longer runs."""
    # Exactly those: ".a.7.…" belongs to a target "a.7", ".a.7.backup.tmp" does not.
    made = re.compile(rf"\.{re.escape(path.name)}\.([0-9]+)\.[0-9a-f]{{8}}\.{ending}")
    found = []
    for stray in path.parent.glob(f".{escape(path.name)}.*.{ending}"):
        match = made.fullmatch(stray.name)
        if match and not _is_running(int(match[1])):
            found.append(stray)
    return found


def remove_strays(path: Path) -> None:
    """Delete temporary files and folders of this target whose writer no longer runs."""
    for stray in _strays(path):
        if stray.is_dir():
            shutil.rmtree(stray, ignore_errors=True)
        else:
            stray.unlink(missing_ok=True)


def _discard(old: Path, path: Path) -> None:
    """Delete a replaced folder; first it loses its name, so that no half of it is restored."""
    doomed = _name_beside(path)
    os.rename(old, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is not harmless
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # a process of another user, or no process id
        pass
    return True
