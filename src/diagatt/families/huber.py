"""The Huber family: means of responses among which some are far off."""

from __future__ import annotations

import math

import torch

from diagatt.families.base import Family
from diagatt.families.links import IdentityLink
from diagatt.families.quantile import robust_scale

ITERATIONS = 100


class Huber(IdentityLink):
    r"""Identity link, ℓ = r²/2 for |r| ≤ c, else c|r| − c²/2, with r = y − z and c = εσ.

    The shape is σ, the spread of the bulk of the residuals, found together with the coefficients by
    Huber's concomitant scale, as in scikit-learn's HuberRegressor. The number in brackets is ε:
    ``"huber(1.35)"``. The smaller it is, the more responses count as far off.
    """

    name = "huber"
    has_dispersion = True
    curvature_bound = 1.0
    prefers_bound = True
    estimates_shape = True
    shape = torch.ones(1, dtype=torch.float64)

    def __init__(self, epsilon: float = 1.35) -> None:
        if not 1 <= epsilon < math.inf:
            raise ValueError(f"the ε of a huber family is at least 1, got {epsilon:g}.")
        self.epsilon = float(epsilon)

    @classmethod
    def with_number(cls, number: float) -> Family:
        return cls(number)

    @property
    def label(self) -> str:
        return f"huber({self.epsilon!r})"

    def _cut(self, like):
        return self.epsilon * self.shape[0].to(like)

    def loss(self, y, z):
        r, cut = y - z[:, 0], self._cut(z)
        inside = torch.minimum(r.abs(), cut)
        return 0.5 * inside.square() + cut * (r.abs() - inside)

    def gradient(self, y, z):
        cut = self._cut(z)
        return torch.clamp(z - y[:, None], -cut, cut)

    def curvature(self, y, z):
        return ((z - y[:, None]).abs() <= self._cut(z)).to(z.dtype)[:, :, None]

    def scale(self, y, weights):
        return robust_scale(y, weights) ** 2

    def unit_dispersion(self, y, z):
        return (z[:, 0] - y) * self.gradient(y, z)[:, 0]  # E r ℓ'(r) = φ

    def initial_dispersion(self, scale):
        return 0.5 * scale

    def log_normalizer(self, y, phi):
        """Return −log ∫ exp(−ℓ(r)/φ) dr."""
        phi = torch.as_tensor(phi, dtype=torch.float64, device=y.device)
        root, cut = phi.sqrt(), self._cut(phi)
        middle = math.sqrt(2 * math.pi) * root * torch.erf(cut / (root * math.sqrt(2)))
        tails = 2 * phi / cut * torch.exp(-cut.square() / (2 * phi))
        return (-torch.log(middle + tails)).to(y.dtype).expand_as(y)

    def started(self, y, weights):
        """Return the family with the spread of these responses."""
        unit = robust_scale(y, weights)
        return self.with_shape(torch.tensor([unit], dtype=torch.float64))

    def refined(self, y, z, weights):
        r"""Return the family with σ that minimizes :math:`\sum w (σ + σ H(r/σ))`.

        H is twice the loss of unit spread; σ solves :math:`\sum w \min(r²/σ², ε²) = \sum w`.
        """
        r = (y.double() - z[:, 0].double()).abs()
        w = weights.double() / weights.double().sum()
        low, high = 1e-12 * float(r.max()) + 1e-300, float(r.max()) + 1e-300
        for _ in range(ITERATIONS):  # the sum falls in σ
            middle = (low * high) ** 0.5
            inside = (w * (r / middle).square().clamp(max=self.epsilon**2)).sum()
            low, high = (middle, high) if inside > 1 else (low, middle)
        return self.with_shape(torch.tensor([high], dtype=torch.float64))

    def in_unit(self, unit):
        return self.with_shape(self.shape / unit)

    def __repr__(self) -> str:
        return f"Huber({self.epsilon:g})"
