"""What the E-step hands to the M-step: sums over all samples under the posterior of their rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from diagatt.solvers.likelihood.row_model import RowMoments


@dataclass(frozen=True)
class ResponseModel:
    """The GLM of the response given the chosen rows, float64."""

    value: Tensor  # (R, d, K)
    shared: Tensor  # (1 + covariates, K): intercept first
    phi: float = 1.0
    none: NoneModel | None = None


@dataclass(frozen=True)
class NoneModel:
    """Samples without an active row: how many have one, and the others' response."""

    prevalence: float  # π
    value: Tensor  # (K,): a of the predictor a + b + γᵀc


@dataclass
class Expected:
    """Sums over samples under the posterior, float64."""

    log_likelihood: float
    xx: Tensor  # (R, d, d)      second moments of chosen rows
    xc: Tensor  # (R, d, q)      with the context
    loss: float  #               Σ w E ℓ(y, z)
    dispersion: float
    gradient: Tensor  # (R·d + m, K) of the loss in (V, b, γ), and in a last if there is one
    moments: Tensor  # (R·d + m, R·d + m) Σ w E h f fᵀ, h the curvature or 1 if it is bounded
    score_square: Tensor  # same shape: Σ w E[s sᵀ] − s̄ s̄ᵀ of the score s = ∂ℓ/∂z · f, if asked for
    taken: RowMoments | None = None  # of chosen rows, as far as earlier heads left them free
    without: float = 0.0  # Σ w P(none)
    total: RowMoments | None = None  # of all rows as background rows, if entries are missing
    responsibilities: list[Tensor] = field(default_factory=list)  # blocks of (rows, R), if kept

    def sums(self) -> list[Tensor]:
        """Return what adds up over parts of the data."""
        numbers = [self.log_likelihood, self.loss, self.dispersion, self.without]
        tensors = [self.xx, self.xc, self.gradient, self.moments, self.score_square]
        rows = [t for own in (self.taken, self.total) if own is not None for t in own.tensors()]
        return [self.xx.new_tensor(numbers), *tensors, *rows]

    @classmethod
    def of_sums(cls, sums: list[Tensor]) -> Expected:
        """Return what `sums` took apart."""
        numbers, xx, xc, gradient, moments, score_square, *rows = sums
        of_rows = [RowMoments.of_tensors(rows[k : k + 4]) for k in range(0, len(rows), 4)]
        taken, total = [*of_rows, None, None][:2]
        value, loss, dispersion, without = numbers.tolist()
        return cls(
            value,
            xx,
            xc,
            loss,
            dispersion,
            gradient,
            moments,
            score_square,
            taken,
            without,
            total,
        )


def bordered(left: Tensor, cross: Tensor, corner: Tensor) -> Tensor:
    """Return second moments of (x_1, …, x_R, 1, covariates) from their pieces."""
    top = torch.cat([left, cross], dim=1)
    return torch.cat([top, torch.cat([cross.T, corner], dim=1)])
