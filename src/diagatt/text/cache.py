"""Embedded texts on disk: each model and setting has a folder, each call adds shards to it.

A shard is one checksummed safetensors file (`diagatt.modelfile`), written whole or not at all, so
that a killed process leaves no half shard and several processes may share a folder. A damaged
shard is removed and its texts are embedded anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from diagatt import modelfile

# Texts in a shard: few enough to read one for the sake of a few texts, enough to keep files few.
SHARD_TEXTS = 1024
FORMAT_VERSION = 1

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Embedded:
    """Rows of one text: vectors (p, d), character spans (p, 2), pieces cut off at the end."""

    vectors: np.ndarray
    spans: np.ndarray
    n_cut: int = 0


def text_key(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).digest()


class EmbeddingCache:
    """A folder of embedded texts of one model and one way to make rows.

    Parameters
    ----------
    folder : path
        Shared by all models; each gets a folder inside, named by the hash of `setting`.
    setting : dict
        Everything but the text that decides the rows: the model's fingerprint, layers, merging.
    """

    def __init__(self, folder: Any, setting: dict[str, Any]) -> None:
        document = json.dumps({**setting, "format": FORMAT_VERSION}, sort_keys=True)
        name = hashlib.sha256(document.encode()).hexdigest()[:32]
        self.folder = Path(folder).expanduser() / name

    def load(self, keys: list[bytes]) -> dict[bytes, Embedded]:
        """Those of the texts that are stored; only shards that hold one are read."""
        wanted, found = set(keys), {}
        for path in sorted(self.folder.glob("*.safetensors")):
            if not wanted:
                break
            if wanted.isdisjoint(_stored_keys(path)):
                continue
            for key, embedded in _read_shard(path, wanted).items():
                found[key] = embedded
                wanted.discard(key)
        return found

    def store(self, new: dict[bytes, Embedded]) -> None:
        """Add texts, in shards of `SHARD_TEXTS`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        items = list(new.items())
        for start in range(0, len(items), SHARD_TEXTS):
            _write_shard(
                self.folder / f"{secrets.token_hex(8)}.safetensors",
                dict(items[start : start + SHARD_TEXTS]),
            )


def _write_shard(path: Path, items: dict[bytes, Embedded]) -> None:
    rows = list(items.values())
    tensors = {
        "keys": np.frombuffer(b"".join(items), dtype=np.uint8).reshape(-1, 32),
        "lengths": np.array([len(r.vectors) for r in rows]),
        "cut": np.array([r.n_cut for r in rows]),
        "vectors": np.concatenate([r.vectors for r in rows]),
        "spans": np.concatenate([r.spans for r in rows]),
    }
    modelfile.write(path, tensors, {"kind": "embedded texts", "format": FORMAT_VERSION})


def _stored_keys(path: Path) -> list[bytes]:
    """Keys in a shard, without reading or verifying the rest of it."""
    try:
        with safe_open(path, framework="numpy") as shard:
            return [key.tobytes() for key in shard.get_tensor("keys")]
    except (SafetensorError, OSError) as error:
        _discard(path, error)
        return []


def _read_shard(path: Path, wanted: set[bytes]) -> dict[bytes, Embedded]:
    try:
        tensors, _ = modelfile.read(path)
    except (modelfile.ModelFileError, OSError) as error:
        _discard(path, error)
        return {}
    ends = np.cumsum(tensors["lengths"])
    found = {}
    for i, key in enumerate(tensors["keys"]):
        if key.tobytes() in wanted:
            rows = slice(int(ends[i] - tensors["lengths"][i]), int(ends[i]))
            found[key.tobytes()] = Embedded(
                tensors["vectors"][rows], tensors["spans"][rows], int(tensors["cut"][i])
            )
    return found


def _discard(path: Path, error: Exception) -> None:
    logger.warning("removed a damaged file of the embedding cache, %s: %s", path, error)
    path.unlink(missing_ok=True)
