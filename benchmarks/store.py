"""Stored results of long runs, one JSON line each: a killed run resumes where it stopped.

Each line is appended in one write, so several processes may share a file.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent / "results"


def recall(run: str) -> dict[str, dict]:
    """Return all stored results of a run by key, ignoring lines that a kill cut short."""
    path = FOLDER / f"{run}.jsonl"
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        found[entry.pop("key")] = entry
    return found


def remember(run: str, key: str, compute: Callable[[], dict]) -> dict:
    """Return the stored result, or compute it and store it."""
    stored = recall(run)
    if key in stored:
        return stored[key]
    return append(run, key, compute())


def append(run: str, key: str, result: dict) -> dict:
    """Store a result of which it is known that it is missing, and return it."""
    FOLDER.mkdir(exist_ok=True)
    line = (
        "\n" + json.dumps({"key": key, **result}) + "\n"
    )  # the first line break ends a line cut short
    descriptor = os.open(FOLDER / f"{run}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
    return result
