"""The contract of a response distribution: link, loss, dispersion, valid responses."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.autograd.functional import hessian, jacobian

from diagatt.families.risk_sets import RiskSets
from diagatt.segments import segment_sum

FAMILIES: dict[str, Family] = {}
# A family with its number, such as "quantile(0.9)".
_NAMED = re.compile(r"([a-z_]+)(?:\(([-+.\de]{1,20})\))?")
# Steps at most, the gain per unit of weight that ends them, and the largest step of a logarithm.
STEPS, LEAST_GAIN, LARGEST_STEP = 50, 1e-15, 2.0
# Logarithms of a shape stay within these bounds: a Poisson count has no variance beyond its mean.
LOWEST, HIGHEST = -14.0, 14.0


class Family(ABC):
    """One response distribution with its link and loss.

    A family turns the linear predictor z of a generalized linear model (equation model1),
    ``g(E y) = z``, into a loss. Predictors have shape (n, K), where K is 1 for all families but
    those of several classes. The log-likelihood is −ℓ(y, z)/φ + log c(y, φ).

    Some families have further parameters, all positive, such as thresholds between ordered classes
    or the variance of counts beyond Poisson's. They are their `shape`, which `started` and
    `refined` find. A family is never changed: `with_shape` returns another one. A subclass that has
    a `name` registers itself under it.
    """

    name: ClassVar[str]
    #: Whether responses are class indices.
    classifies: ClassVar[bool] = False
    #: Whether there is a linear predictor for every class.
    has_several_outputs: ClassVar[bool] = False
    #: Whether classes are in an order, so that they must be numbers.
    orders_classes: ClassVar[bool] = False
    #: Whether the mean of a response is a line of probabilities, one per class.
    predicts_classes: ClassVar[bool] = False
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
    #: Whether g(μ) = log μ, so that an exposure is an offset of its logarithm.
    has_log_link: ClassVar[bool] = False
    #: Whether a response is a count of successes and one of failures.
    counts_trials: ClassVar[bool] = False
    #: Family whose loss takes rates of these counts, which are no whole numbers; None for its own.
    family_of_rates: ClassVar[str | None] = None
    #: How many numbers one response consists of: y has shape (n,) for one, else (n, width).
    response_width: ClassVar[int] = 1
    #: Count of outcomes of one response that each have a density, see `Outcomes`.
    n_outcomes: ClassVar[int] = 1
    #: Whether a mixture over rows predicts what the family does; quantiles cannot be mixed.
    predicts_mixtures: ClassVar[bool] = True
    #: Whether a pooled row predicts badly, so that models of latent rows predict by the mixture.
    needs_mixture: ClassVar[bool] = False
    #: Whether the objective is one of all samples together, which `couple` evaluates.
    couples_samples: ClassVar[bool] = False
    #: Whether the shape is estimated together with the predictor.
    estimates_shape: ClassVar[bool] = False
    #: Parameters besides the predictor, (s,), positive; empty for most families.
    shape: Tensor = torch.empty(0, dtype=torch.float64)
    #: What outcomes were divided by before the fit, (q,), or None.
    units: Tensor | None = None

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

    def by_outcome(self, y: Tensor, mean: Tensor) -> list[tuple[Family, Tensor, Tensor]]:
        """Return the family, the responses and the means, (n, K), of every outcome."""
        return [(self, y, mean)]

    def of_classes(self, n_classes: int) -> Family:
        """Return the family for this count of classes, on which its shape may depend."""
        return self

    @property
    def label(self) -> str:
        """Name by which `get_family` finds the family again, with its number if it has one."""
        return self.name

    @classmethod
    def with_number(cls, number: float) -> Family:
        """Return the family with the number that stands in brackets behind its name."""
        raise ValueError(f"the {cls.name} family has no number: write {cls.name!r}.")

    # ------------------------------------------------------------------ shape

    def with_shape(self, shape: Tensor) -> Self:
        """Return the same family with another shape."""
        other = copy(self)
        other.shape = shape
        return other

    def fitted_shape(self, found: tuple[int, ...]) -> tuple[int, ...]:
        """Return the dimensions of a fitted `shape`; data decide some of those of `found`."""
        return tuple(self.shape.shape)

    def started(self, y: Tensor, weights: Tensor) -> Family:
        """Return the family with a shape to start from, given all responses."""
        return self

    def refined(self, y: Tensor, z: Tensor, weights: Tensor) -> Family:
        """Return the family with the most likely shape given predictors (n, K)."""
        if not self.estimates_shape or not len(self.shape):
            return self
        exact = y.double()

        def log_density(shape: Tensor, z: Tensor) -> Tensor:
            return self.with_shape(shape).log_density(exact, z)

        return self.with_shape(most_likely_shape(self.shape, log_density, z, weights))

    def distance(self, other: Family) -> float:
        """Return how far the shape is from another's: the largest change of a logarithm."""
        if not len(self.shape):
            return 0.0
        return float((self.shape.log() - other.shape.log()).abs().max())

    def prepared(self, y: Tensor) -> Tensor:
        """Return responses with what depends on the shape for each of them, computed once."""
        return y

    def in_unit(self, unit: float) -> Family:
        """Return the family of y/unit; only those of an identity link have a unit."""
        return self

    def sharpened(self) -> list[Family]:
        """Return families whose minimizers lead to this one's, where its loss has kinks."""
        return [self]

    def couple(self, y: Tensor, weights: Tensor) -> RiskSets:
        """Return the objective of all samples together, which most families lack."""
        raise NotImplementedError(f"the {self.name} family has a loss of single samples.")

    # ------------------------------------------------------------------ numbers about responses

    def observed(self, y: Tensor) -> Tensor:
        """Return what predicted means are compared with, (n,)."""
        return y

    def null_predictor(self, y: Tensor, weights: Tensor) -> Tensor:
        """Return the intercept that fits so weighted responses alone, (M, K) for weights (n, M)."""
        mean = (weights * self.observed(y)[:, None]).sum(dim=0) / weights.sum(dim=0)
        if self.classifies:
            mean = mean.clamp(1e-3, 1 - 1e-3)
        return self.link(mean[:, None])

    def widened(self, z: Tensor) -> Tensor:
        """Return predictors as `link` gives them, where its range is wider than a module's."""
        return z

    def scale(self, y: Tensor, weights: Tensor) -> float:
        """Return the size of the loss in units of y², which a penalty on scores must match."""
        return 1.0

    def unit_dispersion(self, y: Tensor, z: Tensor) -> Tensor:
        """Return estimates of φ from single samples, (n,); their weighted mean is φ̂."""
        return torch.ones_like(z[:, 0])

    def initial_dispersion(self, scale: float) -> float:
        """Return a φ to start from; `scale` is that of the responses."""
        return 1.0

    def log_normalizer(self, y: Tensor, phi: float | Tensor) -> Tensor:
        """Return log c(y, φ), (n,), differentiable in φ if that is a tensor, () or (n,)."""
        return y.new_zeros(len(y))

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

    def saturated_loss(self, y: Tensor) -> Tensor:
        """Return the smallest loss that any predictor could reach for y, (n,)."""
        return y.new_zeros(len(y))

    def is_valid(self, y: Tensor) -> Tensor:
        """Return which responses the distribution can produce, (n,) bool."""
        return torch.isfinite(y)

    def deviance(self, y: Tensor, z: Tensor) -> Tensor:
        """Return the unit deviance 2(ℓ(y, z) − min ℓ(y, ·)), (n,)."""
        return 2 * (self.loss(y, z) - self.saturated_loss(y))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def get_family(family: str | Family) -> Family:
    """Look a family up by name; some take a number in brackets.

    Examples
    --------
    >>> get_family("poisson")
    Poisson()
    >>> get_family("quantile(0.9)")
    Quantile(0.9)
    """
    if isinstance(family, Family):
        return family
    found = _NAMED.fullmatch(family)
    if found is None or found[1] not in FAMILIES:
        raise ValueError(f"unknown family {family!r}: choose one of {sorted(FAMILIES)}.")
    known = FAMILIES[found[1]]
    return known if found[2] is None else type(known).with_number(_number(family, found[2]))


