"""Embedded texts on disk: one SQLite table, shared by models, settings and processes.

Every transaction is written completely or not at all. A damaged entry is embedded again; a damaged
file is renamed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILE = "embedded-texts.sqlite"
WAIT = 600.0  # seconds for another process to finish writing
_TABLE = "create table if not exists texts (key blob primary key, cut integer, vectors, spans, sum)"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Embedded:
    """Rows of one text: vectors (p, d), character spans (p, 2), pieces dropped at its end."""

    vectors: np.ndarray
    spans: np.ndarray
    n_cut: int = 0


class EmbeddingCache:
    """Embedded texts in a folder; `setting` is everything but the text that determines the rows."""

    def __init__(self, folder: Any, setting: dict[str, Any]) -> None:
        self.path = Path(folder).expanduser() / FILE
        self._setting = json.dumps(setting, sort_keys=True).encode()

    def load(self, texts: Iterable[str]) -> dict[str, Embedded]:
        """Return the stored rows of the texts; texts that are not stored are left out."""
        ask, found = "select cut, vectors, spans, sum from texts where key = ?", {}
        with self._connected() as database:
            database.execute(_TABLE)
            for text in texts:
                line = database.execute(ask, [self._key(text)]).fetchone()
                if line is None:
                    continue
                if line[3] != _checksum(*line[:3]):
                    logger.warning("%s holds a damaged text, which is embedded anew.", self.path)
                    continue
                spans = np.frombuffer(line[2], "<i8").reshape(-1, 2)
                vectors = np.frombuffer(line[1], "<f4").reshape(len(spans), -1)
                found[text] = Embedded(vectors.copy(), spans, line[0])
        return found

    def store(self, new: Mapping[str, Embedded]) -> None:
        """Add texts in one transaction."""
        with self._connected() as database, database:
            database.execute(_TABLE)
            for text, own in new.items():
                blobs = own.vectors.astype("<f4").tobytes(), own.spans.astype("<i8").tobytes()
                line = self._key(text), own.n_cut, *blobs, _checksum(own.n_cut, *blobs)
                database.execute("insert or replace into texts values (?, ?, ?, ?, ?)", line)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(self._setting + b"\0" + text.encode()).digest()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Open the file; one that turns out to be damaged is renamed, and nothing is found."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=WAIT)
        try:
            yield database
        except sqlite3.OperationalError:  # locked, full, read-only: not damaged
            raise
        except sqlite3.DatabaseError as error:
            aside = self.path.with_name(f"{FILE}.damaged")
            logger.warning("%s is damaged (%s) and was renamed to %s.", self.path, error, aside)
            with suppress(FileNotFoundError):  # another process was first
                self.path.replace(aside)
        finally:
            database.close()


def _checksum(cut: int, vectors: bytes, spans: bytes) -> bytes:
    return hashlib.blake2b(b"".join([cut.to_bytes(8), vectors, spans]), digest_size=16).digest()
