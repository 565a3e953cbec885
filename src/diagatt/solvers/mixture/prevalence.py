r"""How many samples have a row of interest, without what the penalty of scores does to it.

The penalty flattens attention, and under flat attention a sample with an active row looks like one
without: π̂ of the penalized fit is too large. Here the scores of the fit may grow or shrink
together, ψ → sψ, at no penalty; s, the score and the value of the none-row, V, b, γ and φ maximize
the likelihood. The fit itself stays as it is, because it predicts new samples better than the one
without the penalty.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn

from diagatt.solvers.base import prevalence
from diagatt.solvers.gradient.train import run_lbfgs
from diagatt.solvers.mixture.objective import MixtureModule, MixtureTraining
from diagatt.solvers.problem import Samples

# Samples from which π is estimated at most: with more of them the penalty means nothing.
MOST_SAMPLES = 5000
MOST_STEPS = 100


class _OfFreeSize(nn.Module):
    """A query–key matrix of which only the size is free: sW."""

    fixed: Tensor

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("fixed", matrix.detach().clone())
        self.log_size = nn.Parameter(matrix.new_zeros(()))

    def matrix(self) -> Tensor:
        """Return sW, (R, D, D)."""
        return self.log_size.exp() * self.fixed

    def factors(self) -> None:
        """Say that there are no factors."""


def free_prevalence(module: MixtureModule, samples: Samples, how: MixtureTraining) -> float | None:
    """Return the share of samples with a row of interest, if some may have none."""
    if not module.attention.has_none:
        return None
    again = deepcopy(module)
    again.attention.query_key = _OfFreeSize(again.attention.query_key.matrix())  # type: ignore[assignment]
    free = replace(how, score_ridge=0.0, linear_ridge=0.0, max_steps=MOST_STEPS, verbose=False)
    run_lbfgs(again, samples, free)
    with torch.no_grad():
        return prevalence(again.attention, samples)
