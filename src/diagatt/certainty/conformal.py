r"""Intervals and class sets that cover new responses, from fits that have not seen a sample.

A held-out response has the normalized score

.. math:: \frac{|y - μ|}{\sqrt{φ V(μ) + \mathrm{Var}_κ μ_j}},

where μ_j is what row j alone would predict and V the variance function of the family: samples
whose rows disagree get wider intervals. The interval of a new sample has the half-width that
covers the asked share of held-out scores. Class sets hold every class that is at least as probable
as the asked share of held-out samples of that class found it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.blend import LEAST_PROBABILITY, Blend
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.rowterms import row_terms
from diagatt.families import Family
from diagatt.segments import segment_sum
from diagatt.solvers.gradient.train import predictors
from diagatt.solvers.out_of_fold import OutOfFold
from diagatt.solvers.problem import Samples

# Share of the residual variance that φ has at least.
LEAST_SHARE = 0.1
# |z| beyond which means are at the end of their range.
FAR = 300.0


@dataclass(frozen=True)
class Conformity:
    """What held-out samples say about new ones.

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
    """

    scores: np.ndarray | None
    classes: np.ndarray | None
    dispersion: float | None
    log_score: float = math.nan


def conformity_of(unseen: OutOfFold) -> Conformity:
    """Return the scores of held-out samples, by models that have not seen them."""
    samples, family = unseen.samples, unseen.samples.family
    one = torch.zeros(1, samples.n_outputs, dtype=torch.float64)
    mean = family.inverse_link(one).repeat(samples.n_samples, 1)
    rows = torch.zeros(samples.n_samples, dtype=torch.float64)
    # Intervals around means are for responses that are one number each.
    has_intervals = family.response_width == 1 and family.predicts_mixtures
    for place, part, predictor in unseen.parts():
        mean[place.cpu()] = family.inverse_link(predictors(predictor, part).double()).cpu()
        if has_intervals and not family.classifies:
            rows[place.cpu()] = row_variance(predictor, part).cpu()
    y, w = samples.y.double().cpu(), samples.weights.double().cpu()
    score = _log_score(family, y, mean, w)
    if family.classifies and family.response_width == 1:
        codes = y.long()
        both = mean if mean.shape[1] > 1 else torch.cat([1 - mean, mean], dim=1)
        true = both[torch.arange(len(codes)), codes]
        return Conformity(true.numpy(), codes.numpy(), 1.0, score)
    if not has_intervals:
        return Conformity(None, None, None, score)
    unit = variance_function(family, mean[:, 0])
    squares = (y - mean[:, 0]).square() / unit
    total = float(squares.mean())
    phi = max(total - float((rows / unit).mean()), LEAST_SHARE * total, 1e-300)
    return Conformity((squares / (phi + rows / unit)).sqrt().numpy(), None, phi, score)


def _log_score(family: Family, y: Tensor, mean: Tensor, weights: Tensor) -> float:
    """Return the weighted mean log density around means; φ is that of their own residuals."""
    if family.classifies:
        mean = mean.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    z, share = family.link(mean), weights / weights.sum()
    phi = 1.0
    if family.has_dispersion:
        phi = max(float((share * family.unit_dispersion(y, z)).sum()), 1e-300)
    return float((share * family.log_density(y, z, phi)).sum())


def row_variance(predictor: DiagonalAttention | Blend, part: Samples) -> Tensor:
    """Return the variance over rows of what each alone would predict, (n,)."""
    given = (part.values, part.offsets, part.covariates, part.offset, part.log_prior)
    terms = row_terms(predictor, *given)
    log_p, z, places = terms.assignments()
    if not part.family.has_identity_link:
        z = z.clamp(-FAR, FAR)
    mean = part.family.inverse_link(z)[:, 0]
    p = log_p.exp()
    moments = segment_sum(torch.stack([p * mean, p * mean**2], dim=1), places)  # (n, 2)
    return (moments[:, 1] - moments[:, 0] ** 2).clamp(min=0.0)


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


def interval(
    conformity: Conformity, level: float, mean: Tensor, rows: Tensor, family: Family
) -> np.ndarray:
    """Return lower and upper ends for new samples, (n, 2)."""
    assert conformity.scores is not None
    assert conformity.dispersion is not None
    n = len(conformity.scores)
    place = math.ceil((n + 1) * level)
    quantile = math.inf if place > n else float(np.sort(conformity.scores)[place - 1])
    width = quantile * (conformity.dispersion * variance_function(family, mean) + rows).sqrt()
    ends = torch.stack([mean - width, mean + width], dim=1)
    far = torch.tensor([[-math.inf], [math.inf]], dtype=torch.float64)
    low, high = family.inverse_link(far)[:, 0].tolist()  # the range of means
    return ends.clamp(low, high).numpy()


def class_thresholds(conformity: Conformity, level: float, n_classes: int) -> np.ndarray:
    """Return the least probability of every class that is in a set, (n_classes,)."""
    assert conformity.scores is not None
    assert conformity.classes is not None
    found = np.zeros(n_classes)
    for k in range(n_classes):
        own = np.sort(conformity.scores[conformity.classes == k])
        place = math.floor((len(own) + 1) * (1 - level))
        found[k] = own[place - 1] if place > 0 else 0.0
    return found
