"""The binomial family: successes among several trials."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from diagatt.families.links import LogitLink


class Binomial(LogitLink):
    """Logit link, y = (successes, failures), ℓ = n log(1 + eᶻ) − sz with n trials, s successes.

    All trials of a sample have the same probability, that of its rows.
    """

    name = "binomial"
    response_range = "successes and failures, 0 or positive, one trial at least"
    response_width = 2
    counts_trials = True

    def loss(self, y, z):
        return y.sum(dim=1) * F.softplus(z[:, 0]) - y[:, 0] * z[:, 0]

    def gradient(self, y, z):
        return y.sum(dim=1, keepdim=True) * torch.sigmoid(z) - y[:, :1]

    def curvature(self, y, z):
        p = torch.sigmoid(z)
        return (y.sum(dim=1, keepdim=True) * p * (1 - p))[:, :, None]

    def log_normalizer(self, y, phi):
        both = torch.lgamma(y + 1).sum(dim=1)
        return torch.lgamma(y.sum(dim=1) + 1) - both

    def observed(self, y):
        return y[:, 0] / y.sum(dim=1)

    def null_predictor(self, y, weights):
        total = (weights * y.sum(dim=1)[:, None]).sum(dim=0)
        mean = (weights * y[:, :1]).sum(dim=0) / total
        return self.link(mean.clamp(1e-3, 1 - 1e-3)[:, None])

    def saturated_loss(self, y):
        n = y.sum(dim=1)
        return torch.xlogy(n, n) - torch.xlogy(y, y).sum(dim=1)

    def is_valid(self, y):
        return torch.isfinite(y).all(dim=1) & (y >= 0).all(dim=1) & (y.sum(dim=1) > 0)
