"""How well a fitted model explains the responses, and at what price."""

from __future__ import annotations

import math

import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.problem import Problem
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


@torch.no_grad()
def response_log_likelihood(module: DiagonalAttention, problem: Problem) -> float:
    """Σ w log p(y | X) with the predictor of the attention-pooled rows."""
    total = float(problem.weights.sum())
    loss = risk(module, problem)
    if problem.family.name == "gaussian":
        phi = max(2 * loss, 1e-12 * problem.scale)
        return -0.5 * total * (math.log(2 * math.pi * phi) + 1)
    normalizer = problem.family.log_normalizer(problem.y.double(), 1.0)
    return -total * loss + float((problem.weights * normalizer).sum())


def response_bic(module: DiagonalAttention, problem: Problem, solver: str) -> float:
    """−2 log-likelihood of the responses + (parameters fitted to them)·log n."""
    n = float(problem.weights.sum())
    price = response_parameters(module, solver) * math.log(max(n, 2.0))
    return price - 2 * response_log_likelihood(module, problem)
