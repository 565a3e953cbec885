"""The gamma family: positive responses whose spread grows with their mean."""

from __future__ import annotations

import math

import torch

from diagatt.families.base import Family


class Gamma(Family):
    """Log link (as in scikit-learn's GammaRegressor), y > 0, ℓ = y e⁻ᶻ + z, φ = 1/shape."""

    name = "gamma"
    response_range = "positive"
    has_dispersion = True

    def inverse_link(self, z):  # noqa: D102
        return torch.exp(z)

    def link(self, mean):  # noqa: D102
        return torch.log(mean)

    def loss(self, y, z):  # noqa: D102
        return y * torch.exp(-z[:, 0]) + z[:, 0]

    def gradient(self, y, z):  # noqa: D102
        return 1 - y[:, None] * torch.exp(-z)

    def curvature(self, y, z):  # noqa: D102
        return (y[:, None] * torch.exp(-z))[:, :, None]

    def unit_dispersion(self, y, z):  # noqa: D102
        return (y * torch.exp(-z[:, 0]) - 1) ** 2

    def log_normalizer(self, y, phi):  # noqa: D102
        shape = 1 / phi  # density ∝ y^{shape − 1} exp(−shape·y/μ)(shape/μ)^shape
        constant = shape * math.log(shape) - math.lgamma(shape)
        return constant + (shape - 1) * torch.log(y)

    def saturated_loss(self, y):  # noqa: D102
        return 1 + torch.log(y)

    def is_valid(self, y):  # noqa: D102
        return torch.isfinite(y) & (y > 0)
