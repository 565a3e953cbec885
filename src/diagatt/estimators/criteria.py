"""How well a fitted model explains the data, and at what price."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import map_blocks, segment_sum
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.training import risk

# Below this many samples a held-out part says too little.
SMALL_SAMPLE = 500


def response_parameters(module: DiagonalAttention, solver: str) -> int:
    """Parameters that were fitted to the response.

    Likelihood learns scores from the rows; gradients learn them from the response too.
    """
    count = module.value.numel() + module.intercept.numel() + module.covariate.numel()
    if solver in ("gradient", "polish"):
        D = module.query_key.matrix().shape[-1]
        count += module.n_heads * D * (D + 1) // 2  # only the symmetric part of W counts
    return count


def model_parameters(module: DiagonalAttention) -> int:
    """Parameters of the latent-row model: R + 1 row distributions and the response."""
    d, D = module.n_features, module.query_key.matrix().shape[-1]
    a_distribution = d * (d + 1) // 2 + d * (D - d)
    return (module.n_heads + 1) * a_distribution + response_parameters(module, "likelihood")


@torch.no_grad()
def response_log_likelihood(module: DiagonalAttention, problem: AnyProblem) -> float:
    """Σ w log p(y | X) with the predictor of the attention-pooled rows."""
    total = problem.total_weight
    loss = risk(module, problem)
    if problem.family.name == "gaussian":
        phi = max(2 * loss, 1e-12 * problem.scale)
        return -0.5 * total * (math.log(2 * math.pi * phi) + 1)

    def normalizers(part: Problem) -> list[Tensor]:
        return [(part.weights * part.family.log_normalizer(part.y.double(), 1.0)).sum()]

    return -total * loss + float(problem.total(normalizers, ahead=0)[0])


def response_bic(module: DiagonalAttention, problem: AnyProblem, solver: str) -> float:
    """−2 log-likelihood of the responses + (parameters fitted to them)·log n."""
    n = problem.total_weight
    price = response_parameters(module, solver) * math.log(max(n, 2.0))
    return price - 2 * response_log_likelihood(module, problem)


def information_criteria(
    module: DiagonalAttention, problem: AnyProblem, solver: str, log_likelihood: float | None
) -> dict[str, float]:
    """Log-likelihood, AIC and BIC: of rows and responses for likelihood, else of responses."""
    if log_likelihood is None:
        log_likelihood = response_log_likelihood(module, problem)
        count = response_parameters(module, solver)
    else:
        count = model_parameters(module)
    n = max(problem.total_weight, 2.0)
    return {
        "log_likelihood": log_likelihood,
        "n_parameters": count,
        "aic": 2 * count - 2 * log_likelihood,
        "bic": math.log(n) * count - 2 * log_likelihood,
    }


@torch.no_grad()
def unevenness(module: DiagonalAttention, problem: AnyProblem) -> list[float]:
    """1 − mean entropy of the attention relative to uniform, one number a head.

    0 where attention is uniform, 1 where it sits on one row; samples of one row do not count.
    """

    def terms(part: Problem) -> list[Tensor]:
        lengths = part.offsets.diff()
        several = lengths > 1
        relative = map_blocks(entropies, part.values, part.offsets)[several]
        relative = relative / lengths[several, None].to(relative.dtype).log()
        return [relative.double().sum(dim=0), several.sum()]

    def entropies(values: Tensor, offsets: Tensor) -> Tensor:
        kappa = module.attention(values, offsets)
        return segment_sum(-torch.special.xlogy(kappa, kappa), offsets)

    relative, count = problem.total(terms)
    return (1 - relative / count).tolist()
