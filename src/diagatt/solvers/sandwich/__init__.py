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

import torch

from diagatt.attention.coupling import n_candidates
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.problem import Samples
from diagatt.solvers.sandwich.covariance import Errors, covariance_of
from diagatt.solvers.sandwich.derivatives import (
    Objective,
    at_fit,
    coupled_pieces,
    curved_scores,
    losses_of,
    penalty_of,
    pieces_of,
)
from diagatt.solvers.sandwich.parameters import (
    blocks_of,
    identified,
    n_parameters,
    order_of,
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
    free = identified(module, names, count, samples.family)
    found = covariance_of(pieces, slope, curvature, samples, order_of(module, names), free)
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
