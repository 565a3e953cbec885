"""The poisson family: counts."""

from __future__ import annotations

import torch

from diagatt.families.links import LogLink


class Poisson(LogLink):
    """Log link, y ≥ 0, ℓ = eᶻ − yz."""

    name = "poisson"
    response_range = "0 or positive"

    def loss(self, y, z):
        return torch.exp(z[:, 0]) - y * z[:, 0]

    def gradient(self, y, z):
        return torch.exp(z) - y[:, None]

    def curvature(self, y, z):
        return torch.exp(z)[:, :, None]

    def log_normalizer(self, y, phi):
        return -torch.lgamma(y + 1)

    def saturated_loss(self, y):
        return y - torch.xlogy(y, y)

    def is_valid(self, y):
        return torch.isfinite(y) & (y >= 0)
