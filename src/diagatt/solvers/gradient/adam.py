"""Mini-batch training by Adam, as in the paper (supplement S7.1), also with an encoder of rows."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.module import AttentionModule
from diagatt.progress import progress_bar
from diagatt.solvers.checkpoint import Checkpoint, RunState, with_prefix
from diagatt.solvers.gradient.train import (
    History,
    Training,
    backward,
    check_finite,
    entry,
    fit_values,
    risk,
    train_lbfgs,
)
from diagatt.solvers.problem import Problem, Samples


class AdamRun:
    """One training run, whose attributes hold everything that must survive an interruption.

    Parameters
    ----------
    module : AttentionModule
        Trained in place.
    problem : Problem
    how : Training
    seed : int
        Seeds batches, dropped rows and the choice of held-out samples.
    checkpoint : Checkpoint, optional
        Where the state is kept; training resumes from it bit for bit.
    described : dict, optional
        Settings of the module, which identify its checkpoint along with the parameters' shapes.
    """

    title: ClassVar[str] = "Adam"  # of the progress bar

    def __init__(
        self,
        module: AttentionModule,
        problem: Problem,
        how: Training,
        seed: int,
        checkpoint: Checkpoint | None = None,
        described: dict[str, Any] | None = None,
    ) -> None:
        self.module, self.how = module, how
        self.trained: nn.Module = module  # all that is trained, as one module
        self.generator = torch.Generator().manual_seed(seed)
        self.held_out: Problem | None = None
        if how.validation_fraction > 0:
            order = torch.randperm(problem.n_samples, generator=self.generator)
            cut = max(1, round(how.validation_fraction * problem.n_samples))
            if cut >= problem.n_samples:
                raise ValueError("validation_fraction leaves no sample to train on: lower it.")
            order = order.to(problem.device)
            self.held_out, problem = problem.take(order[:cut]), problem.take(order[cut:])
        self.problem = problem
        self.mean_weight = problem.total_weight / problem.n_samples
        self.optimizer = torch.optim.AdamW(
            module.parameters(), lr=how.learning_rate, weight_decay=0.0
        )
        self.history: History = []
        self.best: dict[str, Tensor] = {}
        self.file: RunState | None = None
        if checkpoint is not None:
            settings = asdict(replace(how, max_epochs=0, max_steps=0, verbose=False))
            shapes = {k: list(v.shape) for k, v in module.state_dict().items()}
            self.file = RunState(checkpoint, problem, settings, shapes, described, seed)

    def run(self) -> History:
        """Train to the last epoch, or until the held-out loss stops falling."""
        found = None if self.file is None else self.file.read()
        if found is not None:
            self.restore(*found)
        done = len(self.history)
        with progress_bar(self.title, self.how.max_epochs, self.how.verbose) as advance:
            advance(steps=done)
            for epoch in range(done + 1, self.how.max_epochs + 1):
                if self.is_past_patience():
                    break
                self.history.append(self.run_epoch(epoch))
                advance(f"loss {self.history[-1]['loss']:.4g}")
                if self.file is not None and self.file.is_due(
                    epoch, last=epoch == self.how.max_epochs
                ):
                    self.file.write(*self.state())
        if self.best:
            self.trained.load_state_dict(self.best)
        return self.history

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Train on every sample once, and with `value_dropout` once more for the values alone."""
        problem, how = self.problem, self.how
        self.trained.train()
        total = torch.zeros((), dtype=torch.float64, device=problem.device)
        drawn = (self.generator, how.least_rows)
        batches = problem.batches(how.batch_size, how.row_dropout, *drawn)
        if how.value_dropout == 0:
            for batch, count in batches:
                total += self.step(batch, count)
                del batch
        else:
            thinned = problem.batches(how.batch_size, how.value_dropout, *drawn)
            for (batch, count), (rest, rest_count) in zip(batches, thinned, strict=True):
                total += self.step(batch, count)
                self.step(rest, rest_count, values_only=True)
                del batch, rest  # they are as large as all that the next ones are made of
        self.trained.eval()
        (total,) = problem.group.add([total])
        loss = float(total) / problem.total_weight
        check_finite(loss, epoch)
        if self.held_out is None:
            return entry(epoch, loss)
        validation_loss = self.held_out_loss(self.held_out)
        if not self.best or validation_loss < min(h["validation_loss"] for h in self.history):
            self.best = {k: v.detach().clone() for k, v in self.trained.state_dict().items()}
        return entry(epoch, loss, validation_loss)

    def step(self, batch: Samples, count: int, values_only: bool = False) -> Tensor:
        """Take one step on `count` samples of all processes; return the summed loss of this one."""
        self.optimizer.zero_grad()
        # Over the expected weight of a batch, not its own: every sample counts by its weight alone.
        loss = self.backward(batch, count * self.mean_weight)
        self._add_over_processes()
        if self.how.penalizes:
            self.how.penalty(self.module, self.problem).backward()
        if values_only:
            for parameter in self.module.scoring():
                parameter.grad = None  # Adam passes it over
        self.optimizer.step()
        if self.module.projects:
            self.module.project_()
        return loss

    def backward(self, batch: Samples, total_weight: float) -> Tensor:
        """Add the gradient of the summed loss over `total_weight`; return the summed loss."""
        return backward(self.module, batch, self.how, total_weight)

    def held_out_loss(self, samples: Problem) -> float:
        """Return the mean loss of held-out samples."""
        return risk(self.module, samples)

    def _add_over_processes(self) -> None:
        group = self.problem.group
        if group.size > 1:
            gradients = [torch.as_tensor(p.grad) for p in self.module.parameters()]
            for gradient, total in zip(gradients, group.add(gradients), strict=True):
                gradient.copy_(total)

    def is_past_patience(self) -> bool:
        """Return whether the held-out loss has not fallen for `patience` epochs."""
        if self.how.patience is None or self.held_out is None or not self.history:
            return False
        losses = [h["validation_loss"] for h in self.history]
        return len(losses) - 1 - int(np.argmin(losses)) >= self.how.patience

    def state(self) -> tuple[dict[str, Tensor], dict]:
        """Return parameters, Adam's moments, the random state and the history."""
        tensors = {f"module.{k}": v for k, v in self.module.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{k}": v for k, v in state.items()}
        tensors["generator"] = self.generator.get_state()
        return tensors, {"history": self.history}

    def restore(self, tensors: dict[str, Tensor], document: dict) -> None:
        """Restore a `state`."""
        self.module.load_state_dict(with_prefix("module.", tensors))
        self.best = with_prefix("best.", tensors)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in with_prefix("adam.", tensors).items():
            index, key = name.split(".", 1)
            state.setdefault(int(index), {})[key] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.generator.set_state(tensors["generator"])
        self.history = document["history"]


def train(
    module: AttentionModule,
    problem: Problem,
    how: Training,
    seed: int,
    checkpoint: Checkpoint | None = None,
    described: dict[str, Any] | None = None,
) -> History:
    """Train an initialized module in place and return the history, one entry per epoch.

    Samples of one row leave attention nothing to choose: the module is a GLM, solved exactly.
    Otherwise L-BFGS is used for small data in memory and Adam for other data, unless `how` decides.
    """
    if problem.has_one_row_samples_only:
        fit_values(module, problem, how.ridge)
        return [entry(1, risk(module, problem))]
    samples = problem.in_memory
    if samples is not None and how.chosen_optimizer(problem, module) == "lbfgs":
        return train_lbfgs(module, samples, how)
    return AdamRun(module, problem, how, seed, checkpoint, described).run()


class Joint(NamedTuple):
    """The module that a solver trains on encoded rows."""

    module: AttentionModule  # the argument of the losses of `how`
    attention: DiagonalAttention  # the model, which is a part of the module
    how: Training


class EncoderRun(AdamRun):
    """A run of Adam that also trains the encoder of rows.

    Parameters
    ----------
    encoder : torch module
        Maps rows (N, d) to rows (N, d'); trained in place.
    joint : Joint
        Trained in place.
    problem : Problem
        Samples with rows that are not encoded yet.
    ridge : float
        Decay of the encoder's weights (AdamW).
    seed : int
    """

    title = "encoder"

    def __init__(
        self, encoder: nn.Module, joint: Joint, problem: Problem, ridge: float, seed: int
    ) -> None:
        super().__init__(joint.module, problem, joint.how, seed)
        self.encoder = encoder
        self.trained = nn.ModuleDict({"encoder": encoder, "module": joint.module})
        maps = list(encoder.parameters())
        if maps:
            self.optimizer.add_param_group({"params": maps, "weight_decay": ridge})

    def backward(self, batch: Samples, total_weight: float) -> Tensor:
        """Add the gradient of the summed loss over `total_weight`; return the summed loss.

        The module goes through the batch in blocks. They add up the slopes in the encoded rows,
        which then go back through the encoder at once.
        """
        encoded = self.encoder(batch.values)  # (N, d')
        seen = encoded.detach().requires_grad_()
        loss = super().backward(replace(batch, values=seen, missing=None), total_weight)
        if encoded.requires_grad:
            encoded.backward(seen.grad)
        return loss

    @torch.no_grad()
    def held_out_loss(self, samples: Problem) -> float:
        """Return the mean loss of held-out samples."""

        def losses(part: Samples) -> list[Tensor]:
            seen = replace(part, values=self.encoder(part.values), missing=None)
            return [(seen.weights * self.how.losses(self.module, seen)).sum()]

        return float(samples.total(losses)[0]) / samples.total_weight


def train_encoder(
    encoder: nn.Module,
    joint: Joint,
    problem: Problem,
    *,
    max_epochs: int,
    learning_rate: float,
    ridge: float,
    validation_fraction: float,
    seed: int,
    verbose: bool,
) -> History:
    """Train encoder and attention in place by Adam, and return the history.

    With `validation_fraction`, both end at the epoch with the smallest loss of held-out samples.
    The solver's own dropout, held-out samples and patience are for the fit that follows.
    """
    if round(validation_fraction * problem.n_samples) == 0:
        validation_fraction = 0.0  # so few samples are all needed
    how = replace(
        joint.how,
        max_epochs=max_epochs,
        learning_rate=learning_rate,
        validation_fraction=validation_fraction,
        patience=None,
        row_dropout=0.0,
        value_dropout=0.0,
        verbose=verbose,
    )
    return EncoderRun(encoder, joint._replace(how=how), problem, ridge, seed).run()
