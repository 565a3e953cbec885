"""Mini-batch training as in the paper (supplement S7.1): Adam."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.progress import progress_bar
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.problem import Problem
from diagatt.solvers.training import GradientSettings, check_finite, entry, risk


class AdamRun:
    """One training run: everything that must survive an interruption is an attribute."""

    def __init__(
        self,
        module: DiagonalAttention,
        problem: Problem,
        settings: GradientSettings,
        seed: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.module, self.settings, self.checkpoint = module, settings, checkpoint
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)
        self.held_out: Problem | None = None
        if settings.validation_fraction > 0:
            order = torch.randperm(problem.n_samples, generator=self.generator)
            cut = max(1, round(settings.validation_fraction * problem.n_samples))
            if cut >= problem.n_samples:
                raise ValueError("validation_fraction leaves no sample to train on: lower it.")
            order = order.to(problem.y.device)
            self.held_out, problem = problem.take(order[:cut]), problem.take(order[cut:])
        self.problem = problem
        self.mean_weight = problem.weights.mean()
        self.optimizer = torch.optim.Adam(module.parameters(), lr=settings.learning_rate)
        self.history: list[dict[str, float]] = []
        self.best: dict[str, Tensor] = {}

    def run(self) -> list[dict[str, float]]:
        """Train to the last epoch, or until the held-out loss stops falling."""
        if self.checkpoint is not None:
            self.checkpoint.restore(self)
        done = len(self.history)
        with progress_bar("Adam", self.settings.max_epochs, self.settings.verbose) as advance:
            advance(steps=done)
            for epoch in range(done + 1, self.settings.max_epochs + 1):
                if self.is_past_patience():
                    break
                self.history.append(self.run_epoch(epoch))
                advance(f"loss {self.history[-1]['loss']:.4g}")
                if self.checkpoint is not None:
                    self.checkpoint.keep(self, epoch)
        if self.best:
            self.module.load_state_dict(self.best)
        return self.history

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Visit every sample once."""
        problem, settings = self.problem, self.settings
        order = torch.randperm(problem.n_samples, generator=self.generator)
        size = problem.n_samples if settings.batch_size is None else settings.batch_size
        total = problem.weights.new_zeros(())
        for samples in order.to(problem.y.device).split(size):
            batch = problem.take(samples)
            if settings.row_dropout > 0:
                batch = batch.drop_rows(settings.row_dropout, self.generator)
            total += self.step(batch)
        loss = float(total / problem.weights.sum())
        check_finite(loss, epoch)
        if self.held_out is None:
            return entry(epoch, loss)
        validation_loss = risk(self.module, self.held_out)
        if not self.best or validation_loss < min(h["validation_loss"] for h in self.history):
            self.best = {k: v.detach().clone() for k, v in self.module.state_dict().items()}
        return entry(epoch, loss, validation_loss)

    def step(self, batch: Problem) -> Tensor:
        """One step of Adam; returns the summed loss of the batch."""
        z = self.module(batch.values, batch.offsets, batch.covariates)
        loss = (batch.weights * batch.family.loss(batch.y, z)).sum()
        # Over the expected weight of a batch, not its own: every sample counts by its weight alone.
        mean = loss / (batch.n_samples * self.mean_weight)
        penalty = self.settings.penalty(self.module, self.problem)
        self.optimizer.zero_grad()
        (mean + penalty).backward()
        self.optimizer.step()
        self.module.project_()
        return loss.detach()

    def is_past_patience(self) -> bool:
        """Whether the held-out loss has not fallen for `patience` epochs."""
        if self.held_out is None or not self.history:
            return False
        losses = [h["validation_loss"] for h in self.history]
        return len(losses) - 1 - int(np.argmin(losses)) >= self.settings.patience
