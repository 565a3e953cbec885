"""The quantile family: the response's τ-quantile instead of its mean."""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.families.base import Family
from diagatt.families.links import IdentityLink

# Quartiles of a normal distribution are this many standard deviations apart.
NORMAL_QUARTILES = 1.3489795003921634
# Width of the rounded kink, in units of the response's spread: during the search, and at the end.
WIDTH, LEAST_WIDTH = 1e-2, 1e-10


def robust_scale(y: Tensor, weights: Tensor) -> float:
    """Return the distance of the quartiles in normal units; if it is 0, the standard deviation.

    Examples
    --------
    >>> import torch
    >>> round(robust_scale(torch.arange(101.0), torch.ones(101)), 2)
    37.07
    """
    order = y.argsort()
    share = weights.double()[order].cumsum(dim=0) / weights.double().sum()
    low, high = (
        float(y[order][int((share < q).sum().clamp(max=len(y) - 1))]) for q in (0.25, 0.75)
    )
    if high > low:
        return (high - low) / NORMAL_QUARTILES
    w = weights.double() / weights.double().sum()
    mean = float((w * y.double()).sum())
    deviation = float((w * (y.double() - mean).square()).sum()) ** 0.5
    # The deviation of a constant y is nothing but rounding.
    return deviation if deviation > 1e-12 * abs(mean) else 1.0


class Quantile(IdentityLink):
    r"""Identity link, :math:`ℓ = s\,ρ_τ(y - z)`, the pinball loss; z is the τ-quantile.

    The kink of :math:`ρ_τ(r) = τ r^+ + (1-τ) r^-` is rounded with a width ε (Hunter and Lange,
    2000),

    .. math:: ρ_{τ,ε}(r) = (τ - \tfrac12) r + \tfrac12 |r| - \tfrac ε2 \log(1 + |r|/ε),

    so that gradients exist; while coefficients are solved for, ε decreases to about 0. The factor
    s is the spread of the responses, so that a loss has the unit of y² as the gaussian one has,
    and penalties mean the same. The shape is (s, ε). The level τ is the number in brackets:
    ``"quantile(0.9)"``. As a density it is the asymmetric Laplace distribution.
    """

    name = "quantile"
    has_dispersion = True
    predicts_mixtures = False  # a mixture of quantiles is not the quantile of a mixture
    shape = torch.tensor([1.0, WIDTH], dtype=torch.float64)

    def __init__(self, level: float = 0.5) -> None:
        if not 0 < level < 1:
            raise ValueError(f"the level of a quantile lies between 0 and 1, got {level:g}.")
        self.level = float(level)

    @classmethod
    def with_number(cls, number: float) -> Family:
        return cls(number)

    @property
    def label(self) -> str:
        return f"quantile({self.level!r})"

    def loss(self, y, z):
        s, width = self.shape.to(z)
        r = y - z[:, 0]
        rounded = width * torch.log1p(r.abs() / width)
        return s * ((self.level - 0.5) * r + 0.5 * (r.abs() - rounded))

    def gradient(self, y, z):
        s, width = self.shape.to(z)
        r = y[:, None] - z
        return -s * (self.level - 0.5 + 0.5 * r / (width + r.abs()))

    def curvature(self, y, z):
        s, width = self.shape.to(z)
        r = y[:, None] - z
        return (0.5 * s * width / (width + r.abs()).square())[:, :, None]

    def scale(self, y, weights):
        return robust_scale(y, weights) ** 2

    def unit_dispersion(self, y, z):
        return (z[:, 0] - y) * self.gradient(y, z)[:, 0]  # E r ρ'(r) = φ

    def initial_dispersion(self, scale):
        return 0.25 * scale

    def log_normalizer(self, y, phi):
        phi = torch.as_tensor(phi, dtype=torch.float64, device=y.device)
        constant = torch.log(self.shape[0] * self.level * (1 - self.level) / phi)
        return constant.to(y.dtype).expand_as(y)

    def null_predictor(self, y, weights):
        order = y.argsort()
        share = weights[order].cumsum(dim=0) / weights.sum(dim=0)
        at = (share < self.level).sum(dim=0).clamp(max=len(y) - 1)
        return y[order][at][:, None].to(weights)

    def started(self, y, weights):
        """Return the family with the spread of these responses as its unit."""
        unit = robust_scale(y, weights)
        return self.with_shape(torch.tensor([unit, WIDTH * unit], dtype=torch.float64))

    def in_unit(self, unit):
        return self.with_shape(self.shape / unit)

    def sharpened(self):
        s, width = self.shape.tolist()
        path, least = [], LEAST_WIDTH * s
        while width > least:
            path.append(self.with_shape(self.shape.new_tensor([s, width])))
            width /= 10
        return [*path, self.with_shape(self.shape.new_tensor([s, least]))]

    def __repr__(self) -> str:
        return f"Quantile({self.level:g})"
