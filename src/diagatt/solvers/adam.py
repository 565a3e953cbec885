"""Mini-batch training as in the paper (supplement S7.1): Adam."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.progress import progress_bar
from diagatt.solvers.checkpoint import Checkpoint, fingerprint, under
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.training import GradientSettings, check_finite, entry, risk


class AdamRun:
    """One training run: everything that must survive an interruption is an attribute."""

    def __init__(
        self,
        module: DiagonalAttention,
        problem: AnyProblem,
        settings: GradientSettings,
        seed: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.module, self.settings, self.checkpoint = module, settings, checkpoint
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)
        self.held_out: AnyProblem | None = None
        if settings.validation_fraction > 0:
            order = torch.randperm(problem.n_samples, generator=self.generator)
            cut = max(1, round(settings.validation_fraction * problem.n_samples))
            if cut >= problem.n_samples:
                raise ValueError("validation_fraction leaves no sample to train on: lower it.")
            order = order.to(problem.device)
            self.held_out, problem = problem.take(order[:cut]), problem.take(order[cut:])
        self.problem = problem
        self.mean_weight = problem.total_weight / problem.n_samples
        self.forward: torch.nn.Module = module
        if problem.group.size > 1:  # gradients become means over the processes
            self.forward = DistributedDataParallel(module)
        self.optimizer = torch.optim.Adam(module.parameters(), lr=settings.learning_rate)
        self.history: list[dict[str, float]] = []
        self.best: dict[str, Tensor] = {}

    def run(self) -> list[dict[str, float]]:
        """Train to the last epoch, or until the held-out loss stops falling."""
        if self.checkpoint is not None:
            found = self.checkpoint.read(self.fingerprint(), self.problem.group)
            if found is not None:
                self.restore(*found)
        done = len(self.history)
        with progress_bar("Adam", self.settings.max_epochs, self.settings.verbose) as advance:
            advance(steps=done)
            for epoch in range(done + 1, self.settings.max_epochs + 1):
                if self.is_past_patience():
                    break
                self.history.append(self.run_epoch(epoch))
                advance(f"loss {self.history[-1]['loss']:.4g}")
                if self.checkpoint is not None and self.is_due(epoch):
                    self.checkpoint.write(self.fingerprint(), *self.state(), self.problem.group)
        if self.best:
            self.module.load_state_dict(self.best)
        return self.history

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Visit every sample once; with `value_dropout` once more, for the values alone."""
        problem, settings = self.problem, self.settings
        total = torch.zeros((), dtype=torch.float64, device=problem.device)
        size = settings.batch_size
        batches = problem.batches(size, settings.row_dropout, self.generator)
        if settings.value_dropout == 0:
            for batch, count in batches:
                total += self.step(batch, count)
        else:
            thinned = problem.batches(size, settings.value_dropout, self.generator)
            for (batch, count), (rest, rest_count) in zip(batches, thinned, strict=True):
                total += self.step(batch, count)
                self.step(rest, rest_count, keep_scores=True)
        (total,) = problem.group.add([total])
        loss = float(total) / problem.total_weight
        check_finite(loss, epoch)
        if self.held_out is None:
            return entry(epoch, loss)
        validation_loss = risk(self.module, self.held_out)
        if not self.best or validation_loss < min(h["validation_loss"] for h in self.history):
            self.best = {k: v.detach().clone() for k, v in self.module.state_dict().items()}
        return entry(epoch, loss, validation_loss)

    def step(self, batch: Problem, count: int, keep_scores: bool = False) -> Tensor:
        """One step of Adam on `count` samples of all processes; returns the summed loss of ours.

        With `keep_scores`, W stays as it is.
        """
        z = self.forward(batch.values, batch.offsets, batch.covariates)
        loss = (batch.weights * batch.family.loss(batch.y, z)).sum()
        # Over the expected weight of a batch, not its own: every sample counts by its weight alone.
        mean = loss * self.problem.group.size / (count * self.mean_weight)
        penalty = self.settings.penalty(self.module, self.problem)
        self.optimizer.zero_grad()
        (mean + penalty).backward()
        if keep_scores:
            for parameter in self.module.query_key.parameters():
                parameter.grad = None  # Adam passes it over
        self.optimizer.step()
        self.module.project_()
        return loss.detach()

    def is_past_patience(self) -> bool:
        """Whether the held-out loss has not fallen for `patience` epochs."""
        if self.held_out is None or not self.history:
            return False
        losses = [h["validation_loss"] for h in self.history]
        return len(losses) - 1 - int(np.argmin(losses)) >= self.settings.patience

    # ------------------------------------------------------------------ interruptions

    def is_due(self, epoch: int) -> bool:
        """Whether the state after this epoch is to be kept."""
        assert self.checkpoint is not None
        return epoch % self.checkpoint.every == 0 or epoch == self.settings.max_epochs

    def state(self) -> tuple[dict[str, Tensor], dict]:
        """Parameters, Adam's moments, the random state and the history."""
        tensors = {f"module.{k}": v for k, v in self.module.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{k}": v for k, v in state.items()}
        tensors["generator"] = self.generator.get_state()
        return tensors, {"history": self.history}

    def restore(self, tensors: dict[str, Tensor], document: dict) -> None:
        """Go on from a `state`."""
        self.module.load_state_dict(under("module.", tensors))
        self.best = under("best.", tensors)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under("adam.", tensors).items():
            number, key = name.split(".", 1)
            state.setdefault(int(number), {})[key] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.generator.set_state(tensors["generator"])
        self.history = document["history"]

    def fingerprint(self) -> str:
        """Digest of settings, shapes, seed and data."""
        settings = asdict(replace(self.settings, max_epochs=0, verbose=False))
        shapes = {k: list(v.shape) for k, v in self.module.state_dict().items()}
        names = ("temperature", "score_form", "coupling", "value_bound", "score_bound")
        model = {name: getattr(self.module, name) for name in names}
        return fingerprint(self.problem, settings, shapes, model, self.seed)
