"""Data frames in R's lazy-load databases, ``Rdata.rdb`` with its index ``Rdata.rdx``.

The index names the offset and length of every object's record. A record is four bytes with the
length of its content, then the content compressed by zlib, or a letter ("2" or "Z") and the
content compressed by bz2 or lzma.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import warnings
import zlib
from pathlib import Path
from typing import Any

from diagatt.datasets.packaged import imported


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
        return lzma.decompress(body[1:])
    return zlib.decompress(body)


def _inflate(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else zlib.decompress(content)


def _parse(content: bytes, what: str) -> Any:
    rdata = imported("rdata", "rdata", what)
    with warnings.catch_warnings():  # R classes that rdata does not know are what they are made of
        warnings.simplefilter("ignore")
        return rdata.conversion.convert(rdata.parser.parse_data(content))
