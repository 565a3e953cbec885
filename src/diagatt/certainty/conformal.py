r"""Intervals and class sets that cover new responses, calibrated on held-out samples.

A held-out response has the normalized score

.. math:: \frac{|y - μ|}{\sqrt{φ V(μ) + \mathrm{Var}_κ μ_j}},

where μ_j is what row j alone would predict and V the variance function of the family: samples
whose rows disagree get wider intervals. The interval of a new sample has the half-width that
covers the given share of the scores of held-out samples that are about as ambiguous: the least,
the middle or the most ambiguous third, by the entropy of attention. So intervals cover within each
third, also where the model of the spread is wrong. Class sets hold every class that is at least as
probable as it was for the given share of held-out samples of that class and third. Where a class
has few samples in a third, its samples in the other thirds count in part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.blend import LEAST_PROBABILITY, Blend
from diagatt.attention.coupling import Assignments
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.row_terms import row_terms
from diagatt.families import Family
from diagatt.segments import segment_sum
from diagatt.solvers.folds import OutOfFold
from diagatt.solvers.gradient.train import predictors
from diagatt.solvers.problem import Samples

# Share of the residual variance that φ has at least.
LEAST_SHARE = 0.1
# Thirds of held-out samples have scores of their own if they are at least this many.
LEAST_OF_THIRD = 50
# A class has scores of its own in a third if they are at least this many; fewer are filled up by
# its scores in the other thirds. Simulated classes of 20 to 1000 samples are covered best with 20
# of them at level .9, where the threshold is the second smallest score.
LEAST_OF_CLASS = 20
# |z| beyond which means are at the end of their range.
FAR = 300.0


@dataclass(frozen=True)
class Conformity:
    """Scores of held-out samples, by which intervals and sets of new samples are calibrated.

    Attributes
    ----------
    scores : array of shape (n,), optional
        Normalized residuals; of classes, the probability of the true one; none of quantiles and of
        responses that consist of several numbers.
    classes : int array of shape (n,), optional
        True classes.
    dispersion : float, optional
        φ of the normalized score.
    log_score : float
        Mean log density of held-out responses around their predicted means.
    ambiguity : array of shape (n,), optional
        Entropy of the attention in nats, where there are scores.
    dispersions : array of shape (q,), optional
        φ of several outcomes, whose `scores` and `classes` have shape (n, q).
    """

    scores: np.ndarray | None
    classes: np.ndarray | None
    dispersion: float | None
    log_score: float = math.nan
    ambiguity: np.ndarray | None = None
    dispersions: np.ndarray | None = None

    @classmethod
    def joined(cls, each: Sequence[Conformity], units: Sequence[float], score: float) -> Conformity:
        """Join the scores of several outcomes as columns; `units` multiply dispersions."""
        scores = np.column_stack([one.scores for one in each if one.scores is not None])
        known = [one.classes for one in each if one.classes is not None]
        classes = np.column_stack(known) if known else None
        pairs = zip(each, units, strict=True)
        phi = np.array([float(one.dispersion or 0.0) * unit for one, unit in pairs])
        return cls(scores, classes, 1.0, score, each[0].ambiguity, phi)


def conformity_of(unseen: OutOfFold) -> Conformity:
    """Return the scores of held-out samples by models fitted without them.

    Of several outcomes, each has its own.
    """
    samples, family = unseen.samples, unseen.samples.family
    one = torch.zeros(1, samples.n_outputs, dtype=torch.float64)
    mean = family.inverse_link(one).repeat(samples.n_samples, 1)
    rows = torch.zeros(samples.n_samples, family.n_outcomes, dtype=torch.float64)
    ambiguity = torch.zeros_like(rows[:, 0])
    # Intervals around means are for outcomes that are one number each.
    has_intervals = family.response_width == family.n_outcomes and family.predicts_mixtures
    for place, part, predictor in unseen.parts():
        mean[place.cpu()] = family.inverse_link(predictors(predictor, part).double()).cpu()
        if family.classifies:
            ambiguity[place.cpu()] = row_entropy(predictor, part)
        elif has_intervals:
            rows[place.cpu()], ambiguity[place.cpu()] = row_spread(predictor, part)
    y, w = samples.y.double().cpu(), samples.weights.double().cpu()
    score = _log_score(family, y, mean, w)
    if not has_intervals and not (family.classifies and family.response_width == 1):
        return Conformity(None, None, None, score)
    outcomes = zip(family.by_outcome(y, mean), rows.T, strict=True)
    each = [_conformity(*outcome, spread, ambiguity) for outcome, spread in outcomes]
    if len(each) == 1:
        return replace(each[0], log_score=score)
    units = torch.ones(len(each)) if family.units is None else family.units
    return Conformity.joined(each, (units.double() ** 2).tolist(), score)


def _conformity(
    family: Family, y: Tensor, mean: Tensor, rows: Tensor, ambiguity: Tensor
) -> Conformity:
    """Return the scores of one outcome y, (n,), given its means and their variance over rows."""
    if family.classifies:
        codes = y.long()
        both = mean if mean.shape[1] > 1 else torch.cat([1 - mean, mean], dim=1)
        true = both[torch.arange(len(codes)), codes]
        return Conformity(true.numpy(), codes.numpy(), 1.0, ambiguity=ambiguity.numpy())
    unit = variance_function(family, mean[:, 0])
    squares = (y - mean[:, 0]).square() / unit
    total = float(squares.mean())
    phi = max(total - float((rows / unit).mean()), LEAST_SHARE * total, 1e-300)
    scores = (squares / (phi + rows / unit)).sqrt().numpy()
    return Conformity(scores, None, phi, ambiguity=ambiguity.numpy())


def _log_score(family: Family, y: Tensor, mean: Tensor, weights: Tensor) -> float:
    """Return the weighted mean log density around means; φ is that of their own residuals."""
    if family.classifies:
        mean = mean.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    z, share = family.link(mean), weights / weights.sum()
    phi = 1.0
    if family.has_dispersion:
        phi = max(float((share * family.unit_dispersion(y, z)).sum()), 1e-300)
    return float((share * family.log_density(y, z, phi)).sum())


def row_spread(predictor: DiagonalAttention | Blend, part: Samples) -> tuple[Tensor, Tensor]:
    """Return the variance over rows of what each alone would predict, (n, q), and their entropy.

    The entropy, (n,), says how uncertain it is which row is active.
    """
    log_p, z, places = _assignments(predictor, part)
    if not part.family.has_identity_link:
        z = z.clamp(-FAR, FAR)
    mean, p = part.family.inverse_link(z), log_p.exp()[:, None]  # (M, q), (M, 1)
    moments = segment_sum(torch.cat([p * mean, p * mean**2], dim=1), places)  # (n, 2q)
    first, second = moments.chunk(2, dim=1)
    variance = (second - first**2).clamp(min=0.0)
    return variance.cpu(), _entropy(log_p, places)


def row_entropy(predictor: DiagonalAttention | Blend, part: Samples) -> Tensor:
    """Return the entropy of attention in nats, (n,): the uncertainty about the active row."""
    log_p, _, places = _assignments(predictor, part)
    return _entropy(log_p, places)


def _assignments(predictor: DiagonalAttention | Blend, part: Samples) -> Assignments:
    return row_terms(predictor, *part.inputs).assignments()


def _entropy(log_p: Tensor, places: Tensor) -> Tensor:
    p = log_p.exp()
    return segment_sum(-torch.special.xlogy(p, p)[:, None], places)[:, 0].cpu()


def variance_function(family: Family, mean: Tensor) -> Tensor:
    """Return V(μ) = Var(y)/φ, (n,): (dμ/dz)² over the curvature of the loss at y = μ.

    Examples
    --------
    >>> from diagatt.families import get_family
    >>> variance_function(get_family("gamma"), torch.tensor([3.0])).round(decimals=4)
    tensor([9.])
    """
    z = family.link(mean[:, None]).detach().requires_grad_()
    slope = torch.autograd.grad(family.inverse_link(z).sum(), z)[0][:, 0]
    curvature = family.curvature(mean, z.detach())[:, 0, 0]
    return slope**2 / curvature.clamp(min=1e-300)


def score_quantiles(conformity: Conformity, level: float, ambiguity: np.ndarray) -> np.ndarray:
    """Return the score that covers new samples of this ambiguity with probability `level`, (n,).

    Examples
    --------
    >>> scores = np.r_[np.ones(60), np.full(60, 2.0), np.full(60, 3.0)]
    >>> conformity = Conformity(scores, None, 1.0, ambiguity=scores / 10)
    >>> score_quantiles(conformity, 0.9, np.array([0.0, 0.2, 0.5])).tolist()
    [1.0, 2.0, 3.0]
    """
    assert conformity.scores is not None
    whole = np.full(len(ambiguity), _quantile(conformity.scores, level))
    if conformity.ambiguity is None:  # of a file that is older than thirds
        return whole
    third, new = _thirds(conformity.ambiguity, ambiguity)
    parts = [conformity.scores[third == k] for k in range(3)]
    quantiles = np.array([_quantile(part, level) for part in parts])
    if min(map(len, parts)) < LEAST_OF_THIRD or not np.isfinite(quantiles).all():
        return whole
    return quantiles[new]


def _thirds(held_out: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the third of held-out samples, 0 to 2, to which these and new samples belong."""
    edges = np.quantile(held_out, [1 / 3, 2 / 3])
    return np.searchsorted(edges, held_out), np.searchsorted(edges, new)


