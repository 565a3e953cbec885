"""The cox family: times to an event with any baseline hazard."""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.families.base import Family
from diagatt.families.risk_sets import TIES, RiskSets
from diagatt.families.times import Times
from diagatt.segments import segment_logsumexp


class Cox(Times):
    r"""Proportional hazards, :math:`λ(t | X) = λ_0(t) e^z`.

    Where all samples are at hand, solvers minimize the negative log partial likelihood exactly
    (`RiskSets`). Where the loss must be one of single samples (mixtures over rows, contests,
    batches), it is the likelihood given the baseline hazard, which is found in turns with z:

    .. math:: ℓ = e^z \{Λ_0(t) - Λ_0(\text{entry})\} - δ z .

    The shape is the baseline: event times and Breslow's cumulative hazard at them, (2, m).
    """

    name = "cox"
    response_range = "times of entry, end and event; positive, exact or right-censored"
    couples_samples = True

    def __init__(self, ties: str = "efron") -> None:
        if ties not in TIES:
            raise ValueError(f"ties must be one of {list(TIES)}, got {ties!r}.")
        self.ties = ties

    def with_ties(self, ties):
        return Cox(ties)

    def fitted_shape(self, found):
        """Return (2, m), with m different event times."""
        return (2, found[-1] if found else 0)

    @property
    def log_hazard_per_unit(self):
        """1, because z is the logarithm of the hazard ratio."""
        return 1.0

    def inverse_link(self, z):
        """Return hazard ratios."""
        return torch.exp(z)

    def link(self, mean):
        return torch.log(mean)

    def couple(self, y: Tensor, weights: Tensor) -> RiskSets:
        """Return the risk sets, which evaluate the partial likelihood."""
        return RiskSets(y[:, 0], y[:, 1], self.is_event(y), weights, self.ties)

    def cumulative_hazard(self, times: Tensor) -> Tensor:
        """Return Λ₀ at any times, of any shape."""
        known, hazard = self.shape.to(times.device)
        padded = torch.cat([hazard.new_zeros(1), hazard])
        return padded[torch.searchsorted(known, times.double().contiguous(), right=True)]

    def prepared(self, y):
        """Return responses with a fourth column: their cumulative baseline hazard."""
        own = y[:, :3]
        return torch.cat([own, self._exposure(own)[:, None]], dim=1)

    def distance(self, other):
        """Return the spread of the change of log hazards: an intercept shifts them all."""
        change = self.shape[1].log() - other.shape[1].log()
        return float((change - change.mean()).square().mean().sqrt())

    def _exposure(self, y: Tensor) -> Tensor:
        if y.shape[1] > 3:
            return y[:, 3]
        start, stop = self.cumulative_hazard(y[:, 0]), self.cumulative_hazard(y[:, 1])
        return (stop - start).to(y.dtype)

    def loss(self, y, z):
        return torch.exp(z[:, 0]) * self._exposure(y) - self.is_event(y) * z[:, 0]

    def gradient(self, y, z):
        event = self.is_event(y).to(z.dtype)[:, None]
        return torch.exp(z) * self._exposure(y)[:, None] - event

    def curvature(self, y, z):
        return (torch.exp(z) * self._exposure(y)[:, None])[:, :, None]

    def saturated_loss(self, y):
        event = self.is_event(y).to(y.dtype)
        return event * (1 + torch.log(self._exposure(y).clamp(min=1e-300)))

    def mixed_predictor(self, log_probability, z, offsets):
        return segment_logsumexp(log_probability[:, None] + z, offsets)

    def null_predictor(self, y, weights):
        return torch.zeros_like(weights[:1]).T

    def started(self, y, weights):
        """Return the family with the hazard of all samples (Nelson and Aalen)."""
        return self.with_shape(self.couple(y, weights).baseline(torch.zeros_like(y[:, 0])))

    def refined(self, y, z, weights):
        """Return the family with Breslow's hazard given predictors."""
        return self.with_shape(self.couple(y, weights).baseline(z[:, 0]))

    def is_valid(self, y):
        return super().is_valid(y) & (self.is_event(y) | torch.isinf(y[:, 2]))

    def log_survival(self, times: Tensor, z: Tensor) -> Tensor:
        return -self.cumulative_hazard(times) * torch.exp(z.double())


def risk_of(family: Family, z: Tensor) -> Tensor:
    """Return predictors such that larger ones mean earlier events."""
    return z if isinstance(family, Cox) else -z