def counts_trials(family: str | Family) -> bool:
    """Return whether a family's responses are successes and failures; those of "auto" are not.

    Examples
    --------
    >>> counts_trials("binomial"), counts_trials("auto")
    (True, False)
    """
    return family != "auto" and get_family(family).counts_trials


def _number(family: str, written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise ValueError(f"the family {family!r} has no number in its brackets.") from None


def check_response(family: Family, y: Tensor) -> None:
    """Refuse responses that the family cannot produce, naming the first one."""
    wrong = torch.nonzero(~family.is_valid(y))
    if len(wrong):
        i = int(wrong[0])
        found = ", ".join(f"{number:g}" for number in y[i].reshape(-1).tolist())
        raise ValueError(
            f"y[{i}] = {found} is outside the range of the {family.name} family "
            f"({family.response_range}): choose another family or correct the response."
        )


def most_likely_shape(
    start: Tensor, log_density: Callable[[Tensor, Tensor], Tensor], z: Tensor, weights: Tensor
) -> Tensor:
    r"""Maximize :math:`\sum_i w_i \log p(y_i | z_i + a; s)` over the shape s and a shift a.

    The shift stands for the intercept, with which thresholds move: shape and predictor are found in
    turns, and few turns are needed if the intercept moves in both.

    Parameters
    ----------
    start : tensor of shape (s,)
    log_density : callable
        Returns log p, (n,), of a shape (s,) and predictors (n, K).
    z : tensor of shape (n, K)
    weights : tensor of shape (n,)

    Returns
    -------
    tensor of shape (s,), float64
    """
    z, w, count = z.double(), weights.double() / weights.double().sum(), len(start)

    def objective(theta: Tensor) -> Tensor:
        return -(w * log_density(theta[:count].exp(), z + theta[count])).sum()

    theta = torch.cat([start.double().log(), z.new_zeros(1)])
    value = float(objective(theta))
    for _ in range(STEPS):
        gradient, curvature = jacobian(objective, theta), hessian(objective, theta)
        step = _step(curvature, gradient)
        gain = -float(gradient @ step)
        if not gain > LEAST_GAIN:
            break
        size = 1.0
        while size > 1e-8:
            candidate = theta + size * step
            candidate[:count].clamp_(LOWEST, HIGHEST)
            new = float(objective(candidate))
            if new <= value - 1e-4 * size * gain or (gain < 1e-10 and new <= value + 1e-12):
                break
            size /= 2
        else:
            break
        theta, value = candidate, new
    return theta[:count].exp()


def _step(curvature: Tensor, gradient: Tensor) -> Tensor:
    """Return a step of descent that no curvature makes too long."""
    values, vectors = torch.linalg.eigh((curvature + curvature.T) / 2)
    values = values.abs().clamp(min=1e-10 * float(values.abs().max()) + 1e-300)
    step = -(vectors / values) @ (vectors.T @ gradient)
    return step / max(1.0, float(step.abs().max()) / LARGEST_STEP)
