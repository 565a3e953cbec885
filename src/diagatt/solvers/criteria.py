"""How well a fitted model explains the data, and with how many parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from diagatt.attention.blend import Blend
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.none_row import given_some
from diagatt.families import Family
from diagatt.segments import map_blocks, segment_softmax, segment_sum
from diagatt.solvers.base import Fitted
from diagatt.solvers.gradient.train import predictors, residual_dispersion
from diagatt.solvers.problem import Problem, Samples

# Lower bound of φ̂, as a share of the variance of y.
LEAST_DISPERSION = 1e-12


def n_model_parameters(fitted: Fitted) -> int:
    """Count the parameters of the latent-row model: R + 1 row distributions and the response."""
    module = fitted.module
    d, D = module.n_features, module.score_form.side(module.n_features)
    per_distribution = d * (d + 1) // 2 + d * (D - d)
    response = fitted.solver.n_response_parameters(module)
    return (module.n_heads + 1) * per_distribution + response


def n_shape_parameters(family: Family) -> int:
    """Count the parameters of the family that were estimated besides the predictor."""
    return family.shape.numel() if family.estimates_shape else 0


@torch.no_grad()
def log_densities(module: DiagonalAttention, part: Samples, phi: float = 1.0) -> Tensor:
    """Return log p(y | X) of every sample, (n,), in float64.

    It is the density given the pooled row's predictor, or that of the mixture over rows: log scores
    of both are comparable.
    """
    if module.readout == "pooled":
        z = predictors(module, part).double()
        return part.family.log_density(part.y.double(), z, phi)
    blocks = (part.block(*slices) for slices in module.blocks(part.offsets))
    found = [
        module.log_density(
            b.y, b.values, b.offsets, b.covariates, phi, b.offset, log_prior=b.log_prior
        )
        for b in blocks
    ]
    return torch.cat(found).double()


def response_log_likelihood(fitted: Fitted, problem: Problem) -> float:
    """Return Σ w log p(y | X), with the φ̂ of a mixture, or that of residuals for other fits."""
    module, family = fitted.module, problem.family
    phi = 1.0
    if module.readout == "mixture" and fitted.dispersion is not None:
        phi = fitted.dispersion
    elif family.has_dispersion:
        phi = max(residual_dispersion(module, problem), LEAST_DISPERSION * problem.scale)

    def log_likelihoods(part: Samples) -> list[Tensor]:
        return [(part.weights.double() * log_densities(module, part, phi)).sum()]

    return float(problem.total(log_likelihoods)[0])


def response_bic(fitted: Fitted, problem: Problem) -> float:
    """Return −2 log-likelihood of the responses + (parameters fitted to them)·log n."""
    count = fitted.solver.n_response_parameters(fitted.module) + n_shape_parameters(problem.family)
    price = count * math.log(max(problem.total_weight, 2.0))
    return price - 2 * response_log_likelihood(fitted, problem)


def information_criteria(fitted: Fitted, problem: Problem) -> dict[str, float]:
    """Return log-likelihood, AIC and BIC, of rows and responses where rows have a likelihood.

    Of a blend they are those of the one fit that is reported.
    """
    log_likelihood = fitted.log_likelihood
    if log_likelihood is None:
        log_likelihood = response_log_likelihood(fitted, problem)
        count = fitted.solver.n_response_parameters(fitted.module)
    else:
        count = n_model_parameters(fitted)
    count += n_shape_parameters(problem.family)
    n = max(problem.total_weight, 2.0)
    return {
        "log_likelihood": log_likelihood,
        "n_parameters": count,
        "aic": 2 * count - 2 * log_likelihood,
        "bic": math.log(n) * count - 2 * log_likelihood,
    }


@torch.no_grad()
def unevenness(
    module: DiagonalAttention | Blend,
    problem: Problem,
    completed: Callable[[Samples], Samples] = lambda part: part,
) -> list[float]:
    """Return 1 − mean entropy of the attention relative to uniform, one value per head.

    It is 0 where attention is uniform and 1 where it sits on one row; samples of one row do not
    count. Where rows have weights, attention is uniform if it is proportional to them. `completed`
    fills in missing entries of samples.
    """

    def terms(part: Samples) -> list[Tensor]:
        lengths = part.offsets.diff()
        several = lengths > 1
        seen = completed(part)
        prior = seen.log_prior
        kappa = map_blocks(module.attention, seen.values, seen.offsets, log_prior=prior)
        relative = entropies(kappa, part.offsets, part.log_prior)[several]
        if part.log_prior is None:
            relative = relative / lengths[several, None].to(relative.dtype).log()
        return [relative.double().sum(dim=0), several.sum()]

    def entropies(kappa: Tensor, offsets: Tensor, log_prior: Tensor | None) -> Tensor:
        if isinstance(module, DiagonalAttention) and module.has_none:
            kappa = given_some(kappa, offsets)
        if log_prior is None:
            return segment_sum(-torch.special.xlogy(kappa, kappa), offsets)
        share = segment_softmax(log_prior[:, None], offsets)
        spread_out = segment_sum(-torch.special.xlogy(share, share), offsets)
        gain = segment_sum(torch.special.xlogy(kappa, kappa / share), offsets)
        return (1 - gain / spread_out.clamp(min=1e-300)).clamp(0.0, 1.0)

    relative, count = problem.total(terms)
    return (1 - relative / count).tolist()
