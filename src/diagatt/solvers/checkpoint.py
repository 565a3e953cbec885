"""Training state on disk: resume after an interruption with the result of an undisturbed run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diagatt import modelfile
from diagatt.distributed import Group
from diagatt.solvers.stored import AnyProblem


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds all that a run needs to go on.

    Of several processes the first writes and reads it, and tells the others.

    Parameters
    ----------
    path : Path
    every : int
        Passes over the data between two writes.
    """

    path: Path
    every: int = 1

    def write(self, of: str, tensors: dict[str, Tensor], document: dict, group: Group) -> None:
        """Write the state of the run whose `fingerprint` is `of`, whole or not at all."""
        if group.rank == 0:
            arrays = {k: v.detach().cpu().numpy() for k, v in tensors.items()}
            modelfile.write(self.path, arrays, {"kind": "checkpoint", "of": of, **document})

    def read(self, of: str, group: Group) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """What was written last, if anything; refuse the file of other data or settings."""
        here = group.rank == 0 and self.path.exists()
        content = group.share(self.path.read_bytes() if here else None)
        if content is None:
            return None
        arrays, document = modelfile.parse(content, self.path)
        if document.get("kind") != "checkpoint" or document["of"] != of:
            raise modelfile.ModelFileError(
                f"{self.path} is the checkpoint of other data or other settings: "
                "delete it, or name another file."
            )
        return {k: torch.from_numpy(v.copy()) for k, v in arrays.items()}, document


def fingerprint(problem: AnyProblem, *parts: Any) -> str:
    """Digest of what a run depends on: its data, and whatever else JSON can hold."""
    digest = hashlib.sha256(json.dumps([problem.family.name, *parts], sort_keys=True).encode())
    digest.update(problem.digest())
    return digest.hexdigest()


def under(prefix: str, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors whose names begin so, without it."""
    return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
