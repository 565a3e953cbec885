r"""The mixture over rows: one row of a sample is active, and attention is its probability.

The response is a GLM of the active row, not of the pooled one, so that

.. math:: p(y | X) = \sum_j κ_j\, p(y | ⟨v, x_j⟩ + b, φ), \qquad
          \mathrm E(y | X) = \sum_j κ_j\, g^{-1}(⟨v, x_j⟩ + b).

With R heads the sum runs over assignments (j_1, …, j_R) of rows to heads, the predictor is
:math:`\sum_r ⟨v_r, x_{j_r}⟩ + b`, and assignments have the distribution of `coupling`, over the
best rows of each head.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.attention.coupling import joint_log_weights, n_candidates, top_candidates
from diagatt.segments import segment_logsumexp, spread

READOUTS = ("pooled", "mixture")


class Assignments(NamedTuple):
    """Which rows may be active: one line per assignment, those of a sample stand together."""

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
        What all rows of a sample share of the predictor.
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
    """Return assignments with sums of scores in the place of log probabilities."""
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
