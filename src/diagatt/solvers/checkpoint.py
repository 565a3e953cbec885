"""Training state on disk: resume after an interruption with the result of an undisturbed run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diagatt import modelfile
from diagatt.solvers.problem import Problem


@dataclass(frozen=True)
class Checkpoint(os.PathLike):
    """A file with the state from which an interrupted run continues.

    Parameters
    ----------
    path : path-like
    every : int
        Passes over the data between two writes.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor
    >>> DiagAttRegressor(checkpoint=Checkpoint("state.safetensors", every=5)).checkpoint.every
    5
    """

    path: str | os.PathLike
    every: int = 1

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    @classmethod
    def of(cls, given: Any) -> Checkpoint | None:
        """Return the checkpoint of a path; None stays None."""
        return given if given is None or isinstance(given, cls) else cls(given)

    def of_restart(self, index: int) -> Checkpoint:
        """Return the checkpoint of a later restart, which has its index in the file's name."""
        path = Path(self.path)
        name = f"{path.stem}-{index}{path.suffix}"
        return Checkpoint(path.with_name(name) if index else path, self.every)


class RunState:
    """The state of one run in its checkpoint's file, tied to data and settings by a fingerprint.

    With several processes, the first one writes and reads the file and sends it to the others.

    Parameters
    ----------
    checkpoint : Checkpoint
    problem : Problem
    *settings
        Whatever else the result depends on, as JSON can hold it.

    Attributes
    ----------
    notes : dict
        Report of the start of the run, kept with every state because a resumed run has no start.
    """

    def __init__(self, checkpoint: Checkpoint, problem: Problem, *settings: Any) -> None:
        self.path, self.every = Path(checkpoint.path), checkpoint.every
        self.group = problem.group
        content = json.dumps([problem.family.label, *settings], sort_keys=True)
        digest = hashlib.sha256(content.encode())
        digest.update(problem.digest())
        self.fingerprint = digest.hexdigest()
        self.notes: dict[str, Any] = {}

    def is_due(self, passes: int, last: bool = False) -> bool:
        """Return whether the state is to be written after this pass."""
        return last or passes % self.every == 0

    def write(self, tensors: dict[str, Tensor], document: dict[str, Any]) -> None:
        """Write the state atomically."""
        if self.group.rank == 0:
            arrays = {k: v.detach().cpu().numpy() for k, v in tensors.items()}
            header = {"kind": "checkpoint", "of": self.fingerprint, "notes": self.notes}
            modelfile.write(self.path, arrays, header | document)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the state that was written last, if any; refuse the file of another run.

        The file's time of writing becomes now, as a sign that a run uses it.
        """
        here = self.group.rank == 0 and self.path.exists()
        content = self.group.share(self.path.read_bytes() if here else None)
        if content is None:
            return None
        arrays, document = modelfile.parse(content, self.path)
        if document.get("kind") != "checkpoint" or document.get("of") != self.fingerprint:
            raise modelfile.ModelFileError(
                f"{self.path} is the checkpoint of other data or other settings: "
                "delete it, or name another file."
            )
        if here:
            os.utime(self.path)
        self.notes = document.get("notes", {})
        return {k: torch.from_numpy(v.copy()) for k, v in arrays.items()}, document


def with_prefix(prefix: str, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors whose names have this prefix, by the rest of their names."""
    return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
