"""What a solver is given: packed samples with responses, weights and covariates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from diagatt.families import Family
from diagatt.segments import segment_max, segment_sum, spread


@dataclass(frozen=True)
class Problem:
    """n samples of a regression problem, on one device.

    Attributes
    ----------
    family : Family
    values : tensor (N, d)
        Packed rows.
    offsets : tensor (n + 1,)
    y : tensor (n,)
        Responses, class numbers for classification.
    weights : tensor (n,)
        Positive sample weights.
    covariates : tensor (n, q)
        Shared covariates, q may be 0.
    n_outputs : int
        Linear predictors, K.
    """

    family: Family
    values: Tensor
    offsets: Tensor
    y: Tensor
    weights: Tensor
    covariates: Tensor
    n_outputs: int = 1

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return self.values.shape[1]

    @property
    def has_one_row_samples_only(self) -> bool:
        """Whether attention has nothing to choose and the model is a plain GLM."""
        return len(self.values) == self.n_samples

    @cached_property
    def scale(self) -> float:
        """Size of the loss; makes a fit to 1000·y a thousand times the fit to y."""
        return self.family.scale(self.y, self.weights)

    def to(self, dtype: torch.dtype) -> Problem:
        """Cast rows, responses, weights and covariates."""
        names = ("values", "y", "weights", "covariates")
        return replace(self, **{name: getattr(self, name).to(dtype) for name in names})

    def take(self, samples: Tensor) -> Problem:
        """The problem of these samples, in this order."""
        lengths = self.offsets.diff()[samples]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        rows = torch.arange(int(offsets[-1]), device=self.values.device)
        rows += spread(self.offsets[:-1][samples] - offsets[:-1], offsets)
        return replace(
            self,
            values=self.values[rows],
            offsets=offsets,
            y=self.y[samples],
            weights=self.weights[samples],
            covariates=self.covariates[samples],
        )

    def drop_rows(self, share: float, generator: torch.Generator) -> Problem:
        """Leave out each row with probability `share`; every sample keeps at least one."""
        luck = torch.rand(len(self.values), 1, generator=generator).to(self.values.device)
        best = spread(segment_max(luck, self.offsets), self.offsets)
        keep = ((luck >= share) | (luck >= best))[:, 0]  # (N,)
        lengths = segment_sum(keep.to(torch.float64), self.offsets).long()
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        return replace(self, values=self.values[keep], offsets=offsets)

    def mean_loss(self, z: Tensor) -> Tensor:
        """Weighted mean of ℓ(y, z): the empirical risk of equation (obj)."""
        losses = self.family.loss(self.y, z)
        return (self.weights * losses).sum() / self.weights.sum()