def _quantile(scores: np.ndarray, level: float) -> float:
    """Return the score that a further one does not exceed with probability `level`."""
    place = math.ceil((len(scores) + 1) * level)
    return math.inf if place > len(scores) else float(np.sort(scores)[place - 1])


def interval(
    conformity: Conformity,
    level: float,
    mean: Tensor,
    spread: tuple[Tensor, Tensor],
    family: Family,
) -> np.ndarray:
    """Return lower and upper ends for new samples, (n, 2), given their `row_spread`."""
    assert conformity.dispersion is not None
    rows, ambiguity = spread[0][:, 0], spread[1]
    quantile = torch.from_numpy(score_quantiles(conformity, level, ambiguity.numpy()))
    width = quantile * (conformity.dispersion * variance_function(family, mean) + rows).sqrt()
    ends = torch.stack([mean - width, mean + width], dim=1)
    far = torch.tensor([[-math.inf], [math.inf]], dtype=torch.float64)
    low, high = family.inverse_link(far)[:, 0].tolist()  # the range of means
    return ends.clamp(low, high).numpy()


def class_thresholds(
    conformity: Conformity, level: float, n_classes: int, ambiguity: np.ndarray
) -> np.ndarray:
    """Return the least probability of classes in the sets of new samples, (n, n_classes).

    Examples
    --------
    >>> scores = np.r_[np.full(60, 0.9), np.full(60, 0.7), np.full(60, 0.4)]
    >>> conformity = Conformity(scores, np.zeros(180, dtype=int), 1.0, ambiguity=-scores)
    >>> class_thresholds(conformity, 0.9, 1, np.array([-1.0, -0.7, 0.0]))[:, 0].tolist()
    [0.9, 0.7, 0.4]
    """
    assert conformity.scores is not None
    assert conformity.classes is not None
    held_out = conformity.ambiguity
    if held_out is None:  # of a file that is older than thirds of classes
        held_out, ambiguity = np.zeros(len(conformity.scores)), np.zeros(len(ambiguity))
    third, new = _thirds(held_out, ambiguity)
    found = np.zeros((3, n_classes))
    for k in range(n_classes):
        own = conformity.classes == k
        for t in range(3):
            found[t, k] = _threshold(conformity.scores[own], third[own] == t, level)
    return found[new]


def _threshold(scores: np.ndarray, is_near: np.ndarray, level: float) -> float:
    """Return a score that a further one near the others reaches with probability `level`.

    Scores that are not near count in part where near ones are few. So the threshold lies between
    that of the near scores and that of all; with equal weights it is the usual one.
    """
    enough = max(LEAST_OF_CLASS, 2 / (1 - level))
    near = int(is_near.sum())
    part = min(1.0, max(0.0, enough - near) / max(len(scores) - near, 1))
    order = np.argsort(scores)
    below = np.cumsum(np.where(is_near, 1.0, part)[order])  # weight up to each score
    most = (1 - level) * (below[-1] + 1.0) if len(scores) else 0.0
    place = int(np.searchsorted(below, most * (1 + 1e-12), side="right"))
    return float(scores[order[place - 1]]) if place > 0 else 0.0
