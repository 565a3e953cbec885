"""Attention to the row where one feature is extreme: the last visit, the largest cell.

The score is linear in that feature, ψ(x) = ±SHARPNESS · x_c, and is not fitted. The rest is a
regression on the rows that it finds: a fit without scores whose rows have ψ as their log prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from diagatt.segments import map_blocks, segment_mean
from diagatt.solvers.auto.contestants import Extreme
from diagatt.solvers.base import Fitted
from diagatt.solvers.problem import Samples

# Slope of the score per standard deviation of the feature. Entries that differ by a hundredth of it
# are distinguished; equal entries share the attention.
SHARPNESS = 1000.0


def looking_at(samples: Samples, extreme: Extreme) -> Samples:
    """Return the samples with a log prior on the rows where the feature is extreme."""
    prior = extreme.sign * SHARPNESS * samples.values[:, extreme.column]  # (N,)
    return replace(
        samples, log_prior=prior if samples.log_prior is None else samples.log_prior + prior
    )


def extreme_rows(samples: Samples, extremes: Sequence[Extreme]) -> Tensor:  # (M, n, d)
    """Return the row of every sample that each of the extremes finds."""

    def rows(extreme: Extreme) -> Tensor:  # (n, d)
        prior = looking_at(samples, extreme).log_prior
        return map_blocks(segment_mean, samples.values, samples.offsets, log_prior=prior)

    return torch.stack([rows(extreme) for extreme in extremes])


@torch.no_grad()
def scored(fitted: Fitted, extreme: Extreme) -> Fitted:
    """Return a fit to these rows with the score that finds them."""
    query_key = fitted.module.query_key
    matrix = query_key.matrix().clone()  # (1, d + 1, d + 1) of affine scores
    d = matrix.shape[1] - 1
    half = extreme.sign * SHARPNESS * d**0.5 / 2  # enters twice, divided by √d
    matrix[0, extreme.column, d] = matrix[0, d, extreme.column] = half
    query_key.set_matrix(matrix)
    return fitted
