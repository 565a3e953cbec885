r"""How many samples have a row of interest, without what the penalty of scores does to it.

The penalty flattens attention, and under flat attention a sample with an active row looks like one
without: π̂ of the penalized fit is too large. Here the scores of the fit may grow or shrink
together, ψ → sψ, at no penalty; s, the score and the value of the none-row, V, b, γ and φ maximize
the likelihood. The fit itself stays as it is, because it predicts new samples better than the one
without the penalty.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn

from diagatt.attention.nonerow import none_probability
from diagatt.segments import map_blocks
from diagatt.solvers.base import prevalence
from diagatt.solvers.gradient.train import run_lbfgs
from diagatt.solvers.mixture.objective import MixtureModule, MixtureTraining
from diagatt.solvers.problem import Samples
from diagatt.solvers.share_interval import share_interval

# Samples from which π is estimated at most: with more of them the penalty means nothing.
MOST_SAMPLES = 5000
MOST_STEPS = 100
Z = 1.96  # of an interval of 95 %


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
    return prevalence(_refitted(_freed(module), samples, how)[0].attention, samples)


def free_interval(
    module: MixtureModule, samples: Samples, how: MixtureTraining
) -> tuple[float, float]:
    """Return a 95 % interval for the same share.

    The likelihood is that of responses given rows; how much the share varies among rows that might
    have been drawn is added.
    """
    best, least = _refitted(_freed(module), samples, how)
    assert best.attention.none_score is not None
    log_odds_found = best.attention.none_score.detach()

    def at(log_odds: float) -> tuple[float, float]:
        fixed = deepcopy(best)
        fixed.attention.none_score = nn.Parameter(
            torch.full_like(log_odds_found, log_odds), requires_grad=False
        )
        found, value = _refitted(fixed, samples, how)
        return value - least, float(prevalence(found.attention, samples) or 0.0)

    low, high = share_interval(at, float(log_odds_found))
    with torch.no_grad():
        given = (samples.values, samples.offsets)
        has = 1 - none_probability(map_blocks(best.attention.attention, *given), samples.offsets)
    w = samples.weights.double() / samples.weights.sum()
    share = float(w @ has[:, 0].double())
    drawn = Z * float((w.square() @ (has[:, 0].double() - share).square()).sqrt())
    low, high = share - math.hypot(share - low, drawn), share + math.hypot(high - share, drawn)
    return max(low, 0.0), min(high, 1.0)


def _freed(module: MixtureModule) -> MixtureModule:
    again = deepcopy(module)
    again.attention.query_key = _OfFreeSize(again.attention.query_key.matrix())  # type: ignore[assignment]
    return again


def _refitted(
    module: MixtureModule, samples: Samples, how: MixtureTraining
) -> tuple[MixtureModule, float]:
    """Train what is free without penalties of scores; return −log-likelihood, too."""
    free = replace(how, score_ridge=0.0, linear_ridge=0.0, max_steps=MOST_STEPS, verbose=False)
    minimum = run_lbfgs(module, samples, free)[1]
    return module, minimum.value * samples.total_weight
