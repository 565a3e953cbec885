"""Features of whole samples: their sizes, and sums, extremes and spreads of their rows.

Where contributions of rows add up, as those of atoms of a molecule do, sums and sizes decide; they
enter the predictor in addition to attention, like shared covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from diagatt.segments import segment_max, segment_spread, segment_sum

FEATURES = ("size", "sum", "max", "min", "spread")


def n_sample_features(kinds: Sequence[str], n_dimensions: int) -> int:
    """Return how many features of a sample there are for rows of `n_dimensions` features."""
    return sum(2 if kind == "size" else n_dimensions for kind in kinds)


class SampleFeatures(nn.Module):
    """Chosen features of samples, each scaled to mean 0 and variance 1 over training samples.

    Attributes
    ----------
    kinds : tuple of {"size", "sum", "max", "min", "spread"}
        Count of rows and its logarithm; sum, maximum, minimum and standard deviation of every
        feature of the rows.
    shift, scale : tensors of shape (e,)
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, kinds: Sequence[str], shift: Any, scale: Any) -> None:
        super().__init__()
        self.kinds = tuple(kinds)
        self.register_buffer("shift", torch.as_tensor(shift, dtype=torch.float64))
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float64))

    @classmethod
    def fitted_to(
        cls,
        kinds: Sequence[str],
        values: Tensor,
        offsets: Tensor,
        weights: Tensor,
        log_prior: Tensor | None = None,
    ) -> Self:
        """Learn mean and spread of the features of these samples, (n,) weights."""
        x = _features(kinds, values, offsets, log_prior)
        w = weights.double() / weights.double().sum()
        shift = w @ x
        spread = (w @ (x - shift).square()).sqrt()
        small = spread <= 1e-9 * x.abs().amax(dim=0)  # all samples of one size
        return cls(kinds, shift, torch.where(small, 1.0, spread))

    def forward(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return the features of packed samples, (n, e); rows count by their weights."""
        found = _features(self.kinds, values, offsets, log_prior)
        return ((found - self.shift) / self.scale).to(values.dtype)


def _features(
    kinds: Sequence[str], values: Tensor, offsets: Tensor, log_prior: Tensor | None = None
) -> Tensor:
    if not kinds:
        return values.new_zeros(len(offsets) - 1, 0, dtype=torch.float64)
    rows = values.double()
    size = offsets.diff().double()[:, None]
    counted = rows
    if log_prior is not None:
        weight = log_prior.double().exp()[:, None]
        size, counted = segment_sum(weight, offsets), weight * rows
    made = {
        "size": lambda: torch.cat([size, size.log()], dim=1),
        "sum": lambda: segment_sum(counted, offsets),
        "max": lambda: segment_max(rows, offsets),
        "min": lambda: -segment_max(-rows, offsets),
        "spread": lambda: segment_spread(rows, offsets, log_prior),
    }
    columns = [rows.new_zeros(len(offsets) - 1, 0), *(made[kind]() for kind in kinds)]
    return torch.cat(columns, dim=1)
