"""Heads have no order of their own: those of several fits are put in one, by what they look at."""

from __future__ import annotations

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention


def matching_order(overlap: Tensor) -> list[int]:
    """Return the order in which the heads of one fit look most like those of another.

    Parameters
    ----------
    overlap : tensor of shape (R, R)
        Σ_j κ_j κ'_j over all rows, of the heads whose order is kept (lines) and of those that are
        put in order (columns).

    Examples
    --------
    >>> matching_order(torch.tensor([[0.1, 2.0], [3.0, 0.4]]))
    [1, 0]
    """
    return linear_sum_assignment(-overlap.cpu().numpy())[1].tolist()


@torch.no_grad()
def with_heads_in_order(module: DiagonalAttention, order: list[int]) -> DiagonalAttention:
    """Return the same attention with its heads in a different order."""
    if order == list(range(module.n_heads)):
        return module
    query, key = module.small_factors or (module.query_key.matrix(), None)
    return DiagonalAttention.with_parameters(
        *(query[order], None if key is None else key[order], module.value[order]),
        *(module.intercept, module.covariate),
        temperature=module.temperature,
        score_form=module.score_form.name,
        coupling=module.coupling,
        readout=module.readout,
        family=module.family,
    )
