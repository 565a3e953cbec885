r"""Heads that know their rows are distinct (AᵀA = I, below equation eq:structure_decomp_R).

Given scores, the rows of R heads have the joint distribution

.. math:: P(j_1, …, j_R) ∝ \prod_k e^{ψ_{j_k k}} \; 1\{j_1, …, j_R \text{ distinct}\}.

It is summed exactly over the K best rows of each head; the rest carries next to no mass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.segments import sample_of_row

# Joint assignments a sample: 20 rows each for two heads, 10 for three.
MOST_ASSIGNMENTS = 1000
MOST_CANDIDATES = 20


def n_candidates(n_heads: int) -> int:
    """Rows a head that take part in the joint distribution; at least one more than heads."""
    return max(min(MOST_CANDIDATES, int(MOST_ASSIGNMENTS ** (1 / n_heads) + 1e-9)), n_heads + 1)


def top_candidates(scores: Tensor, offsets: Tensor, K: int) -> tuple[Tensor, Tensor]:
    """Best K rows of every sample and head.

    Returns
    -------
    best : tensor of shape (n, R, K)
        Scores; −∞ where a sample has fewer than K rows.
    rows : tensor of shape (n, R, K)
        Packed row numbers; of the sample's first row where there is none.
    """
    n, R = len(offsets) - 1, scores.shape[1]
    lengths = offsets.diff()
    longest = int(lengths.max())
    if int(lengths.min()) == longest:
        dense = scores.reshape(n, longest, R)
    else:
        sample = sample_of_row(offsets)
        place = torch.arange(len(scores), device=scores.device) - offsets[:-1][sample]
        dense = scores.new_full((n, longest, R), -torch.inf)
        dense = dense.index_put((sample, place), scores)
    best, place = dense.permute(0, 2, 1).topk(min(K, longest), dim=2)  # (n, R, K)
    rows = offsets[:-1, None, None] + torch.where(torch.isfinite(best), place, 0)
    return best, rows


def joint_log_weights(best: Tensor, rows: Tensor, distinct: bool = True) -> Tensor:
    """Unnormalized log P of every assignment of candidates to heads, (n, K, …, K), R axes."""
    n, R, K = best.shape
    total = best.new_zeros((n,) + (1,) * R)
    for k in range(R):
        total = total + along(best[:, k], k, R)
    if distinct:
        for k in range(R):
            for other in range(k):
                same = along(rows[:, k], k, R) == along(rows[:, other], other, R)
                total = total.masked_fill(same, -torch.inf)
    return total


def along(x: Tensor, axis: int, n_axes: int) -> Tensor:
    """Put (n, K) on one of several assignment axes: (n, 1, …, K, …, 1)."""
    return x.reshape(len(x), *(-1 if a == axis else 1 for a in range(n_axes)))


def head_marginal(joint: Tensor, k: int) -> Tensor:
    """Sum an (n, K, …, K) tensor over all heads but k, (n, K)."""
    others = [a + 1 for a in range(joint.ndim - 1) if a != k]
    return joint.sum(dim=others) if others else joint


def coupled_attention(scores: Tensor, offsets: Tensor) -> Tensor:
    """Posterior of each head's row when rows are distinct, (N, R); columns sum to 1 in a sample.

    Every sample needs at least R rows.

    Examples
    --------
    >>> scores = torch.tensor([[5.0, 4.0], [0.0, 3.0]])  # both heads like row 0 best
    >>> coupled_attention(scores, torch.tensor([0, 2])).round(decimals=3)
    tensor([[0.9820, 0.0180],
            [0.0180, 0.9820]])
    """
    n, R = len(offsets) - 1, scores.shape[1]
    best, rows = top_candidates(scores, offsets, n_candidates(R))
    log_weights = joint_log_weights(best, rows).flatten(1)
    joint = torch.softmax(log_weights, dim=1).reshape((n,) + (best.shape[2],) * R)
    heads = [
        scores.new_zeros(len(scores)).index_add(
            0, rows[:, k].flatten(), head_marginal(joint, k).flatten()
        )
        for k in range(R)
    ]
    return torch.stack(heads, dim=1)
