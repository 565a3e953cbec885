"""The gamma family: positive responses whose spread grows with their mean."""

from __future__ import annotations

import torch

from diagatt.families.links import LogLink


class Gamma(LogLink):
    """Log link (as in scikit-learn's GammaRegressor), y > 0, ℓ = y e⁻ᶻ + z, φ = 1/shape."""

    name = "gamma"
    response_range = "positive"
    has_dispersion = True

    def loss(self, y, z):
        return y * torch.exp(-z[:, 0]) + z[:, 0]

    def gradient(self, y, z):
        return 1 - y[:, None] * torch.exp(-z)

    def curvature(self, y, z):
        return (y[:, None] * torch.exp(-z))[:, :, None]

    def unit_dispersion(self, y, z):
        return (y * torch.exp(-z[:, 0]) - 1) ** 2

    def log_normalizer(self, y, phi):
        # density ∝ y^{shape − 1} exp(−shape·y/μ)(shape/μ)^shape
        shape = 1 / torch.as_tensor(phi, dtype=torch.float64, device=y.device)
        constant = shape * torch.log(shape) - torch.lgamma(shape)
        return constant.to(y.dtype) + (shape - 1).to(y.dtype) * torch.log(y)

    def saturated_loss(self, y):
        return 1 + torch.log(y)

    def is_valid(self, y):
        return torch.isfinite(y) & (y > 0)
