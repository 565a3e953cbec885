r"""Samples without a row of interest: a further, virtual row that stands for "none".

Where a sample need not have an active row, the none-row takes part in the softmax beside its p
rows. It has a further feature, which is 1 there and 0 in all other rows, and no other features; so
it has a score ν of its own and a value a:

.. math:: κ_\text{none} = \frac{p e^{ν/τ}}{p e^{ν/τ} + \sum_j e^{ψ_j/τ}}, \qquad
          z_\text{none} = a + b .

The factor p makes the probability of "none" independent of the count of rows: if rows are drawn
from densities :math:`f_1` (active) and :math:`f_0`, ψ is their log ratio and a sample has an active
row with probability π, then :math:`ν = \log\frac{1 - π}{π}` is the same for all samples.

After `with_none`, the none-row is treated like all other rows.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.segments import one_longer, segment_max, segment_sum, spread, with_last

# Added to the log probability of "none" in samples whose active row is known.
IMPOSSIBLE = -1e4


class Candidates(NamedTuple):
    """Rows that may be active; the none-row of a sample, if there is one, follows its rows."""

    scores: Tensor  # (M, R)
    effects: Tensor  # (M, R, K)
    offsets: Tensor  # (n + 1,)


def with_none(
    scores: Tensor,
    effects: Tensor,
    offsets: Tensor,
    none_score: Tensor,
    none_value: Tensor,
    temperature: float = 1.0,
) -> Candidates:
    """Return rows and none-rows with their scores and effects.

    Parameters
    ----------
    scores, effects, offsets
        Of rows: (N, R), (N, R, K) and (n + 1,).
    none_score : tensor of shape (R,)
        ν.
    none_value : tensor of shape (R, K)
        a.
    temperature : float
        τ, which will divide all scores.

    Examples
    --------
    >>> rows = torch.zeros(2, 1), torch.ones(2, 1, 1), torch.tensor([0, 2])
    >>> with_none(*rows, torch.zeros(1), torch.zeros(1, 1)).scores.exp()[:, 0].round(decimals=4)
    tensor([1., 1., 2.])
    """
    own = none_scores(offsets, none_score, temperature)  # (n, R)
    value = none_value.expand(len(offsets) - 1, -1, -1)  # (n, R, K)
    return Candidates(
        with_last(scores, own, offsets), with_last(effects, value, offsets), one_longer(offsets)
    )


def none_scores(offsets: Tensor, none_score: Tensor, temperature: float = 1.0) -> Tensor:
    """Return ν + τ log p of every sample, (n, R)."""
    return temperature * offsets.diff().to(none_score.dtype).log()[:, None] + none_score


def none_probability(kappa: Tensor, offsets: Tensor) -> Tensor:
    """Return the probability of "none", (n, R), which attention weights (N, R) leave."""
    return (1 - segment_sum(kappa, offsets)).clamp(min=0.0)


def given_some(kappa: Tensor, offsets: Tensor) -> Tensor:
    """Return attention weights (N, R) given that the sample has a row of interest."""
    some = segment_sum(kappa, offsets).clamp(min=torch.finfo(kappa.dtype).tiny)
    return kappa / spread(some, offsets)


def known_with_none(log_known: Tensor, offsets: Tensor) -> Tensor:
    """Return `log_known` of rows and none-rows: where the active row is known, it is not "none".

    Examples
    --------
    >>> known_with_none(torch.tensor([-9.0, 0.0, 0.0, 0.0]), torch.tensor([0, 2, 4])) < 0
    tensor([ True, False,  True, False, False, False])
    """
    is_known = segment_max(-log_known, offsets) > 0  # some row is ruled out
    last = torch.where(is_known, IMPOSSIBLE, 0.0).to(log_known)
    return with_last(log_known, last, offsets)
