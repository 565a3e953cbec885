r"""Several fitted attentions as one model: means and attention weights are averaged.

Member m maps rows (`diagatt.rowmaps`), attends to them and predicts; the blend has

.. math:: \mathrm E(y | X) = \sum_m w_m\, g^{-1}(z_m), \qquad κ = \sum_m a_m κ_m .

A member without attention has a weight w in predictions but no vote a in the attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.module import AttentionModule
from diagatt.attention.samplefeatures import SampleFeatures
from diagatt.families import Family
from diagatt.rowmaps import RowMap

# Probabilities closer to 0 or 1 have no finite predictor.
LEAST_PROBABILITY = 1e-12


class Member(nn.Module):
    """One attention of a blend, with what it does to rows first.

    Parameters
    ----------
    attention : DiagonalAttention
        Of mapped rows; its covariates are the user's and, after them, the features of samples.
    rows : RowMap
    features : SampleFeatures
    weight, vote : float
        Share in predictions and in the attention.
    """

    def __init__(
        self,
        attention: DiagonalAttention,
        rows: RowMap,
        features: SampleFeatures,
        weight: float = 1.0,
        vote: float = 1.0,
    ) -> None:
        super().__init__()
        self.attention, self.rows, self.features = attention, rows, features
        self.weight, self.vote = weight, vote

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        covariates: Tensor | None = None,
        offset: Tensor | None = None,
        *,
        log_prior: Tensor | None = None,
    ) -> Tensor:
        """Return linear predictors, (n, K)."""
        mapped, beside = self.seen(values, offsets, covariates, log_prior)
        return self.attention(mapped, offsets, beside, offset, log_prior=log_prior)

    def seen(
        self,
        values: Tensor,
        offsets: Tensor,
        covariates: Tensor | None,
        log_prior: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return what the attention is given: mapped rows, and covariates beside features."""
        mapped = self.rows(values)
        beside = self.features(mapped, offsets, log_prior)
        if covariates is not None:
            beside = torch.cat([covariates.to(beside), beside], dim=1)
        return mapped, beside

    def scores(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return scores of rows, (N, R), divided by the temperature."""
        found = self.attention.scores(self.rows(values), offsets, log_prior)
        return found / self.attention.temperature

    def weights(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return attention weights, (N, R)."""
        return self.attention.attention(self.rows(values), offsets, log_prior)


class Blend(AttentionModule):
    """Members that predict and attend together.

    Parameters
    ----------
    members : sequence of Member
        Their weights, and their votes, sum to one.
    family : Family
    """

    def __init__(self, members: Sequence[Member], family: Family) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.family = family

    @property
    def members_list(self) -> list[Member]:
        """The members."""
        return [member for member in self.members if isinstance(member, Member)]

    @property
    def n_heads(self) -> int:
        """R."""
        return self.members_list[0].attention.n_heads

    @property
    def coupling(self) -> str:
        """Whether heads choose different rows."""
        return self.members_list[0].attention.coupling

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        covariates: Tensor | None = None,
        offset: Tensor | None = None,
        *,
        log_prior: Tensor | None = None,
    ) -> Tensor:
        """Return linear predictors of the blended mean, (n, K)."""
        given = (values, offsets, covariates, offset)
        chosen = [member for member in self.members_list if member.weight > 0]
        if len(chosen) == 1:
            return chosen[0](*given, log_prior=log_prior)
        found = (member(*given, log_prior=log_prior).double() for member in chosen)
        pairs = zip(chosen, found, strict=True)
        parts = [member.weight * self.family.inverse_link(z) for member, z in pairs]
        mean = torch.stack(parts).sum(dim=0)
        if self.family.classifies:
            mean = mean.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return self.family.link(mean).to(values.dtype)

    @property
    def votes(self) -> list[float]:
        """Shares of the members that attend; of all members if none does."""
        shares = [member.vote for member in self.members_list]
        total = sum(shares)
        return [s / total for s in shares if s > 0] or [1 / len(shares)] * len(shares)

    @property
    def voters(self) -> list[Member]:
        """Members that attend; all if none does."""
        return [member for member in self.members_list if member.vote > 0] or self.members_list

    def weights_of_voters(
        self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None
    ) -> Tensor:
        """Return the attention weights of every member that has a vote, (N, M·R)."""
        given = (values, offsets, log_prior)
        return torch.cat([voter.weights(*given) for voter in self.voters], dim=1)

    def attention(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return the members' attention weights, averaged, (N, R)."""
        pairs, given = zip(self.votes, self.voters, strict=True), (values, offsets, log_prior)
        return torch.stack([v * voter.weights(*given) for v, voter in pairs]).sum(dim=0)

    def scores(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return the members' scores, averaged, (N, R)."""
        pairs, given = zip(self.votes, self.voters, strict=True), (values, offsets, log_prior)
        return torch.stack([v * voter.scores(*given) for v, voter in pairs]).sum(dim=0)
