r"""Accelerated failure time: :math:`\log T = z + σ ε`, with ε of a known distribution."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from diagatt.families.times import Times

LARGEST = 40.0  # u beyond which S(u) is as good as 0; (eᵘ)² fits into float32
EARLIEST = 1e-37  # stands for time 0, which has no logarithm


class Accelerated(Times):
    r"""Times whose logarithm is shifted by z; exact, right-, left- and interval-censored.

    With :math:`u = (\log t - z)/σ`, an exact time has the density :math:`f(u)/(σt)`, a time beyond
    t the probability S(u), one between two times :math:`S(u_1) - S(u_2)`. A sample that is observed
    from an entry on has these divided by S(entry). The shape is σ, which is estimated.
    """

    response_range = "entry, lower and upper time with 0 ≤ entry ≤ lower ≤ upper, upper > entry"
    shape = torch.ones(1, dtype=torch.float64)

    @abstractmethod
    def log_tail(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log S(u) and its first two derivatives."""

    @abstractmethod
    def log_error(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log f(u) and its first two derivatives."""

    @abstractmethod
    def best_interval(self, width: Tensor) -> Tensor:
        """Return the largest log probability that an interval of this width of u can have."""

    def inverse_link(self, z):
        """Return the logarithm of the typical time, z itself: means are taken of logarithms."""
        return z

    def link(self, mean):
        return mean

    def _errors(self, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sigma = self.shape[0].to(z)
        safe = torch.where(torch.isinf(y), y[:, 1:2], y).clamp(min=EARLIEST)
        entry, lower, upper = ((safe.log() - z) / sigma).unbind(dim=1)
        return entry, lower, upper

    def _terms(self, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return −log-likelihood up to a constant, and its first two derivatives in z, (n,)."""
        entry, lower, upper = self._errors(y, z)
        event, censored = self.is_event(y), torch.isinf(y[:, 2])
        exact, tail = self.log_error(lower), self.log_tail(lower)
        between = _difference(tail, self.log_tail(torch.where(event | censored, lower + 1, upper)))
        found = [
            torch.where(event, a, torch.where(censored, b, c))
            for a, b, c in zip(exact, tail, between, strict=True)
        ]
        late = y[:, 0] > 0
        if bool(late.any()):
            before = self.log_tail(torch.where(late, entry, lower))
            found = [a - torch.where(late, b, 0.0) for a, b in zip(found, before, strict=True)]
        sigma = self.shape[0].to(z)
        value, first, second = found
        return -value, first / sigma, (-second / sigma.square()).clamp(min=0)

    def loss(self, y, z):
        return self._terms(y, z)[0]

    def gradient(self, y, z):
        return self._terms(y, z)[1][:, None]

    def curvature(self, y, z):
        return self._terms(y, z)[2][:, None, None]

    def log_normalizer(self, y, phi):
        event = self.is_event(y)
        time = torch.where(event, y[:, 1], 1.0)
        return torch.where(event, -torch.log(time) - self.shape[0].to(y).log(), 0.0)

    def saturated_loss(self, y):
        """Return the smallest loss of samples without entry."""
        event, censored = self.is_event(y), torch.isinf(y[:, 2])
        mode = self.log_error(torch.zeros_like(y[:, 1]))[0]
        bounded = ~event & ~censored & (y[:, 1] > 0)
        low, high = (torch.where(bounded, y[:, k], float(k)) for k in (1, 2))
        width = torch.log(high / low) / self.shape[0].to(y)
        inside = torch.where(bounded, self.best_interval(width), 0.0)
        return -torch.where(event, mode, inside)

    def null_predictor(self, y, weights):
        log_time = y[:, 1].clamp(min=1e-30).log()[:, None]
        return ((weights * log_time).sum(dim=0) / weights.sum(dim=0))[:, None]

    def started(self, y, weights):
        """Return the family with the spread of the logarithms of times."""
        w = weights.double() / weights.double().sum()
        logs = y[:, 1].double().clamp(min=1e-30).log()
        spread = (w * (logs - (w * logs).sum()).square()).sum().sqrt()
        return self.with_shape(spread.clamp(0.05, 20.0).reshape(1))

    def log_survival(self, times, z):
        u = (times.double().clamp(min=EARLIEST).log() - z.double()) / self.shape[0]
        return self.log_tail(u)[0]


def _power_of_e(u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return eᵘ and its first two derivatives; its parabola at `LARGEST` beyond that.

    The loss stays convex and its derivatives exact, so that fits to times in seconds, which begin
    far from the optimum, converge.
    """
    low = torch.exp(u.clamp(max=LARGEST))
    beyond = (u - LARGEST).clamp(min=0)
    return low * (1 + beyond + 0.5 * beyond.square()), low * (1 + beyond), low


def _difference(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return log(S₁ − S₂) and its first two derivatives from those of log S₁ and log S₂."""
    (a, a1, a2), (b, b1, b2) = one, other
    gap = (a - b).clamp(min=1e-12)
    rest = torch.log(-torch.expm1(-gap))
    share = torch.exp(-gap - rest)  # S₂/(S₁ − S₂)
    first = (1 + share) * a1 - share * b1
    second = (1 + share) * a2 - share * b2 - share * (1 + share) * (a1 - b1).square()
    return a + rest, first, second


class Weibull(Accelerated):
    """log T = z + σε with S(u) = exp(−eᵘ): proportional hazards, too, with ratios e^{−z/σ}."""

    name = "weibull"

    @property
    def log_hazard_per_unit(self):
        """−1/σ: a longer time is a smaller hazard."""
        return -1 / float(self.shape[0])

    def log_tail(self, u):
        hazard, first, second = _power_of_e(u)
        return -hazard, -first, -second

    def log_error(self, u):
        hazard, first, second = _power_of_e(u)
        return u - hazard, 1 - first, -second

    def best_interval(self, width):
        ratio = torch.exp(width)
        a = width / (ratio - 1)
        return -a + torch.log(-torch.expm1(-a * (ratio - 1)))


class LogNormal(Accelerated):
    """log T = z + σε with normal ε."""

    name = "lognormal"

    def log_tail(self, u):
        value = torch.special.log_ndtr(-u)
        mills = torch.exp(-0.5 * u.square() - 0.5 * math.log(2 * math.pi) - value)
        return value, -mills, -mills * (mills - u)

    def log_error(self, u):
        return -0.5 * u.square() - 0.5 * math.log(2 * math.pi), -u, -torch.ones_like(u)

    def best_interval(self, width):
        return torch.log(torch.erf(width / (2 * math.sqrt(2))))


class LogLogistic(Accelerated):
    """log T = z + σε with logistic ε."""

    name = "loglogistic"

    def log_tail(self, u):
        p = torch.sigmoid(u)
        return -F.softplus(u), -p, -p * (1 - p)

    def log_error(self, u):
        p = torch.sigmoid(u)
        return u - 2 * F.softplus(u), 1 - 2 * p, -2 * p * (1 - p)

    def best_interval(self, width):
        return torch.log(torch.tanh(width / 4))
