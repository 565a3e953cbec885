"""What a command may write: decided before any work, so that no file of the user is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from diagatt.files import check_place, version


@contextmanager
def writing(
    path: Path | None,
    reads: Mapping[str, Path],
    *,
    option: str = "--output",
    overwrite: bool = False,
    folder: bool = False,
    resumes: bool = False,
) -> Iterator[None]:
    """Check an output before the block that writes it, and say what an interrupt left of it.

    The parameters are those of `check`; None stands for no output.
    """
    if path is not None:
        check(path, reads, option=option, overwrite=overwrite, folder=folder, resumes=resumes)
    before = None if path is None else version(path)
    try:
        yield
    except KeyboardInterrupt:
        if path is None:
            said = "."
        elif resumes:
            said = f": {path} keeps what is done, and the same command continues."
        elif version(path) != before:
            said = f" after {path} was written."
        else:
            said = f": {path} was not written."
        raise InterruptedError(f"interrupted{said}") from None


def check(
    path: Path,
    reads: Mapping[str, Path],
    *,
    option: str = "--output",
    overwrite: bool = False,
    folder: bool = False,
    resumes: bool = False,
) -> None:
    """Refuse an output that is an input, exists already or cannot be written.

    Parameters
    ----------
    path : Path
        The output.
    reads : mapping of str to Path
        What the command reads, by its name on the command line.
    option : str
        The output's name on the command line.
    overwrite : bool
        Whether an existing output may be replaced.
    folder : bool
        Whether the output is a folder.
    resumes : bool
        Whether the command continues with what it finds there, and decides itself whether it may.
    """
    if str(path) == "-":  # elsewhere this means stdout
        raise ValueError(f"{option} - is no name of a {'folder' if folder else 'file'}: give one.")
    for name, read in reads.items():
        if _are_same(path, read):
            raise ValueError(f"{option} {path} is the same as {name} {read}: name another path.")
        if read.is_dir() and _lies_in(path, read):
            raise ValueError(f"{option} {path} lies in {name} {read}: name a path outside it.")
        if folder and _lies_in(read, path):
            raise ValueError(f"{option} {path} contains {name} {read}: name another folder.")
    if os.path.lexists(path):
        wanted = "folder" if folder else "file"
        right = path.is_dir() if folder else path.is_file()
        if path.exists() and not right:
            raise ValueError(f"{option} {path} is not a {wanted}: name another path.")
        if not (overwrite or resumes):
            raise FileExistsError(
                f"{option} {path} exists: pass --overwrite to replace it, or name another {wanted}."
            )
    check_place(path, makes_parents=folder and resumes)


def _are_same(path: Path, other: Path) -> bool:
    """Compare what two spellings lead to, also through symbolic and hard links."""
    try:
        return os.path.samefile(path, other)
    except OSError:  # one of them is not there
        return os.path.realpath(path) == os.path.realpath(other)


def _lies_in(path: Path, folder: Path) -> bool:
    return any(_are_same(parent, folder) for parent in Path(os.path.realpath(path)).parents)
