"""The poisson family: counts."""

from __future__ import annotations

import torch

from diagatt.families.base import Family
from diagatt.segments import segment_logsumexp


class Poisson(Family):
    """Log link, y ≥ 0, ℓ = eᶻ − yz."""

    name = "poisson"
    has_log_link = True
    response_range = "0 or positive"

    def inverse_link(self, z):  # noqa: D102
        return torch.exp(z)

    def link(self, mean):  # noqa: D102
        return torch.log(mean)

    def loss(self, y, z):  # noqa: D102
        return torch.exp(z[:, 0]) - y * z[:, 0]

    def gradient(self, y, z):  # noqa: D102
        return torch.exp(z) - y[:, None]

    def curvature(self, y, z):  # noqa: D102
        return torch.exp(z)[:, :, None]

    def log_normalizer(self, y, phi):  # noqa: D102
        return -torch.lgamma(y + 1)

    def mixed_predictor(self, log_probability, z, offsets):  # noqa: D102
        return segment_logsumexp(log_probability[:, None] + z, offsets)

    def saturated_loss(self, y):  # noqa: D102
        return y - torch.xlogy(y, y)

    def is_valid(self, y):  # noqa: D102
        return torch.isfinite(y) & (y >= 0)
