r"""Weights of contestants, from their out-of-fold log scores.

Within the fits with attention, and within those without, weights are :math:`∝ e^{-nΔ/t}` with the
gap Δ of the mean log score to the best. The two groups are mixed by one α that minimizes the loss
of the blended out-of-fold means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from diagatt.attention.blend import LEAST_PROBABILITY
from diagatt.solvers.auto.contest import Contest, Entry

# Temperatures t of the two groups, steps of α, and the least weight of a member.
ATTENTION_TEMPERATURE, UNIFORM_TEMPERATURE = 4.0, 2.0
ALPHA_STEPS, LEAST_WEIGHT = 20, 0.02
# Standard errors by which attention must beat no attention out of fold to speak of rows.
CONVINCING = 2.0


@dataclass(frozen=True)
class Verdict:
    """What a contest says.

    Attributes
    ----------
    weights : list of float
        Of the entries in predictions.
    votes : list of float
        Of the entries in the attention.
    t_statistic : float
        Gain of the group with attention over the group without, in standard errors.
    """

    weights: list[float]
    votes: list[float]
    t_statistic: float

    @property
    def finds_rows(self) -> bool:
        """Whether attention beats uniform attention out of fold."""
        return self.t_statistic > CONVINCING


def judge(contest: Contest, entries: Sequence[Entry]) -> Verdict:
    """Return weights and votes of all entries; those that were dropped have none."""
    shares = [0.0] * len(entries)
    means: dict[bool, Tensor] = {}
    for attends, temperature in ((False, UNIFORM_TEMPERATURE), (True, ATTENTION_TEMPERATURE)):
        group = [k for k, e in enumerate(entries) if e.is_alive and e.contestant.attends is attends]
        if not group:
            continue
        scores = [contest.mean(entries[k].log_score) for k in group]
        total = contest.samples.total_weight
        raw = [math.exp(-total * (max(scores) - score) / temperature) for score in scores]
        for k, weight in zip(group, raw, strict=True):
            shares[k] = weight / sum(raw)
        responses = [shares[k] * _mean_response(contest, entries[k]) for k in group]
        means[attends] = torch.stack(responses).sum(dim=0)
    alpha, t = _mixing_weight(contest, means)
    votes = [s if e.contestant.attends else 0.0 for s, e in zip(shares, entries, strict=True)]
    weights = [
        share * (alpha if entry.contestant.attends else 1 - alpha)
        for share, entry in zip(shares, entries, strict=True)
    ]
    return Verdict(_trimmed(weights), _trimmed(votes), t)


def _mixing_weight(contest: Contest, means: dict[bool, Tensor]) -> tuple[float, float]:
    """Return α, and how clearly attention alone beats no attention."""
    if len(means) == 1:
        return (1.0, math.inf) if True in means else (0.0, -math.inf)
    grid = [step / ALPHA_STEPS for step in range(ALPHA_STEPS + 1)]
    losses = {
        alpha: _losses(contest, alpha * means[True] + (1 - alpha) * means[False]) for alpha in grid
    }
    best = min(grid, key=lambda alpha: contest.mean(losses[alpha]))
    gain = losses[0.0] - losses[1.0]
    mean = contest.mean(gain)
    error = (contest.mean((gain - mean).square()) / contest.samples.total_weight) ** 0.5
    return best, mean / error if error > 0 else 0.0


def _mean_response(contest: Contest, entry: Entry) -> Tensor:
    return contest.samples.family.inverse_link(entry.z.double())


def _losses(contest: Contest, mean: Tensor) -> Tensor:
    family = contest.samples.family
    if family.classifies:
        mean = mean.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return family.loss(contest.samples.y.double(), family.link(mean))


def _trimmed(weights: list[float]) -> list[float]:
    """Leave out weights that are not worth a fit, and let the rest sum to one."""
    total = sum(weights)
    kept = [w if w >= LEAST_WEIGHT * total else 0.0 for w in weights]
    return [w / sum(kept) for w in kept] if total > 0 else weights
