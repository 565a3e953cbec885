"""Training an encoder of rows together with the attention that reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.module import AttentionModule
from diagatt.solvers.gradient.adam import AdamRun
from diagatt.solvers.gradient.train import History, Training
from diagatt.solvers.problem import Problem, Samples


class Joint(NamedTuple):
    """What a solver trains on encoded rows."""

    module: AttentionModule  # whose loss `how` knows
    attention: DiagonalAttention  # the part of it that is the model
    how: Training


class EncoderRun(AdamRun):
    """A run of Adam that also trains the encoder of the rows that its module sees.

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
