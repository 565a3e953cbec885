"""The negative binomial family: counts that vary more than Poisson counts."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from diagatt.families.links import LogLink


class NegativeBinomial(LogLink):
    r"""Log link, y in {0, 1, …}, variance μ + αμ² (NB2).

    .. math:: ℓ = (y + 1/α) \log(1 + α e^z) - y (z + \log α)

    The shape is α, which is estimated by maximum likelihood.
    """

    name = "negative_binomial"
    response_range = "0, 1, 2, …"
    estimates_shape = True
    family_of_rates = "poisson"
    shape = torch.ones(1, dtype=torch.float64)

    def _alpha(self, z):
        return self.shape[0].to(z)

    def loss(self, y, z):
        alpha = self._alpha(z)
        shifted = z[:, 0] + alpha.log()  # log αμ
        return (y + 1 / alpha) * F.softplus(shifted) - y * shifted

    def gradient(self, y, z):
        alpha = self._alpha(z)
        return (y[:, None] + 1 / alpha) * torch.sigmoid(z + alpha.log()) - y[:, None]

    def curvature(self, y, z):
        alpha = self._alpha(z)
        p = torch.sigmoid(z + alpha.log())
        return ((y[:, None] + 1 / alpha) * p * (1 - p))[:, :, None]

    def log_normalizer(self, y, phi):
        size = (1 / self.shape[0]).to(y)
        return torch.lgamma(y + size) - torch.lgamma(size) - torch.lgamma(y + 1)

    def saturated_loss(self, y):
        alpha = self.shape[0].to(y)
        return (y + 1 / alpha) * torch.log1p(alpha * y) - torch.xlogy(y, alpha * y)

    def is_valid(self, y):
        return torch.isfinite(y) & (y >= 0) & (y == y.round())

    def started(self, y, weights):
        """Return the family with α of a constant mean, from the moments."""
        w = weights.double() / weights.double().sum()
        mean = (w * y).sum()
        variance = (w * (y - mean).square()).sum()
        alpha = ((variance - mean) / mean.square().clamp(min=1e-12)).clamp(0.01, 10.0)
        return self.with_shape(alpha.double().reshape(1))
