"""The gaussian family."""

from __future__ import annotations

import math

import torch

from diagatt.families.links import IdentityLink


class Gaussian(IdentityLink):
    """Identity link, ℓ = (y − z)²/2, φ = σ²."""

    name = "gaussian"
    is_quadratic = True
    has_dispersion = True
    curvature_bound = 1.0
    prefers_bound = True

    def loss(self, y, z):
        return 0.5 * (y - z[:, 0]) ** 2

    def gradient(self, y, z):
        return z - y[:, None]

    def curvature(self, y, z):
        return torch.ones_like(z)[:, :, None]

    def scale(self, y, weights):
        mean = (weights * y).sum() / weights.sum()
        variance = float((weights * (y - mean) ** 2).sum() / weights.sum())
        # The variance of a constant y is nothing but rounding.
        return variance if variance > 1e-24 * float(mean) ** 2 else 1.0

    def unit_dispersion(self, y, z):
        return (y - z[:, 0]) ** 2

    def initial_dispersion(self, scale):
        return 0.5 * scale

    def log_normalizer(self, y, phi):
        spread = torch.as_tensor(phi, dtype=torch.float64, device=y.device)
        return (-0.5 * torch.log(2 * math.pi * spread)).to(y.dtype).expand_as(y)
