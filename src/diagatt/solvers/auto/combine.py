r"""Weights of contestants, from their out-of-fold log scores.

Within the fits with attention, and within the fits without, weights are :math:`∝ e^{-nΔ/t}` with
the gap Δ of the mean score to the best. Predictions are means, so that their weights come from the
scores of means; votes on rows come from the log scores of responses. Where scores of means do not
distinguish models of latent rows, their log scores do: they judge the whole predicted density. The
two groups are mixed by one α that minimizes the loss of the blended out-of-fold means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from diagatt.attention.blend import LEAST_PROBABILITY
from diagatt.solvers.auto.contest import Contest, Entry
from diagatt.solvers.auto.witnesses import contest_existence
from diagatt.solvers.existence import Existence

# Temperatures t of the two groups, steps of α, and the least weight of a member.
ATTENTION_TEMPERATURE, UNIFORM_TEMPERATURE = 4.0, 2.0
ALPHA_STEPS, LEAST_WEIGHT = 20, 0.02


@dataclass(frozen=True)
class Verdict:
    """The outcome of a contest.

    Attributes
    ----------
    weights : list of float
        Of the entries in predictions.
    votes : list of float
        Of the entries in the attention.
    t_statistic : float
        Gain of the group with attention over the group without, in standard errors.
    existence : Existence, optional
        Test of any row of interest.
    """

    weights: list[float]
    votes: list[float]
    t_statistic: float
    existence: Existence | None = None

    @property
    def finds_rows(self) -> bool:
        """Whether single rows predict more than their mean does, out of fold."""
        return self.existence is not None and self.existence.is_found


def judge(contest: Contest, entries: Sequence[Entry]) -> Verdict:
    """Return weights and votes of all entries; those that were dropped have none."""
    shares = _shares(contest, entries, "mean_score", _density_gaps(contest, entries))
    means: dict[bool, Tensor] = {}
    for attends in (False, True):
        parts = [
            share * _mean_response(contest, entry)
            for share, entry in zip(shares, entries, strict=True)
            if share > 0 and entry.contestant.attends is attends
        ]
        if parts:
            means[attends] = torch.stack(parts).sum(dim=0)
    alpha, t = _mixing_weight(contest, means)
    weights = [
        share * (alpha if entry.contestant.attends else 1 - alpha)
        for share, entry in zip(shares, entries, strict=True)
    ]
    votes = [
        share if entry.contestant.attends else 0.0
        for share, entry in zip(_shares(contest, entries, "log_score"), entries, strict=True)
    ]
    return Verdict(_trimmed(weights), _trimmed(votes), t, contest_existence(contest, entries))


def _density_gaps(contest: Contest, entries: Sequence[Entry]) -> list[float]:
    """Return by how much log scores exceed scores of means, as gaps to the best whose mean is good.

    A mean is good if it is no more than one standard error behind the best. Fits without a density
    of their own have no gap.
    """
    gaps = [0.0] * len(entries)
    dense = [k for k, entry in enumerate(entries) if entry.is_alive and entry.has_density]
    if not dense:
        return gaps
    first = contest.leader([entries[k] for k in dense], score="mean_score")
    beyond = {k: contest.mean(entries[k].log_score - entries[k].mean_score) for k in dense}
    good = [
        beyond[k]
        for k in dense
        for gap, error in [contest.gap(first, entries[k], score="mean_score")]
        if gap <= error
    ]
    for k in dense:
        gaps[k] = max(0.0, max(good) - beyond[k])
    return gaps


def _shares(
    contest: Contest, entries: Sequence[Entry], score: str, gaps: Sequence[float] | None = None
) -> list[float]:
    """Return shares that sum to one within the group with attention and within the other.

    Gaps, one per entry, are taken off its mean score.
    """
    shares = [0.0] * len(entries)
    total = contest.samples.total_weight
    gaps = gaps or shares
    for attends, temperature in ((False, UNIFORM_TEMPERATURE), (True, ATTENTION_TEMPERATURE)):
        group = {
            k: contest.mean(getattr(entry, score)) - gaps[k]
            for k, entry in enumerate(entries)
            if entry.is_alive and entry.contestant.attends is attends
        }
        best = max(group.values(), default=0.0)
        raw = {k: math.exp(-total * (best - mean) / temperature) for k, mean in group.items()}
        for k, weight in raw.items():
            shares[k] = weight / sum(raw.values())
    return shares


def _mixing_weight(contest: Contest, means: dict[bool, Tensor]) -> tuple[float, float]:
    """Return α, and the gain of attention over no attention in standard errors."""
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
    """Set weights that are not worth a fit to zero, and rescale the rest to sum to one.

    Where so many do equally well that none reaches the least weight, the best of them is kept.
    """
    total = sum(weights)
    kept = [w if w >= LEAST_WEIGHT * total else 0.0 for w in weights]
    if not any(kept):
        best = weights.index(max(weights))
        kept[best] = weights[best]
    return [w / sum(kept) for w in kept] if total > 0 else weights
