r"""Single rows under a fitted model: their probabilities, and the predictors that they imply.

The rows of a sample have scores ψ_j and effects ⟨v, x_j⟩. Together with the terms that all rows
share, row j has the predictor ⟨v, x_j⟩ + b and the weight κ_j. Averaged fits are taken as one fit:
their weights are averaged, and so are their predictors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.attention.blend import Blend, with_mapped
from diagatt.attention.coupling import (
    Assignments,
    assignments,
    attend,
    is_distinct,
    n_candidates,
    row_marginals,
    top_candidates,
    weighted_assignments,
)
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import segment_softmax, spread

# κ below this has the same logarithm.
LEAST_WEIGHT = 1e-35


class RowTerms(NamedTuple):
    """Scores, effects and shared terms of samples."""

    scores: Tensor  # (N, R), divided by the temperature
    effects: Tensor  # (N, R, K)
    shared: Tensor  # (n, K)
    offsets: Tensor  # (n + 1,)
    coupling: str
    has_none: bool = False  # whether the last row of each sample is its none-row

    def weights(self, temperature: float = 1.0) -> Tensor:
        """Return κ of scores divided by a temperature, (N, R), without none-rows."""
        return self._of_rows(attend(self.scores / temperature, self.offsets, self.coupling))

    def _of_rows(self, kappa: Tensor) -> Tensor:
        """Return weights without those of none-rows."""
        if not self.has_none:
            return kappa
        is_row = torch.ones(len(kappa), dtype=torch.bool, device=kappa.device)
        is_row[self.offsets[1:] - 1] = False
        return kappa[is_row]

    def weights_given(self, log_density: Callable[[Tensor], Tensor]) -> Tensor:
        """Return P(row j is active | X, y) of every head, (N, R).

        `log_density` maps predictors z, (M, K), to log p(y | z), (M,). With several heads, sums run
        over the best rows of each, as in `coupling`.
        """
        n, R = len(self.offsets) - 1, self.scores.shape[1]
        if R == 1:
            z = self.effects[:, 0] + spread(self.shared, self.offsets)
            kappa = segment_softmax(self.scores + log_density(z)[:, None], self.offsets)
            return self._of_rows(kappa)
        found = weighted_assignments(*self[:4], is_distinct(self.coupling))
        _, rows = top_candidates(self.scores, self.offsets, n_candidates(R))  # (n, R, C)
        total = (found.log_probability + log_density(found.predictor)).reshape(n, -1)
        joint = torch.softmax(total, dim=1).reshape(n, *(rows.shape[2],) * R)
        return row_marginals(joint, rows, len(self.scores))

    def assignments(self, temperature: float = 1.0) -> Assignments:
        """Return which rows may be active, with probabilities and predictors."""
        scaled = self.scores / temperature
        shared, distinct = self.shared, is_distinct(self.coupling)
        return assignments(scaled, self.effects, shared, self.offsets, distinct)


@torch.no_grad()
def row_terms(
    module: DiagonalAttention | Blend,
    values: Tensor,
    offsets: Tensor,
    covariates: Tensor | None = None,
    offset: Tensor | None = None,
    log_prior: Tensor | None = None,
) -> RowTerms:
    """Return the terms of rows under a model, in float64; `offset` is added to their predictors.

    Examples
    --------
    >>> module = DiagonalAttention(n_features=2)
    >>> row_terms(module, torch.ones(3, 2), torch.tensor([0, 3])).weights().shape
    torch.Size([3, 1])
    """
    if isinstance(module, Blend):
        return _of_blend(module, values, offsets, covariates, offset, log_prior)
    scores, effects, places = module.candidates(values, offsets, log_prior)
    scores, effects = scores.double(), effects.double()
    shared = module.shared(offsets, covariates, offset).double()
    scores, M = scores / module.temperature, module.groups
    if M > 1:  # values were divided by M
        kappa = attend(scores, places, module.coupling, M)
        parts = [*zip(kappa.chunk(M, 1), scores.chunk(M, 1), [1 / M] * M, strict=True)]
        scores = _mean_scores(parts)
        effects = torch.stack(effects.chunk(M, 1)).sum(dim=0)
    return RowTerms(scores, effects, shared, places, module.coupling, module.has_none)


def _of_blend(
    blend: Blend,
    values: Tensor,
    offsets: Tensor,
    covariates: Tensor | None,
    offset: Tensor | None,
    log_prior: Tensor | None,
) -> RowTerms:
    parts, effects, shared = [], [], []
    for vote, (voter, mapped) in zip(blend.votes, with_mapped(blend.voters, values), strict=True):
        Z = voter.all_covariates(mapped, offsets, covariates, log_prior)
        given = (mapped.to(values), offsets, Z.to(values), offset, log_prior)
        own = row_terms(voter.attention, *given)
        parts.append((own.weights(), own.scores, vote))
        effects.append(vote * own.effects)
        shared.append(vote * own.shared)
    scores = parts[0][1] if len(parts) == 1 else _mean_scores(parts)
    total = torch.stack(effects).sum(dim=0)
    return RowTerms(scores, total, torch.stack(shared).sum(dim=0), offsets, blend.coupling)


def _mean_scores(parts: list[tuple[Tensor, Tensor, float]]) -> Tensor:
    """Return scores whose softmax is the mean of weights; mean scores where heads are coupled."""
    if parts[0][1].shape[1] == 1:
        mean = torch.stack([share * kappa for kappa, _, share in parts]).sum(dim=0)
        return mean.clamp(min=LEAST_WEIGHT).log()
    return torch.stack([share * scores for _, scores, share in parts]).sum(dim=0)
