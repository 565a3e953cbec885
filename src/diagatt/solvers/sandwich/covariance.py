"""The sandwich itself: J⁻¹ (Σ s sᵀ/(1 − h)) J⁻ᵀ of scores s, their Hessian J and leverages h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.solvers.problem import Samples

# Samples per parameter below which no error is trusted.
SAMPLES_PER_PARAMETER = 2.0
# Curvature, relative to the largest of a scaled matrix, below which a direction is not identified.
FLAT = 1e-9
# Largest leverage of a sample: one that determines a parameter alone leaves no residual.
MOST_LEVERAGE = 0.9
# Newton step to the minimum, in standard errors, above which a fit is not at its minimum.
MOST_STEP = 0.5


class Errors(NamedTuple):
    """Covariance of (V, b, γ), output by output, or None; and a sentence about it.

    A solver that estimates the share of samples with a row of interest adds an interval for it.
    """

    covariance: Tensor | None
    note: str
    prevalence_interval: tuple[float, float] | None = None


@dataclass
class Pieces:
    """Per-sample scores s_i (n, q) and J (q, q) without the penalty."""

    scores: Tensor
    hessian: Tensor


def covariance_of(
    pieces: Pieces,
    slope: Tensor,
    curvature: Tensor,
    samples: Samples,
    wanted: Tensor,
    basis: Tensor | None = None,
    check_minimum: bool = True,
) -> Errors:
    """Return the covariance of the wanted parameters, or why there is none.

    Parameters
    ----------
    pieces : Pieces
    slope, curvature : tensors of shapes (q,) and (q, q)
        Of the penalty.
    samples : Samples
    wanted : tensor of int
        Places of the parameters.
    basis : tensor of shape (q, m), optional
        Directions that are identified; all by default.
    check_minimum : bool
        Whether to refuse fits that ended far from their minimum.
    """
    n, units = samples.n_samples, pieces.scores
    B = torch.eye(len(slope)).to(slope) if basis is None else basis
    J = B.T @ (pieces.hessian + curvature) @ B
    J = (J + J.T) / 2
    scale = J.diagonal().abs().clamp(min=1e-300).rsqrt()
    values, vectors = torch.linalg.eigh(scale[:, None] * J * scale)
    largest = float(values[-1])
    if not largest > 0 or float(values[0]) < -1e-6 * largest:
        return Errors(None, "no standard errors: the fit is not at a minimum in every direction.")
    kept = values > FLAT * largest
    half = B @ (scale[:, None] * vectors[:, kept])
    inverse = half / values[kept] @ half.T  # (q, q)
    free = float(kept.sum()) - float((inverse * curvature).sum())  # parameters
    if n <= SAMPLES_PER_PARAMETER * free:
        return Errors(
            None,
            f"no standard errors: {n} samples are too few for {free:.0f} free parameters; raise "
            "ridges, lower the count of features, or use more samples.",
        )
    correction = 1.0
    if samples.groups is not None:
        codes = torch.unique(samples.groups, return_inverse=True)[1]
        count = int(codes.max()) + 1
        units = units.new_zeros(count, units.shape[1]).index_add(0, codes, units)
        correction = count / max(count - 1, 1)
    influence = units @ inverse  # (n, q)
    pulls = (influence * units).sum(dim=1)
    leverage = free * pulls / pulls.sum().clamp(min=1e-300)
    root = influence[:, wanted] / (1 - leverage.clamp(max=MOST_LEVERAGE)).sqrt()[:, None]  # (n, P)
    covariance = correction * root.T @ root
    step = (inverse @ (pieces.scores.sum(dim=0) + slope))[wanted].abs()
    errors = covariance.diagonal().sqrt()
    pull = (inverse @ slope)[wanted]
    covariance = covariance + torch.outer(pull, pull)
    if check_minimum and bool((step > MOST_STEP * errors).any()):
        far = float((step / errors).nan_to_num().max())
        return Errors(
            None,
            f"no standard errors: the fit ended {far:.1g} of one before its minimum; use "
            "optimizer='lbfgs' or more epochs.",
        )
    clusters = "" if samples.groups is None else f", {len(units)} clusters"
    return Errors(covariance, f"sandwich over {free:.0f} free parameters{clusters}")
