r"""Several fitted attentions as one model: means and attention weights are averaged.

Member m maps rows (`diagatt.rowmaps`), attends to them and predicts; the blend has

.. math:: \mathrm E(y | X) = \sum_m w_m\, g^{-1}(z_m), \qquad κ = \sum_m a_m κ_m .

A member without attention has a weight w in predictions but no vote a in the attention. The heads
of a fit have no order of their own, so those of all members are put in one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.module import AttentionModule
from diagatt.attention.sample_features import SampleFeatures
from diagatt.families import Family
from diagatt.rowmaps import RowMap
from diagatt.segments import map_blocks

# Probabilities closer to 0 or 1 have no finite predictor.
LEAST_PROBABILITY = 1e-12


def matching_order(overlap: Tensor) -> list[int]:
    """Return the order in which the heads of one fit attend most like those of another.

    Parameters
    ----------
    overlap : tensor of shape (R, R)
        Σ_j κ_j κ'_j over all rows. Lines are the heads whose order is kept, columns are those that
        are put in order.

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
        **module.settings,
    )


class Member(nn.Module):
    """One attention of a blend, and the map of its rows; its methods take mapped rows.

    Parameters
    ----------
    attention : DiagonalAttention
        Attends to mapped rows. Its covariates are the user's, followed by features of samples.
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
        mapped: Tensor,
        offsets: Tensor,
        covariates: Tensor | None = None,
        offset: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> Tensor:
        """Return linear predictors, (n, K)."""
        Z = self.all_covariates(mapped, offsets, covariates, log_prior)
        return self.attention(mapped, offsets, Z, offset, log_prior=log_prior)

    def all_covariates(
        self,
        mapped: Tensor,
        offsets: Tensor,
        covariates: Tensor | None,
        log_prior: Tensor | None = None,
    ) -> Tensor:
        """Return covariates and features of samples side by side, (n, q + e)."""
        features = self.features(mapped, offsets, log_prior)
        if covariates is None:
            return features
        return torch.cat([covariates.to(features), features], dim=1)

    def scores(self, mapped: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return scores of the rows, (N, R), divided by the temperature."""
        return self.attention.scores(mapped, offsets, log_prior) / self.attention.temperature

    def weights(self, mapped: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return attention weights of the rows, (N, R)."""
        return self.attention.attention(mapped, offsets, log_prior)


def with_mapped(members: Iterable[Member], values: Tensor) -> Iterator[tuple[Member, Tensor]]:
    """Yield each member with its mapped rows; a map that members share is applied once."""
    found: dict[int, Tensor] = {}
    for member in members:
        key = id(member.rows)
        if key not in found:
            found[key] = member.rows(values)
        yield member, found[key]


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

    @torch.no_grad()
    def align_heads(
        self,
        values: Tensor,
        offsets: Tensor,
        log_prior: Tensor | None = None,
        like: Tensor | None = None,
    ) -> None:
        """Put the heads of all voters in one order, by the rows that they attend to.

        Parameters
        ----------
        values, offsets, log_prior
            Samples to attend to.
        like : tensor of shape (N, R), optional
            Attention whose order of heads is taken over; by default, that of the member with the
            largest vote.
        """
        if self.n_heads == 1:
            return
        pairs = list(with_mapped(self.voters, values))
        kappa = [map_blocks(v.weights, mapped, offsets, log_prior=log_prior) for v, mapped in pairs]
        if like is None:
            like = kappa[max(range(len(pairs)), key=lambda k: pairs[k][0].vote)]
        for (voter, _), own in zip(pairs, kappa, strict=True):
            order = matching_order(like.to(own).T @ own)
            voter.attention = with_heads_in_order(voter.attention, order)

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
        given = (offsets, covariates, offset, log_prior)
        chosen = [member for member in self.members_list if member.weight > 0]
        if len(chosen) == 1:
            return chosen[0](chosen[0].rows(values), *given)
        parts = [
            member.weight * self.family.inverse_link(member(mapped, *given).double())
            for member, mapped in with_mapped(chosen, values)
        ]
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
        pairs = with_mapped(self.voters, values)
        return torch.cat([v.weights(mapped, offsets, log_prior) for v, mapped in pairs], dim=1)

    def attention(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return the members' attention weights, averaged, (N, R)."""
        pairs = zip(self.votes, with_mapped(self.voters, values), strict=True)
        parts = [share * v.weights(mapped, offsets, log_prior) for share, (v, mapped) in pairs]
        return torch.stack(parts).sum(dim=0)

    def scores(self, values: Tensor, offsets: Tensor, log_prior: Tensor | None = None) -> Tensor:
        """Return the members' scores, averaged, (N, R)."""
        pairs = zip(self.votes, with_mapped(self.voters, values), strict=True)
        parts = [share * v.scores(mapped, offsets, log_prior) for share, (v, mapped) in pairs]
        return torch.stack(parts).sum(dim=0)
