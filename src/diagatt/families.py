"""Response distributions: link, unit loss and its derivatives, valid responses.

A family turns the linear predictor ``z`` of a generalized linear model (equation model1),
``g(E y) = z``, into a loss. Predictors have shape (n, K): K = 1 except for `Multinomial`, where K
is the number of classes. Losses are negative log-likelihoods up to terms in y alone and a scale.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F


class Family:
    """One response distribution; subclasses are stateless and registered by name."""

    name: ClassVar[str]
    classifies: ClassVar[bool] = False
    response_range: ClassVar[str] = "any finite number"

    def inverse_link(self, z: Tensor) -> Tensor:
        """Mean of the response, g⁻¹(z), (n, K)."""
        raise NotImplementedError

    def link(self, mean: Tensor) -> Tensor:
        """Linear predictor of a mean, g(μ), (n, K)."""
        raise NotImplementedError

    def loss(self, y: Tensor, z: Tensor) -> Tensor:
        """Unit loss ℓ(y, z) of equation (obj), (n,)."""
        raise NotImplementedError

    def gradient(self, y: Tensor, z: Tensor) -> Tensor:
        """∂ℓ/∂z, (n, K)."""
        raise NotImplementedError

    def curvature(self, y: Tensor, z: Tensor) -> Tensor:
        """∂²ℓ/∂z∂zᵀ, (n, K, K)."""
        raise NotImplementedError

    def scale(self, y: Tensor, weights: Tensor) -> float:
        """Size of the loss in units of y², which a penalty on dimensionless scores must match."""
        return 1.0

    def curvature_bound(self) -> float | None:
        """Number c with ∂²ℓ ⪯ c·I everywhere, where one is used instead of the curvature."""
        return None

    def dispersion(self, y: Tensor, z: Tensor) -> Tensor:
        """What averages to φ in the log-likelihood −ℓ/φ + log c(y, φ), (n,)."""
        return torch.ones_like(y)

    def log_normalizer(self, y: Tensor, phi: float) -> Tensor:
        """Log c(y, φ), (n,): log-likelihood = −ℓ(y, z)/φ + log c(y, φ)."""
        return torch.zeros_like(y)

    def saturated_loss(self, y: Tensor) -> Tensor:
        """Smallest loss any predictor could reach for y, (n,)."""
        return torch.zeros_like(y)

    def is_valid(self, y: Tensor) -> Tensor:
        """Which responses the distribution can produce, (n,) bool."""
        return torch.isfinite(y)

    def deviance(self, y: Tensor, z: Tensor) -> Tensor:
        """Unit deviance 2(ℓ(y, z) − min ℓ(y, ·)), (n,)."""
        return 2 * (self.loss(y, z) - self.saturated_loss(y))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Gaussian(Family):
    """Identity link, ℓ = (y − z)²/2."""

    name = "gaussian"

    def inverse_link(self, z):  # noqa: D102
        return z

    def link(self, mean):  # noqa: D102
        return mean

    def loss(self, y, z):  # noqa: D102
        return 0.5 * (y - z[:, 0]) ** 2

    def gradient(self, y, z):  # noqa: D102
        return z - y[:, None]

    def curvature(self, y, z):  # noqa: D102
        return torch.ones_like(z)[:, :, None]

    def curvature_bound(self):  # noqa: D102
        return 1.0

    def dispersion(self, y, z):  # noqa: D102
        return (y - z[:, 0]) ** 2

    def log_normalizer(self, y, phi):  # noqa: D102
        return torch.full_like(y, -0.5 * math.log(2 * math.pi * phi))

    def scale(self, y, weights):  # noqa: D102
        mean = (weights * y).sum() / weights.sum()
        variance = float((weights * (y - mean) ** 2).sum() / weights.sum())
        # A constant y has no variance but what rounding leaves.
        return variance if variance > 1e-24 * float(mean) ** 2 else 1.0


class Bernoulli(Family):
    """Logit link, y in {0, 1}, ℓ = log(1 + eᶻ) − yz."""

    name = "bernoulli"
    classifies = True
    response_range = "0 or 1"

    def inverse_link(self, z):  # noqa: D102
        return torch.sigmoid(z)

    def link(self, mean):  # noqa: D102
        return torch.logit(mean)

    def loss(self, y, z):  # noqa: D102
        return F.softplus(z[:, 0]) - y * z[:, 0]

    def gradient(self, y, z):  # noqa: D102
        return torch.sigmoid(z) - y[:, None]

    def curvature(self, y, z):  # noqa: D102
        p = torch.sigmoid(z)
        return (p * (1 - p))[:, :, None]

    def is_valid(self, y):  # noqa: D102
        return (y == 0) | (y == 1)


class Multinomial(Family):
    """Softmax link, y in {0, …, K − 1}, ℓ = log Σ_k exp(z_k) − z_y."""

    name = "multinomial"
    classifies = True
    response_range = "0, 1, …, n_classes − 1"

    def inverse_link(self, z):  # noqa: D102
        return torch.softmax(z, dim=1)

    def link(self, mean):  # noqa: D102
        z = torch.log(mean)  # any shift gives the same mean; take the centred one
        return z - z.mean(dim=1, keepdim=True)

    def loss(self, y, z):  # noqa: D102
        return torch.logsumexp(z, dim=1) - z.gather(1, y.long()[:, None])[:, 0]

    def gradient(self, y, z):  # noqa: D102
        return torch.softmax(z, dim=1) - F.one_hot(y.long(), z.shape[1]).to(z.dtype)

    def curvature(self, y, z):  # noqa: D102
        p = torch.softmax(z, dim=1)
        return torch.diag_embed(p) - p[:, :, None] * p[:, None, :]

    def curvature_bound(self):  # noqa: D102
        return 0.5  # diag(p) − ppᵀ ⪯ I/2 (Böhning, 1992): one Gram matrix serves all classes

    def is_valid(self, y):  # noqa: D102
        return torch.isfinite(y) & (y >= 0) & (y == y.round())


class Poisson(Family):
    """Log link, y ≥ 0, ℓ = eᶻ − yz."""

    name = "poisson"
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

    def saturated_loss(self, y):  # noqa: D102
        return y - torch.xlogy(y, y)

    def is_valid(self, y):  # noqa: D102
        return torch.isfinite(y) & (y >= 0)


class Gamma(Family):
    """Log link (as in scikit-learn's GammaRegressor), y > 0, ℓ = y e⁻ᶻ + z."""

    name = "gamma"
    response_range = "positive"

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

    def dispersion(self, y, z):  # noqa: D102
        return (y * torch.exp(-z[:, 0]) - 1) ** 2

    def log_normalizer(self, y, phi):  # noqa: D102
        shape = 1 / phi  # density ∝ y^{shape − 1} exp(−shape·y/μ)(shape/μ)^shape
        constant = shape * math.log(shape) - math.lgamma(shape)
        return constant + (shape - 1) * torch.log(y)

    def saturated_loss(self, y):  # noqa: D102
        return 1 + torch.log(y)

    def is_valid(self, y):  # noqa: D102
        return torch.isfinite(y) & (y > 0)


FAMILIES: dict[str, Family] = {
    family.name: family for family in (Gaussian(), Bernoulli(), Multinomial(), Poisson(), Gamma())
}


def get_family(name: str) -> Family:
    """Look a family up by name.

    Examples
    --------
    >>> get_family("poisson")
    Poisson()
    """
    if name not in FAMILIES:
        raise ValueError(f"unknown family {name!r}: choose one of {sorted(FAMILIES)}.")
    return FAMILIES[name]


def check_response(family: Family, y: Tensor) -> None:
    """Refuse responses that the family cannot produce, naming the first."""
    wrong = torch.nonzero(~family.is_valid(y))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"y[{i}] = {y[i].item():g} is outside the range of the {family.name} family "
            f"({family.response_range}): choose another family or correct the response."
        )
