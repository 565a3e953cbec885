"""The bernoulli family: two classes."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from diagatt.families.links import LogitLink


class Bernoulli(LogitLink):
    """Logit link, y in {0, 1}, ℓ = log(1 + eᶻ) − yz."""

    name = "bernoulli"
    classifies = True
    response_range = "0 or 1"
    curvature_bound = 0.25

    def loss(self, y, z):
        return F.softplus(z[:, 0]) - y * z[:, 0]

    def gradient(self, y, z):
        return torch.sigmoid(z) - y[:, None]

    def curvature(self, y, z):
        p = torch.sigmoid(z)
        return (p * (1 - p))[:, :, None]

    def is_valid(self, y):
        return (y == 0) | (y == 1)

    def n_outputs(self, n_classes=None):
        if n_classes is not None and n_classes > 2:
            raise ValueError(f"family 'bernoulli' has two classes, y has {n_classes}.")
        return 1
