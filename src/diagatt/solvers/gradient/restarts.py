"""Several fits as one model: the average of M fits is a diagonalized attention with M·R heads."""

from __future__ import annotations

import torch

from diagatt.attention.blend import matching_order
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import map_blocks
from diagatt.solvers.problem import Problem, Samples


@torch.no_grad()
def average(modules: list[DiagonalAttention], problem: Problem) -> DiagonalAttention:
    """Return the average of M fits: their heads side by side, values divided by M.

    Heads of later restarts are put in the order in which they attend like the first restart's.
    """
    M, first = len(modules), modules[0]
    orders = [_matching_order(first, module, problem) for module in modules]
    pairs = list(zip(modules, orders, strict=True))
    factors = [f for f in (m.small_factors for m in modules) if f is not None]  # all or none
    key: torch.Tensor | None = None
    if factors:  # M·R matrices of D² would be large
        query = torch.cat([f[0][o] for f, o in zip(factors, orders, strict=True)])
        key = torch.cat([f[1][o] for f, o in zip(factors, orders, strict=True)])
    else:
        query = torch.cat([m.query_key.matrix()[o] for m, o in pairs])
    return DiagonalAttention.with_parameters(
        query,
        key,
        torch.cat([m.value[o] for m, o in pairs]) / M,
        torch.stack([m.intercept for m in modules]).mean(dim=0),
        torch.stack([m.covariate for m in modules]).mean(dim=0),
        none=_none_of(modules),
        **{**first.settings, "groups": M},
    )


def _none_of(modules: list[DiagonalAttention]) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return scores and values of none-rows side by side, values divided by M; all have or none."""
    found = [module.none for module in modules if module.none is not None]
    if not found:
        return None
    scores, values = zip(*found, strict=True)
    return torch.cat(scores), torch.cat(values) / len(modules)


def _matching_order(
    first: DiagonalAttention, module: DiagonalAttention, problem: Problem
) -> list[int]:
    """Return the order in which the module's heads attend most like those of the first one."""
    R = module.n_heads
    if R == 1 or module is first:
        return list(range(R))

    def overlaps(part: Samples) -> list[torch.Tensor]:
        rows, prior = (part.values, part.offsets), part.log_prior
        ours, theirs = (map_blocks(m.attention, *rows, log_prior=prior) for m in (module, first))
        return [theirs.T @ ours]  # (R, R)

    (overlap,) = problem.total(overlaps)
    return matching_order(overlap)
