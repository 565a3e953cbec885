"""Results of long runs, one small JSON file each: a killed run resumes where it stopped."""

import json
import os
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent / ".store"


def remember(run: str, key: str, compute: Callable[[], dict]) -> dict:
    """Return the stored result, or compute it and store it atomically."""
    path = FOLDER / run / f"{key}.json"
    if path.exists():
        return json.loads(path.read_text())
    result = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(result))
    os.replace(temporary, path)
    return result


def recall(run: str, key: str) -> dict | None:
    """Return the stored result, if there is one."""
    path = FOLDER / run / f"{key}.json"
    return json.loads(path.read_text()) if path.exists() else None
