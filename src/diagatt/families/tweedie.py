"""The Tweedie family: sums of a random number of positive amounts, with exact zeros."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from diagatt.families.base import Family
from diagatt.families.links import LogLink

# Terms of the series of the density on each side of its largest one, per standard deviation.
TERMS, DEVIATIONS = 20, 9.0


class Tweedie(LogLink):
    r"""Log link, y ≥ 0, variance φμ^p with 1 < p < 2: a Poisson number of gamma amounts.

    .. math:: ℓ = \frac{e^{(2-p)z}}{2-p} - y\,\frac{e^{(1-p)z}}{1-p}

    The power p is the number in brackets: ``"tweedie(1.6)"``.
    """

    name = "tweedie"
    response_range = "0 or positive"
    has_dispersion = True

    def __init__(self, power: float = 1.5) -> None:
        if not 1 < power < 2:
            raise ValueError(f"the power of a tweedie family lies between 1 and 2, got {power:g}.")
        self.power = float(power)

    @classmethod
    def with_number(cls, number: float) -> Family:
        return cls(number)

    @property
    def label(self) -> str:
        return f"tweedie({self.power!r})"

    def loss(self, y, z):
        p, z = self.power, z[:, 0]
        return torch.exp((2 - p) * z) / (2 - p) - y * torch.exp((1 - p) * z) / (1 - p)

    def gradient(self, y, z):
        p = self.power
        return torch.exp((2 - p) * z) - y[:, None] * torch.exp((1 - p) * z)

    def curvature(self, y, z):
        p = self.power
        both = (2 - p) * torch.exp((2 - p) * z) + (p - 1) * y[:, None] * torch.exp((1 - p) * z)
        return both[:, :, None]

    def unit_dispersion(self, y, z):
        mean = torch.exp(z[:, 0])
        return (y - mean).square() / mean**self.power

    def log_normalizer(self, y, phi):
        r"""Return log c(y, φ) by the series of Dunn and Smyth (2005); 0 for y = 0.

        .. math:: c = \frac1y \sum_{j ≥ 1} \frac{y^{ja}}{(p-1)^{ja} φ^{j(1+a)} (2-p)^j\,
                  j!\, Γ(ja)}, \qquad a = \frac{2-p}{p-1}.
        """
        phi = torch.as_tensor(phi, dtype=torch.float64, device=y.device).expand(y.shape)
        exact = y.double()
        safe = torch.where(exact > 0, exact, 1.0)
        found = self._log_series(safe, phi) - safe.log()
        return torch.where(exact > 0, found, 0.0).to(y.dtype)

    def _log_series(self, y: Tensor, phi: Tensor) -> Tensor:
        p = self.power
        a = (2 - p) / (p - 1)
        log_base = a * (y.log() - math.log(p - 1)) - (1 + a) * phi.log() - math.log(2 - p)
        with torch.no_grad():
            # Terms are largest here.
            centre = (y ** (2 - p) / (phi * (2 - p))).round().clamp(min=1)
            reach = TERMS + int(DEVIATIONS * float(centre.max()) ** 0.5) if len(y) else 0
            j = centre[:, None] + torch.arange(-reach, reach + 1).to(y)
        terms = j * log_base[:, None] - torch.lgamma(j + 1) - torch.lgamma((a * j).clamp(min=1e-9))
        return torch.logsumexp(torch.where(j >= 1, terms, -math.inf), dim=1)

    def saturated_loss(self, y):
        p = self.power
        return y ** (2 - p) * (1 / (2 - p) - 1 / (1 - p))

    def is_valid(self, y):
        return torch.isfinite(y) & (y >= 0)

    def __repr__(self) -> str:
        return f"Tweedie({self.power:g})"
