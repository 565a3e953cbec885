"""Fits that have not seen the samples they are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from diagatt.attention.blend import Blend
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import map_blocks
from diagatt.solvers.existence import Existence
from diagatt.solvers.problem import Samples


@dataclass(frozen=True)
class OutOfFold:
    """One model per fold, fitted to the samples of all other folds.

    Attributes
    ----------
    samples : Samples
    folds : tensor of shape (n,)
    predictors : list
        The model of each fold.
    existence : Existence
        Test of any row of interest by these fits.
    """

    samples: Samples
    folds: Tensor
    predictors: list[DiagonalAttention | Blend]
    existence: Existence

    def predictions(self) -> Tensor:
        """Return predictors z of all samples, each by the model that has not seen it, (n, K)."""
        found = []
        for place, part, model in self.parts():
            beside = [part.covariates] + ([] if part.offset is None else [part.offset])
            z = map_blocks(model, part.values, part.offsets, *beside, log_prior=part.log_prior)
            found.append((place, z.detach()))
        back = torch.cat([place for place, _ in found]).argsort()
        return torch.cat([z for _, z in found]).double()[back]

    def losses(self) -> Tensor:
        """Return the weighted loss of every sample, (n,)."""
        y, w = self.samples.y.double(), self.samples.weights.double()
        return w * self.samples.family.loss(y, self.predictions())

    def parts(self) -> Iterator[tuple[Tensor, Samples, DiagonalAttention | Blend]]:
        """Yield places of held-out samples, the samples, and the model that has not seen them."""
        for fold, predictor in enumerate(self.predictors):
            held_out = torch.nonzero(self.folds == fold)[:, 0]
            yield held_out, self.samples.take(held_out), predictor
