"""EM's state on disk: a fit of a large store goes on where it was interrupted."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from torch import Tensor

from diagatt.solvers.checkpoint import Checkpoint, fingerprint, under
from diagatt.solvers.likelihood import EMState, LatentRows, LikelihoodSettings
from diagatt.solvers.stored import AnyProblem


@dataclass(frozen=True)
class Diary:
    """The checkpoint of one run of EM.

    The E-step of the best model is not kept: if it is needed, it is repeated.
    """

    checkpoint: Checkpoint
    problem: AnyProblem
    settings: LikelihoodSettings
    n_heads: int
    seed: int

    def _of(self) -> str:
        settings = asdict(replace(self.settings, verbose=False))
        return fingerprint(self.problem, settings, self.n_heads, self.seed)

    def read(self) -> EMState | None:
        """Return the state that was written last, if any."""
        found = self.checkpoint.read(self._of(), self.problem.group)
        if found is None:
            return None
        tensors, document = found
        tensors = {k: v.to(self.problem.device) for k, v in tensors.items()}
        kept = under("kept.", tensors)
        return EMState(
            LatentRows.of(under("model.", tensors)),
            schedule=[],
            kept=LatentRows.of(kept) if kept else None,
            **document["em"],
        )

    def write(self, now: EMState) -> None:
        """Keep the state, if it is due."""
        if len(now.history) % self.checkpoint.every and not now.is_done:
            return
        tensors: dict[str, Tensor] = {f"model.{k}": v for k, v in now.model.tensors().items()}
        if now.kept is not None:
            tensors |= {f"kept.{k}": v for k, v in now.kept.tensors().items()}
        names = ("step", "best", "last", "is_done", "history")
        document = {"em": {name: getattr(now, name) for name in names}}
        self.checkpoint.write(self._of(), tensors, document, self.problem.group)
