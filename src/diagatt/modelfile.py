"""A safetensors file with a checksum: tensors and a JSON document, written whole or not at all.

The metadata contain a SHA-256 over every byte of the file (with zeros in place of the digest
itself), so that a truncation or a flipped bit is found before any tensor is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from diagatt.files import as_path, write_atomically

_BLANK = "0" * 64


# Documents have a few levels of nesting, blends of blends a few more. Python's own limit depends on
# the depth of the caller.
_DEEPEST = 60


class ModelFileError(ValueError):
    """The file is not a diagatt file, is damaged, or comes from a newer version."""


def write(path: str | os.PathLike, tensors: dict[str, np.ndarray], document: dict) -> None:
    """Write tensors and a JSON document atomically: temporary file, fsync, rename.

    A process that is killed at any moment leaves the old file or the new one. Temporary files
    that killed writers left next to it are removed. Equal contents make equal files.
    """
    path = as_path(path)
    metadata = {"diagatt": json.dumps(document, sort_keys=True), "sha256": _BLANK}
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    blank = _with_sorted_metadata(save_tensors(arrays, metadata))
    digest = hashlib.sha256(blank).hexdigest()
    write_atomically(path, _swap(blank, _BLANK, digest))


def read(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read and verify a file that `write` wrote."""
    path = as_path(path)
    try:
        if path.is_dir():
            raise ModelFileError(f"{path} is a folder, not a model file.")
        if path.exists() and not path.is_file():
            raise ModelFileError(f"{path} is not a file: a pipe or a device cannot hold a model.")
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except OSError as error:
        raise type(error)(f"{path} cannot be read: {error.strerror}.") from None
    return parse(content, path)


def parse(content: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Verify the bytes of a file and return its contents; `path` is used in messages."""
    digest = _stored_digest(path, content)
    if hashlib.sha256(_swap(content, digest, _BLANK)).hexdigest() != digest:
        raise ModelFileError(f"{path} is damaged: its checksum does not match; restore a copy.")
    try:
        tensors, document = load_tensors(content), _parse_json(_metadata(content)["diagatt"])
    except KeyError as error:
        raise ModelFileError(f"{path} is not a diagatt file: it lacks {error}.") from error
    except (SafetensorError, ValueError, TypeError, AttributeError, MemoryError) as error:
        words = str(error).rstrip(".") or type(error).__name__
        raise ModelFileError(f"{path} is not a diagatt file: {words}.") from error
    if not isinstance(document, dict):
        raise ModelFileError(f"{path} is not a diagatt file: its document is not a JSON object.")
    return tensors, document


def _with_sorted_metadata(content: bytes) -> bytes:
    """Sort the metadata of the header: safetensors orders them anew in each call."""
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of eight bytes
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


def _swap(content: bytes, old: str, new: str) -> bytes:
    """Replace the digest; quotes in the JSON document are escaped, so its place is unique."""
    place = '"sha256":"{}"'.format
    return content.replace(place(old).encode(), place(new).encode(), 1)


def _metadata(content: bytes) -> dict[str, str]:
    (length,) = struct.unpack_from("<Q", content)
    if length > len(content) - 8:
        raise ValueError("the header is longer than the file")
    return _parse_json(content[8 : 8 + length].decode("utf-8"))["__metadata__"]


def _parse_json(text: str) -> Any:
    """Return what the text says; refuse two entries of one name, and very deep nesting."""
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    level, depth = [value], 0
    while level := [item for part in level for item in _items(part)]:
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(f"its JSON is nested more than {_DEEPEST} levels deep")
    return value


def _items(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"its JSON has two entries {twice[:100]!r}")
    return found


def _stored_digest(path: Path, content: bytes) -> str:
    try:
        digest = _metadata(content)["sha256"]
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(
            f"{path} is not a readable diagatt file (truncated, damaged, foreign): restore a copy."
        ) from error
    if not isinstance(digest, str) or len(digest) != 64:
        raise ModelFileError(f"{path} is damaged: its checksum is unreadable; restore a copy.")
    return digest
