r"""Standard errors that are valid for any distribution of rows and responses: the sandwich.

A fit that minimizes :math:`\sum_i w_i ℓ_i(θ) + P(θ)` over all its parameters θ (scores, values,
intercept, effects of covariates, dispersion) has approximately the covariance

.. math:: J^{-1} \Bigl(\sum_i \frac{s_i s_i^⊤}{1 - h_i}\Bigr) J^{-⊤}, \qquad
          s_i = w_i ∇ℓ_i, \quad J = \sum_i w_i ∇²ℓ_i + ∇²P, \quad
          h_i = q \frac{s_i^⊤ J^{-1} s_i}{\sum_l s_l^⊤ J^{-1} s_l} .

A sample that influences the fit has a smaller score there than at the true parameters. If all
samples have the same influence, h = q/n, and the correction is the usual n/(n − q). Where rows have
heavy tails, some samples have much more influence, and the correction is distributed accordingly.
The squared bias by the penalty, :math:`J^{-1}∇P` times its transpose, is added to the sum:
otherwise intervals of shrunken estimates would cover the truth less often than stated.

q counts parameters as far as the penalty leaves them free, tr J⁻¹(J − ∇²P). Scores and effects of
rows are linear in θ except for factors of W, so that derivatives are those of the loss in a few
numbers per row, by autograd: a new family needs nothing of its own.
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.attention.coupling import n_candidates
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.problem import Samples, group_sums
from diagatt.solvers.sandwich.derivatives import (
    Objective,
    Pieces,
    at_fit,
    coupled_pieces,
    curved_scores,
    losses_of,
    penalty_of,
    pieces_of,
)
from diagatt.solvers.sandwich.parameters import (
    basis_without,
    blocks_of,
    constant_values,
    n_parameters,
    order_of,
    unidentified,
    with_none_rows,
)

__all__ = ["BASELINE", "Errors", "Objective", "sandwich_errors", "too_many"]

# Rows times parameters, and rows times squared parameters, up to which errors are computed in fit.
MOST_ENTRIES, MOST_WORK = 30_000_000, 20_000_000_000
# Assignments of rows to several heads, over all samples, up to which they are.
MOST_ASSIGNMENTS = 150_000
# Parameters per sample from which there are no errors, however few of them the penalty leaves free.
HOPELESS = 2.0

# Why Cox's model has no errors if rows are latent.
BASELINE = (
    "no standard errors: where rows are latent, the baseline hazard is estimated in turns with the "
    "fit; solver='gradient' has them, and a weibull fit."
)
# Samples per parameter below which no error is trusted.
SAMPLES_PER_PARAMETER = 2.0
# Curvature, relative to the largest of a scaled matrix, below which a direction is not identified.
FLAT = 1e-9
# Largest leverage of a sample: one that determines a parameter alone leaves no residual.
MOST_LEVERAGE = 0.9
# Newton step to the minimum, in standard errors, above which a fit is not at its minimum.
MOST_STEP = 0.5


def sandwich_errors(
    module: DiagonalAttention, samples: Samples, phi: float | None, objective: Objective
) -> Errors:
    """Return the covariance of a fit's values, intercept and covariate effects.

    Parameters
    ----------
    module : DiagonalAttention
        The fit, as a function of the samples' rows.
    samples : Samples
        With `groups`, samples of one group may depend on each other.
    phi : float, optional
        φ̂ of a mixture.
    objective : Objective
    """
    if module.groups > 1:
        return Errors(None, "averaged restarts have no standard errors: set n_restarts=1.")
    module, samples = deepcopy(module).double(), samples.to(torch.float64)
    count = n_parameters(module, samples, phi, objective.scores)
    if reason := too_many(count, samples, module.n_heads):
        return Errors(None, reason)
    blocks, names = blocks_of(module, samples, phi, objective.scores)
    log_phi = samples.y.new_tensor(1.0 if phi is None else phi).log()
    at = at_fit(module, samples, log_phi)
    if samples.family.couples_samples:
        if module.readout != "pooled" or module.has_none:
            return Errors(None, BASELINE)
        pieces, of_scores = coupled_pieces(module, at, blocks, samples)
    else:
        candidates = with_none_rows(samples) if module.has_none else samples
        losses = losses_of(module, candidates, phi is not None)
        pieces, of_scores = pieces_of(losses, at, blocks, candidates)
    pieces.hessian += curved_scores(module, samples, of_scores, names, count)
    slope, curvature = penalty_of(module, log_phi, objective, names, count)
    flat = unidentified(module, names, count, samples.family)
    wanted, constant = order_of(module, names), constant_values(samples, module.n_heads)
    found = covariance_of(pieces, slope, curvature, samples, wanted, constant, flat)
    if found.covariance is not None and samples.family.couples_samples:
        place = module.n_heads * samples.n_features  # of the intercept, which is not estimated
        found.covariance[place] = found.covariance[:, place] = torch.nan
    return found


def too_many(count: int, samples: Samples, n_heads: int) -> str:
    """Return why there are no errors for this many parameters, before any work; "" if there are."""
    n, work = samples.n_samples, samples.n_rows * count
    rows = samples.offsets.diff().clamp(max=n_candidates(n_heads))
    if n_heads > 1 and float((rows.double() ** n_heads).sum()) > MOST_ASSIGNMENTS:
        return f"no standard errors: rows of {n} samples can be assigned to heads in too many ways."
    if count > HOPELESS * n:
        return f"no standard errors: {n} samples are too few for {count} parameters."
    if work > MOST_ENTRIES or work * count > MOST_WORK:
        return f"{count} parameters of {samples.n_rows} rows: too many to give errors."
    return ""


class Errors(NamedTuple):
    """Covariance of (V, b, γ), output by output, or None; and a sentence about it.

    A solver that estimates the share of samples with a row of interest adds an interval for it.
    """

    covariance: Tensor | None
    note: str
    prevalence_interval: tuple[float, float] | None = None


def covariance_of(
    pieces: Pieces,
    slope: Tensor,
    curvature: Tensor,
    samples: Samples,
    wanted: Tensor,
    constant: Tensor,
    flat: list[Tensor],
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
        Places of the P parameters.
    constant : bool tensor of shape (P,)
        Which of them are values of constant features: they are held fixed and have no errors.
    flat : list of tensors
        Directions that do not change the model.
    check_minimum : bool
        Whether to refuse fits that ended far from their minimum.
    """
    n, units = samples.n_samples, pieces.scores
    fixed = torch.eye(len(slope)).to(slope)[wanted[constant]]
    B = basis_without([*flat, *fixed], len(slope)).to(slope)
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
        units = group_sums(units, samples.groups)
        if len(units) <= free:  # their sums cannot vary in as many directions
            return Errors(
                None,
                f"no standard errors: {len(units)} groups are too few for {free:.0f} free "
                "parameters; raise ridges, or lower the count of features.",
            )
        correction = len(units) / max(len(units) - 1, 1)
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
    covariance[constant] = covariance[:, constant] = torch.nan
    clusters = "" if samples.groups is None else f", {len(units)} clusters"
    return Errors(covariance, f"sandwich over {free:.0f} free parameters{clusters}")
