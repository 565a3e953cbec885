r"""The objective of `Mixture`: the negative conditional log-likelihood of the latent-row model.

.. math:: -\sum_i w_i \log \sum_j κ_{ij}\, p(y_i | ⟨v, x_{ij}⟩ + b, φ)
          + \frac{λ}{2φ}‖V‖² + \frac{ρ}{2}‖W‖² + \frac{η}{2}‖u‖²

Rows may have any distribution. λ penalizes V as it does in a GLM, whose loss is φ times the
negative log-likelihood; the score's penalties, of its quadratic part W and its linear part u, have
the unit of a log-likelihood, so that nothing depends on the unit of y.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.module import AttentionModule
from diagatt.solvers.gradient.train import Training
from diagatt.solvers.problem import Problem, Samples

# φ stays above this share of the dispersion that a constant mean leaves: a row that fits one
# response exactly must not decide the fit.
LEAST_DISPERSION = 0.01


class MixtureModule(AttentionModule):
    """Diagonalized attention with the dispersion of its response: φ = φ₀ + e^θ.

    Parameters
    ----------
    attention : DiagonalAttention
        With ``readout="mixture"``.
    null_dispersion : float
        φ̂ of a constant mean; the floor φ₀ is a hundredth of it, and the start of φ a half.
    """

    floor: Tensor

    def __init__(self, attention: DiagonalAttention, null_dispersion: float) -> None:
        super().__init__()
        self.attention = attention
        zero = attention.value.detach().new_zeros(())
        self.register_buffer("floor", zero + LEAST_DISPERSION * null_dispersion)
        if attention.query_key.factors() is None:
            attention.query_key.matrix().register_hook(self._without_constants)
        assert attention.family is not None
        self.log_excess: nn.Parameter | None = None
        if attention.family.has_dispersion:
            self.log_excess = nn.Parameter(zero)
            self.set_phi(0.5 * null_dispersion)

    def _without_constants(self, gradient: Tensor) -> Tensor:
        """Drop the gradient of terms without effect on the softmax: Adam would enlarge rounding."""
        d = self.attention.n_features
        gradient = gradient.clone()
        gradient[:, d:, d:] = 0
        return gradient

    @property
    def phi(self) -> Tensor:
        """φ; 1 for families without a dispersion."""
        if self.log_excess is None:
            return torch.ones_like(self.floor)
        return self.floor + self.log_excess.exp()

    @torch.no_grad()
    def set_phi(self, phi: float) -> None:
        """Set φ, to a value just above the floor at least."""
        if self.log_excess is not None:
            excess = phi - float(self.floor)
            self.log_excess.fill_(math.log(max(excess, 0.01 * float(self.floor))))

    def forward(self, *samples: Any, **known: Any) -> Tensor:
        """Return the predictors of the mixture's mean, (n, K), as the attention does."""
        return self.attention(*samples, **known)

    def effects(self) -> list[nn.Parameter]:
        """Return V, b and γ."""
        return self.attention.effects()

    def blocks(self, offsets: Tensor) -> Iterator[tuple[slice, slice]]:
        """Cut samples as the attention does."""
        return self.attention.blocks(offsets)


@dataclass(frozen=True, kw_only=True)
class MixtureTraining(Training):
    """Settings of training a `MixtureModule`, with the mixture's objective."""

    linear_ridge: float
    is_convex_in_effects: ClassVar[bool] = False
    separates_samples: ClassVar[bool] = True

    def losses(self, module: AttentionModule, block: Samples) -> Tensor:
        """Return −log Σ κ p(y | z_j, φ), (n,)."""
        assert isinstance(module, MixtureModule)
        given = (block.y, block.values, block.offsets, block.covariates)
        further = (module.phi, block.offset, block.log_known, block.log_prior)
        return -module.attention.log_density(*given, *further)

    def penalty(self, module: AttentionModule, problem: Problem) -> Tensor:
        """Return the penalties of values and of scores, per unit of weight."""
        assert isinstance(module, MixtureModule)
        ridges = (self.ridge / module.phi, self.score_ridge, self.linear_ridge)
        return module.attention.penalty(*ridges) / problem.total_weight

    @torch.no_grad()
    def change_unit(self, module: AttentionModule, unit: float) -> None:
        """Convert a module for responses y to one for y/unit, in place."""
        super().change_unit(module, unit)
        assert isinstance(module, MixtureModule)
        if module.log_excess is not None:
            module.log_excess.sub_(2 * math.log(unit))
            module.floor.div_(unit**2)

    def in_unit(self, value: float, unit: float) -> float:
        """Return the objective for y: the density of y/unit is `unit` times as large."""
        return value + math.log(unit)


def null_dispersion(problem: Problem) -> float:
    """Return φ̂ of a constant mean: the variance of y, or its squared coefficient of variation."""
    family = problem.family
    if not family.has_dispersion:
        return 1.0
    (total,) = problem.total(lambda part: [part.weights @ part.y.reshape(part.n_samples, -1)])
    mean = (total / problem.total_weight)[None]  # (1, K)
    z = family.link(mean)

    def units(part: Samples) -> list[Tensor]:
        found = family.unit_dispersion(part.y.double(), z.expand(part.n_samples, -1))
        return [(part.weights.double() * found).sum()]

    phi = float(problem.total(units)[0]) / problem.total_weight
    # A constant y has no variance but what rounding leaves.
    negligible = 1e-24 * float(mean.square().max()) if family.has_identity_link else 1e-24
    return phi if phi > negligible else 1.0
