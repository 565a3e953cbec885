r"""The joint distribution of the rows of several heads, and the mixture over those rows.

If heads choose distinct rows (AᵀA = I, below equation eq:structure_decomp_R), the rows of R heads
have the joint distribution

.. math:: P(j_1, …, j_R) ∝ \prod_k e^{ψ_{j_k k}} \; 1\{j_1, …, j_R \text{ distinct}\},

given their scores. It is summed exactly over the K best rows of each head; all other rows have
hardly any mass. A choice of one row per head is called an assignment.

The mixture over rows takes attention as the probability that a row is active. Its response is a GLM
of the active row, not of the pooled row, so that with one head

.. math:: p(y | X) = \sum_j κ_j\, p(y | ⟨v, x_j⟩ + b, φ), \qquad
          \mathrm E(y | X) = \sum_j κ_j\, g^{-1}(⟨v, x_j⟩ + b).

With R heads the sums run over assignments, whose predictors are :math:`\sum_r ⟨v_r, x_{j_r}⟩ + b`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.segments import (
    map_blocks,
    row_positions,
    sample_of_row,
    segment_argmax,
    segment_logsumexp,
    segment_softmax,
    spread,
)

COUPLINGS = ("independent", "distinct")
READOUTS = ("pooled", "mixture")
# Joint assignments per sample: 20 rows each for two heads, 10 for three.
MOST_ASSIGNMENTS = 1000
MOST_CANDIDATES = 20
# Padded scores may take this many times the memory of the scores; beyond, rows are sorted.
MOST_PADDING = 4


def is_distinct(coupling: str) -> bool:
    """Return whether the heads choose different rows."""
    return coupling == "distinct"


def least_rows(coupling: str, n_heads: int) -> int:
    """Return how many rows every sample needs."""
    return n_heads if is_distinct(coupling) else 1


def attend(scores: Tensor, offsets: Tensor, coupling: str, groups: int = 1) -> Tensor:
    """Return the attention of all heads, (N, R); heads are coupled within groups of equal size."""
    if least_rows(coupling, scores.shape[1] // groups) == 1:
        return segment_softmax(scores, offsets)
    parts = scores.chunk(groups, dim=1)
    return torch.cat([coupled_attention(part, offsets) for part in parts], dim=1)


def best_rows(weights: Tensor, offsets: Tensor, coupling: str) -> Tensor:
    """Return the row of interest of each head, (N, R) → (n, R), distinct if heads are coupled."""
    alone = least_rows(coupling, weights.shape[1]) == 1
    return map_blocks(segment_argmax if alone else distinct_argmax, weights, offsets)


def n_candidates(n_heads: int) -> int:
    """Return how many rows per head take part in the joint distribution; more than heads."""
    return max(min(MOST_CANDIDATES, int(MOST_ASSIGNMENTS ** (1 / n_heads) + 1e-9)), n_heads + 1)


def top_candidates(scores: Tensor, offsets: Tensor, K: int) -> tuple[Tensor, Tensor]:
    """Return the best K rows of every sample and head.

    Returns
    -------
    best : tensor of shape (n, R, K)
        Scores; −∞ where a sample has fewer than K rows.
    rows : tensor of shape (n, R, K)
        Indices of packed rows; that of the sample's first row where there is none.
    """
    n, R = len(offsets) - 1, scores.shape[1]
    lengths = offsets.diff()
    longest = int(lengths.max())
    if int(lengths.min()) == longest:
        dense = scores.reshape(n, longest, R)
    elif n * longest > MOST_PADDING * len(scores):
        return _top_candidates_by_sorting(scores, offsets, min(K, longest))
    else:
        sample = sample_of_row(offsets)
        place = row_positions(offsets)
        dense = scores.new_full((n, longest, R), -torch.inf)
        dense = dense.index_put((sample, place), scores)
    best, place = dense.permute(0, 2, 1).topk(min(K, longest), dim=2)  # (n, R, K)
    rows = offsets[:-1, None, None] + torch.where(torch.isfinite(best), place, 0)
    return best, rows


def _top_candidates_by_sorting(scores: Tensor, offsets: Tensor, K: int) -> tuple[Tensor, Tensor]:
    n, R = len(offsets) - 1, scores.shape[1]
    sample = sample_of_row(offsets)
    place = row_positions(offsets)
    among_best = place < K
    line, column = sample[among_best], place[among_best]
    best = scores.new_full((n, R, K), -torch.inf)
    rows = offsets[:-1, None, None].repeat(1, R, K)
    for r in range(R):
        order = scores[:, r].detach().argsort(descending=True, stable=True)
        order = order[sample[order].argsort(stable=True)][among_best]  # best first, by sample
        head = torch.full_like(line, r)
        best = best.index_put((line, head, column), scores[order, r])
        rows[line, r, column] = order
    return best, rows


def joint_log_weights(best: Tensor, rows: Tensor, distinct: bool = True) -> Tensor:
    """Return the unnormalized log P of assignments of candidates to heads, (n, K, …, K), R axes."""
    n, R, _ = best.shape
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
    """Return (n, K) along one of several assignment axes, (n, 1, …, K, …, 1)."""
    return x.reshape(len(x), *(-1 if a == axis else 1 for a in range(n_axes)))


def head_marginal(joint: Tensor, k: int) -> Tensor:
    """Sum an (n, K, …, K) tensor over all heads but k, (n, K)."""
    others = [a + 1 for a in range(joint.ndim - 1) if a != k]
    return joint.sum(dim=others) if others else joint


def row_marginals(joint: Tensor, rows: Tensor, n_rows: int) -> Tensor:
    """Return the probability of every row for each head, (N, R), of assignments (n, K, …, K)."""
    heads = [
        joint.new_zeros(n_rows).index_add(
            0, rows[:, k].flatten(), head_marginal(joint, k).flatten()
        )
        for k in range(rows.shape[1])
    ]
    return torch.stack(heads, dim=1)


def coupled_attention(scores: Tensor, offsets: Tensor) -> Tensor:
    """Return the posterior of each head's row when rows are distinct, (N, R); columns sum to 1.

    Every sample needs at least R rows.

    Examples
    --------
    >>> scores = torch.tensor([[5.0, 4.0], [0.0, 3.0]])  # row 0 scores best for both heads
    >>> coupled_attention(scores, torch.tensor([0, 2])).round(decimals=3)
    tensor([[0.9820, 0.0180],
            [0.0180, 0.9820]])
    """
    n, R = len(offsets) - 1, scores.shape[1]
    best, rows = top_candidates(scores, offsets, n_candidates(R))
    log_weights = joint_log_weights(best, rows).flatten(1)
    joint = torch.softmax(log_weights, dim=1).reshape((n,) + (best.shape[2],) * R)
    return row_marginals(joint, rows, len(scores))


def distinct_argmax(weights: Tensor, offsets: Tensor) -> Tensor:
    """Return distinct rows, one per head, of largest product of weights, (N, R) → (n, R).

    Examples
    --------
    >>> distinct_argmax(torch.tensor([[0.9, 0.6], [0.1, 0.4]]), torch.tensor([0, 2]))
    tensor([[0, 1]])
    """
    n, R = len(offsets) - 1, weights.shape[1]
    best, rows = top_candidates(weights.double().clamp(min=1e-300).log(), offsets, n_candidates(R))
    K = best.shape[2]
    place = joint_log_weights(best, rows).flatten(1).argmax(dim=1)  # (n,) of K^R assignments
    axes = torch.unravel_index(place, (K,) * R)
    chosen = torch.stack([rows[torch.arange(n), k, axes[k]] for k in range(R)], dim=1)
    return chosen - offsets[:-1, None]


class Assignments(NamedTuple):
    """All assignments of rows to heads, sample by sample, one line per assignment."""

    log_probability: Tensor  # (M,)
    predictor: Tensor  # (M, K)
    offsets: Tensor  # (n + 1,)


def assignments(
    scores: Tensor, effects: Tensor, shared: Tensor, offsets: Tensor, distinct: bool
) -> Assignments:
    """Return all assignments of rows to heads with their probabilities and predictors.

    Parameters
    ----------
    scores : tensor of shape (N, R)
        ψ/τ of packed rows.
    effects : tensor of shape (N, R, K)
        ⟨v_r, x_j⟩.
    shared : tensor of shape (n, K)
        The part of the predictor that all rows of a sample have in common.
    offsets : tensor of shape (n + 1,)
    distinct : bool
        Whether the heads choose different rows.

    Examples
    --------
    >>> scores, offsets = torch.zeros(3, 1), torch.tensor([0, 2, 3])
    >>> found = assignments(scores, torch.ones(3, 1, 1), torch.zeros(2, 1), offsets, True)
    >>> found.log_probability.exp()
    tensor([0.5000, 0.5000, 1.0000])
    """
    log_weights, z, places = weighted_assignments(scores, effects, shared, offsets, distinct)
    total = segment_logsumexp(log_weights, places)
    return Assignments(log_weights - spread(total, places), z, places)


def weighted_assignments(
    scores: Tensor, effects: Tensor, shared: Tensor, offsets: Tensor, distinct: bool
) -> Assignments:
    """Return assignments with summed scores instead of log probabilities."""
    n, R = len(offsets) - 1, scores.shape[1]
    if R == 1:
        return Assignments(scores[:, 0], effects[:, 0] + spread(shared, offsets), offsets)
    best, rows = top_candidates(scores, offsets, n_candidates(R))  # (n, R, C)
    log_weights = joint_log_weights(best, rows, distinct).flatten(1)
    z = shared.reshape(n, *[1] * R, -1)
    for r in range(R):
        own = effects[rows[:, r], r]  # (n, C, K)
        z = z + own.reshape(n, *(-1 if a == r else 1 for a in range(R)), own.shape[-1])
    per_sample = log_weights.shape[1]  # C^R
    places = torch.arange(n + 1, device=offsets.device) * per_sample
    return Assignments(log_weights.flatten(), z.reshape(n * per_sample, -1), places)
