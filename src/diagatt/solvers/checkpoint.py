"""Training state on disk: resume after an interruption, bit for bit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from diagatt import modelfile

if TYPE_CHECKING:
    from diagatt.solvers.adam import AdamRun


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds a run's parameters, Adam's moments, the random state and the history.

    Parameters
    ----------
    path : Path
    every : int
        Epochs between two writes; the last epoch is always written.
    """

    path: Path
    every: int = 1

    def keep(self, run: AdamRun, epoch: int) -> None:
        """Write the state after an epoch, if it is due."""
        if epoch % self.every and epoch != run.settings.max_epochs:
            return
        tensors = {f"module.{k}": v for k, v in run.module.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in run.best.items()}
        for number, state in run.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{k}": v for k, v in state.items()}
        tensors["generator"] = run.generator.get_state()
        arrays = {k: v.detach().cpu().numpy() for k, v in tensors.items()}
        document = {"kind": "checkpoint", "history": run.history, "of": fingerprint(run)}
        modelfile.write(self.path, arrays, document)

    def restore(self, run: AdamRun) -> None:
        """Continue from the file if there is one; refuse one of other data or settings."""
        if not self.path.exists():
            return
        arrays, document = modelfile.read(self.path)
        if document.get("kind") != "checkpoint" or document["of"] != fingerprint(run):
            raise modelfile.ModelFileError(
                f"{self.path} is the checkpoint of other data or other settings: "
                "delete it, or name another file."
            )
        tensors = {k: torch.from_numpy(v.copy()) for k, v in arrays.items()}
        run.module.load_state_dict(_under("module.", tensors))
        run.best = _under("best.", tensors)
        state: dict[int, dict[str, Any]] = {}
        for name, tensor in _under("adam.", tensors).items():
            number, key = name.split(".", 1)
            state.setdefault(int(number), {})[key] = tensor
        groups = run.optimizer.state_dict()["param_groups"]
        run.optimizer.load_state_dict({"state": state, "param_groups": groups})
        run.generator.set_state(tensors["generator"])
        run.history = document["history"]


def fingerprint(run: AdamRun) -> str:
    """Digest of what a run depends on: settings, seed, responses and a sample of rows."""
    settings = asdict(replace(run.settings, max_epochs=0, verbose=False))
    shapes = {k: list(v.shape) for k, v in run.module.state_dict().items()}
    names = ("temperature", "score_form", "coupling", "value_bound", "score_bound")
    model = {name: getattr(run.module, name) for name in names}
    problem = run.problem
    parts = [settings, shapes, model, problem.family.name, run.seed]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    stride = max(1, len(problem.values) // 1000)
    rows = problem.values[::stride]
    for tensor in (problem.offsets, problem.y, problem.weights, problem.covariates, rows):
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
