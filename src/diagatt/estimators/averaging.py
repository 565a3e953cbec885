"""Several fits as one model: the average of M fits is a diagonalized attention with M·R heads."""

from __future__ import annotations

import torch
from scipy.optimize import linear_sum_assignment

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.parameterizations import FactoredQueryKey
from diagatt.segments import map_blocks
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem


@torch.no_grad()
def average(modules: list[DiagonalAttention], problem: AnyProblem) -> DiagonalAttention:
    """Average of M fits: their heads side by side, values divided by M.

    Heads of later restarts are put in the order in which they attend like the first restart's.
    """
    M, first = len(modules), modules[0]
    factors = [f for f in (m.small_factors for m in modules) if f is not None]  # all or none
    result = DiagonalAttention(
        first.n_features,
        M * first.n_heads,
        first.n_outputs,
        len(first.covariate),
        temperature=first.temperature,
        parameterization="factored" if factors else "full",
        rank=factors[0][0].shape[-1] if factors else None,
        score_form=first.score_form,
        coupling=first.coupling,
        groups=M,
    ).to(first.value)
    orders = [_matching_order(first, module, problem) for module in modules]
    pairs = list(zip(modules, orders, strict=True))
    if isinstance(result.query_key, FactoredQueryKey):  # M·R matrices of D² would be large
        queries = [query[o] for (query, _), o in zip(factors, orders, strict=True)]
        keys = [key[o] for (_, key), o in zip(factors, orders, strict=True)]
        result.query_key.set_factors(torch.cat(queries), torch.cat(keys))
    else:
        result.query_key.set_matrix(torch.cat([m.query_key.matrix()[o] for m, o in pairs]))
    result.value.copy_(torch.cat([m.value[o] for m, o in pairs]) / M)
    result.intercept.copy_(torch.stack([m.intercept for m in modules]).mean(dim=0))
    result.covariate.copy_(torch.stack([m.covariate for m in modules]).mean(dim=0))
    return result


@torch.no_grad()
def copy_parameters(source: DiagonalAttention, target: DiagonalAttention, restart: int) -> None:
    """Start a module where an earlier fit ended (at its restart, if it had several)."""
    heads = target.n_heads
    restarts = source.n_heads // heads
    lines = slice(restart % restarts * heads, (restart % restarts + 1) * heads)
    target.query_key.set_matrix(source.query_key.matrix()[lines])
    target.value.copy_(source.value[lines] * restarts)
    target.intercept.copy_(source.intercept)
    target.covariate.copy_(source.covariate)


def _matching_order(
    first: DiagonalAttention, module: DiagonalAttention, problem: AnyProblem
) -> list[int]:
    """Order of the module's heads in which they attend most like the first module's."""
    R = module.n_heads
    if R == 1 or module is first:
        return list(range(R))

    def overlaps(part: Problem) -> list[torch.Tensor]:
        ours, theirs = (map_blocks(m.attention, part.values, part.offsets) for m in (module, first))
        return [theirs.T @ ours]  # (R, R)

    (overlap,) = problem.total(overlaps)
    return linear_sum_assignment(-overlap.cpu().numpy())[1].tolist()
