"""The contract of a response distribution: link, loss, dispersion, valid responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from diagatt.segments import segment_sum

FAMILIES: dict[str, Family] = {}


class Family(ABC):
    """One response distribution with its link and loss.

    A family turns the linear predictor z of a generalized linear model (equation model1),
    ``g(E y) = z``, into a loss. Predictors have shape (n, K), where K is 1 for all families but
    those of several classes. The log-likelihood is −ℓ(y, z)/φ + log c(y, φ).

    Subclasses are stateless. A subclass that has a `name` registers itself under it.
    """

    name: ClassVar[str]
    #: Whether responses are class indices.
    classifies: ClassVar[bool] = False
    #: Whether there is a linear predictor for every class.
    has_several_outputs: ClassVar[bool] = False
    #: Valid responses, in words.
    response_range: ClassVar[str] = "any finite number"
    #: Whether the loss is quadratic in z, so that one Newton step is exact.
    is_quadratic: ClassVar[bool] = False
    #: Whether g(μ) = μ, so that predictors of mixtures are mixtures of predictors.
    has_identity_link: ClassVar[bool] = False
    #: Whether the dispersion φ is estimated; it is 1 otherwise.
    has_dispersion: ClassVar[bool] = False
    #: Upper bound c of the curvature, ∂²ℓ ⪯ c·I, or None if there is none.
    curvature_bound: ClassVar[float | None] = None
    #: Whether solvers use the bound in place of the exact curvature.
    prefers_bound: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Register the family by its name."""
        if "name" in cls.__dict__:
            FAMILIES[cls.name] = cls()

    @abstractmethod
    def inverse_link(self, z: Tensor) -> Tensor:
        """Return the mean of the response, g⁻¹(z), (n, K)."""

    @abstractmethod
    def link(self, mean: Tensor) -> Tensor:
        """Return the linear predictor of a mean, g(μ), (n, K)."""

    @abstractmethod
    def loss(self, y: Tensor, z: Tensor) -> Tensor:
        """Return the unit loss ℓ(y, z) of equation (obj), (n,)."""

    @abstractmethod
    def gradient(self, y: Tensor, z: Tensor) -> Tensor:
        """Return ∂ℓ/∂z, (n, K)."""

    @abstractmethod
    def curvature(self, y: Tensor, z: Tensor) -> Tensor:
        """Return ∂²ℓ/∂z∂zᵀ, (n, K, K)."""

    def n_outputs(self, n_classes: int | None = None) -> int:
        """Return the count of linear predictors, K; classes matter to classifying families."""
        return 1

    def scale(self, y: Tensor, weights: Tensor) -> float:
        """Return the size of the loss in units of y², which a penalty on scores must match."""
        return 1.0

    def unit_dispersion(self, y: Tensor, z: Tensor) -> Tensor:
        """Return estimates of φ from single samples, (n,); their weighted mean is φ̂."""
        return torch.ones_like(y)

    def initial_dispersion(self, scale: float) -> float:
        """Return a φ to start from; `scale` is that of the responses."""
        return 1.0

    def log_normalizer(self, y: Tensor, phi: float | Tensor) -> Tensor:
        """Return log c(y, φ), (n,), differentiable in φ if that is a tensor."""
        return torch.zeros_like(y)

    def log_density(self, y: Tensor, z: Tensor, phi: float | Tensor = 1.0) -> Tensor:
        """Return the log-likelihood of single samples, −ℓ(y, z)/φ + log c(y, φ), (n,)."""
        return self.log_normalizer(y, phi) - self.loss(y, z) / phi

    def mixed_predictor(self, log_probability: Tensor, z: Tensor, offsets: Tensor) -> Tensor:
        """Return the linear predictor of a mixture's mean, g(Σ π g⁻¹(z)), (M, K) → (n, K).

        Parameters
        ----------
        log_probability : tensor of shape (M,)
            log π of the components; those of one sample stand together and sum to one.
        z : tensor of shape (M, K)
            Predictors of the components.
        offsets : tensor of shape (n + 1,)
            Where the components of each sample begin and end.
        """
        mean = self.inverse_link(z)
        return self.link(segment_sum(log_probability.exp()[:, None] * mean, offsets))

    def remainder(self, y: Tensor, offset: Tensor) -> Tensor:
        """Return what is left of y, (n,), once an offset (n, K) of the predictor explains some."""
        return y

    def saturated_loss(self, y: Tensor) -> Tensor:
        """Return the smallest loss that any predictor could reach for y, (n,)."""
        return torch.zeros_like(y)

    def is_valid(self, y: Tensor) -> Tensor:
        """Return which responses the distribution can produce, (n,) bool."""
        return torch.isfinite(y)

    def deviance(self, y: Tensor, z: Tensor) -> Tensor:
        """Return the unit deviance 2(ℓ(y, z) − min ℓ(y, ·)), (n,)."""
        return 2 * (self.loss(y, z) - self.saturated_loss(y))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


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
    """Refuse responses that the family cannot produce, naming the first one."""
    wrong = torch.nonzero(~family.is_valid(y))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"y[{i}] = {y[i].item():g} is outside the range of the {family.name} family "
            f"({family.response_range}): choose another family or correct the response."
        )
