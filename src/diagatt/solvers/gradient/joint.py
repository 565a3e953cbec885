"""Training an encoder of rows together with the attention that reads them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.module import AttentionModule
from diagatt.progress import progress_bar
from diagatt.solvers.gradient.train import Training, check_finite
from diagatt.solvers.problem import Samples

__all__ = ["Joint", "objective", "train_encoder"]


class Joint(NamedTuple):
    """What a solver trains on encoded rows."""

    module: AttentionModule  # whose loss `how` knows
    attention: DiagonalAttention  # the part of it that is the model
    how: Training


def encoded(encoder: Callable[[Tensor], Tensor], samples: Samples) -> Samples:
    """Return samples with encoded rows."""
    return replace(samples, values=encoder(samples.values), missing=None)


def objective(
    encoder: nn.Module, joint: Joint, samples: Samples, total_weight: float | None = None
) -> Tensor:
    """Return the weighted mean loss of samples plus the solver's penalty, a scalar.

    `total_weight` is that of all samples, if these are some of them: the penalty is per unit of it.
    """
    seen = encoded(encoder, samples)
    loss = (seen.weights * joint.how.losses(joint.module, seen)).sum() / seen.weights.sum()
    share = 1.0 if total_weight is None else samples.total_weight / total_weight
    return loss + share * joint.how.penalty(joint.module, seen)


def train_encoder(
    encoder: nn.Module,
    joint: Joint,
    samples: Samples,
    *,
    max_epochs: int,
    learning_rate: float,
    ridge: float,
    validation_fraction: float,
    generator: torch.Generator,
    verbose: bool = False,
) -> list[float]:
    """Train encoder and attention in place by Adam; return the loss of every epoch.

    With `validation_fraction`, losses are those of held-out samples, and both modules end where it
    was smallest.
    """
    order = torch.randperm(samples.n_samples, generator=generator).to(samples.device)
    cut = round(validation_fraction * samples.n_samples)
    held_out, part = samples.take(order[:cut]) if cut else None, samples.take(order[cut:])
    maps, rest = list(encoder.parameters()), list(joint.module.parameters())
    groups = [{"params": maps, "weight_decay": ridge}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate)
    history, best = list[float](), (deepcopy(encoder.state_dict()), joint.module.state_dict())
    with progress_bar("encoder", max_epochs, verbose) as advance:
        for epoch in range(1, max_epochs + 1):
            encoder.train()
            total = 0.0
            for batch, size in part.batches(joint.how.batch_size, 0.0, generator):
                optimizer.zero_grad()
                loss = objective(encoder, joint, batch, part.total_weight)
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * size / part.n_samples
            encoder.eval()
            history.append(total if held_out is None else _held_out(encoder, joint, held_out))
            check_finite(history[-1], epoch)
            if held_out is None or history[-1] <= min(history):
                best = deepcopy(encoder.state_dict()), deepcopy(joint.module.state_dict())
            advance(f"loss {history[-1]:.5g}")
    encoder.load_state_dict(best[0])
    joint.module.load_state_dict(best[1])
    return history


@torch.no_grad()
def _held_out(encoder: nn.Module, joint: Joint, samples: Samples) -> float:
    """Return the mean loss of held-out samples."""
    seen = encoded(encoder, samples)
    losses = joint.how.losses(joint.module, seen)
    return float((seen.weights * losses).sum() / seen.weights.sum())
