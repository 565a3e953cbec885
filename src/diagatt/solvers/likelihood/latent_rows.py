r"""The latent-row model: Gaussian background and active rows, given the sample's context.

Row j of sample i, with c̃_i = (1), or (1, mean row) for contextual scores, is

.. math:: x_j ∼ N(A_k c̃_i, C_k) \text{ if head } k \text{ chose it}, \quad
          x_j ∼ N(A_0 c̃_i, C_0) \text{ otherwise}.

The log density ratio is a score of diagonalized attention with an affine term:

.. math:: \log\frac{f_k(x)}{f_0(x)} = x W_k x^⊤ + x T_k c̃ + \text{const}, \quad
          W_k = \tfrac12 (C_0^{-1} - C_k^{-1}), \; T_k = C_k^{-1} A_k - C_0^{-1} A_0.

The response is a GLM of the active rows. EM adds up sums over all samples (`Expected`), from which
the parameters (`LatentRows`) are estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from diagatt.scores import ScoreForm
from diagatt.solvers.likelihood.covariance import ACTIVE_FLOOR, lifted_above_floor, structured


@dataclass(frozen=True)
class RowMoments:
    """Weighted sums over rows from which a Gaussian with mean A c̃ is estimated (float64)."""

    xx: Tensor  # (d, d)  Σ x xᵀ
    xc: Tensor  # (d, q)  Σ x c̃ᵀ
    cc: Tensor  # (q, q)  Σ c̃ c̃ᵀ
    count: float  #        Σ 1

    def tensors(self) -> list[Tensor]:
        """Return all four sums as tensors."""
        return [self.xx, self.xc, self.cc, self.xx.new_tensor(self.count)]

    @classmethod
    def of_tensors(cls, tensors: list[Tensor]) -> RowMoments:
        """Return the moments whose `tensors` these are."""
        xx, xc, cc, count = tensors
        return cls(xx, xc, cc, float(count))

    def __sub__(self, other: RowMoments) -> RowMoments:
        pairs = zip(self.tensors(), other.tensors(), strict=True)
        return RowMoments.of_tensors([a - b for a, b in pairs])

    def __add__(self, other: RowMoments) -> RowMoments:
        pairs = zip(self.tensors(), other.tensors(), strict=True)
        return RowMoments.of_tensors([a + b for a, b in pairs])

    def coefficients(self) -> Tensor:
        """Return the least-squares A, (d, q)."""
        if self.cc.shape[0] == 0:
            return self.xc
        return self.xc @ torch.linalg.pinv(self.cc, hermitian=True)

    def residual(self, A: Tensor) -> Tensor:
        """Return Σ (x − A c̃)(x − A c̃)ᵀ, (d, d)."""
        cross = self.xc @ A.T
        return self.xx - cross - cross.T + A @ self.cc @ A.T


@dataclass(frozen=True)
class RowModel:
    """Distributions of background (index 0) and active rows (1 to R), float64."""

    A: Tensor  # (R + 1, d, q)
    C: Tensor  # (R + 1, d, d)

    @property
    def n_heads(self) -> int:
        """R."""
        return len(self.C) - 1

    @cached_property
    def _factor(self) -> Tensor:
        """Cholesky factors of the covariances, (R + 1, d, d)."""
        return torch.linalg.cholesky(self.C)

    @cached_property
    def precision(self) -> Tensor:
        """Inverse covariances, (R + 1, d, d)."""
        return torch.cholesky_inverse(self._factor)

    @cached_property
    def logdet(self) -> Tensor:
        """Log determinants of the covariances, (R + 1,)."""
        return 2 * self._factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)

    def score_terms(self) -> tuple[Tensor, Tensor]:
        """Return W (R, d, d) and T (R, d, q) of the log density ratios."""
        K = self.precision
        KA = K @ self.A
        return 0.5 * (K[0] - K[1:]), KA[1:] - KA[0]

    def score_constants(self, context: Tensor) -> Tensor:
        """Return the terms that affect the likelihood but not the softmax, (n, R)."""
        K, logdet = self.precision, self.logdet
        c = context.to(K.dtype)
        inner = torch.einsum("np,kpq,nq->nk", c, self.A.mT @ K @ self.A, c)  # (n, R + 1)
        return 0.5 * (inner[:, :1] - inner[:, 1:]) + 0.5 * (logdet[0] - logdet[1:])

    def divergence(self, other: RowModel, context: Tensor) -> float:
        r"""Return the symmetric Kullback–Leibler divergence of active rows, summed over heads.

        .. math:: \tfrac12 \sum_k \mathrm{tr}(K_k C'_k + K'_k C_k - 2I) +
                  \mathrm{tr}\bigl((K_k + K'_k)(A_k - A'_k) M (A_k - A'_k)^\top\bigr)

        Parameters
        ----------
        context : tensor of shape (q, q)
            M, the mean of c̃ c̃ᵀ.
        """
        K, L = self.precision[1:], other.precision[1:]
        moved = (self.A - other.A)[1:]
        of_covariances = (K * other.C[1:] + L * self.C[1:]).sum() - 2 * K.shape[0] * K.shape[1]
        return float(0.5 * (of_covariances + ((K + L) * (moved @ context @ moved.mT)).sum()))

    def background_log_likelihood(self, total: RowMoments) -> float:
        """Return Σ log f_0(x) over all rows, as if none were active."""
        d = self.C.shape[1]
        quadratic = (self.precision[0] * total.residual(self.A[0])).sum()
        normalizer = d * math.log(2 * math.pi) + self.logdet[0]
        return float(-0.5 * (total.count * normalizer + quadratic))

    def query_key(self, score_form: ScoreForm) -> Tensor:
        """Return the scores as query–key matrices of lengthened rows, (R, D, D), times √d."""
        W, T = self.score_terms()
        return score_form.join(W, T) * W.shape[-1] ** 0.5


def gaussian_of(
    moments: RowMoments, diagonal: bool = False, shrink: bool = True
) -> tuple[Tensor, Tensor]:
    """Return coefficients A and an invertible covariance C, shrunk where rows are few."""
    A = moments.coefficients()
    C = moments.residual(A) / max(moments.count, 1e-12)
    C = (C + C.T) / 2  # sums in blocks leave rounding behind
    if diagonal:
        C = torch.diag(C.diagonal())
    if shrink and moments.count < 20 * len(C):
        C = structured(C, moments.count, "full", None, 0)
    return A, lifted_above_floor(C)


def estimate_row_model(
    active: list[RowMoments],
    background: RowMoments,
    kind: str,
    shrinkage: float | None,
    rank: int,
) -> RowModel:
    """Return the maximum-likelihood row model, under the covariance structure, from moments."""
    A0, C0 = gaussian_of(background, diagonal=kind == "diagonal", shrink=shrinkage is None)
    L = torch.linalg.cholesky(C0)
    A, C = [A0], [C0]
    for moments in active:
        Ak = moments.coefficients()
        Sk = moments.residual(Ak) / max(moments.count, 1e-12)
        white = torch.linalg.solve_triangular(L, Sk, upper=False)
        white = torch.linalg.solve_triangular(L, white.T, upper=False)
        white = structured((white + white.T) / 2, moments.count, kind, shrinkage, rank)
        white = lifted_above_floor(white, ACTIVE_FLOOR)
        A.append(Ak)
        C.append(L @ white @ L.T)
    return RowModel(torch.stack(A), torch.stack(C))


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


@dataclass(frozen=True)
class LatentRows:
    """Parameters of the latent-row model."""

    rows: RowModel
    response: ResponseModel

    @property
    def prevalence(self) -> float | None:
        """π; None if every sample has an active row."""
        return None if self.response.none is None else self.response.none.prevalence

    def tensors(self) -> dict[str, Tensor]:
        """Return all parameters, for a file or another process."""
        rows, response = self.rows, self.response
        phi = torch.tensor(response.phi, dtype=torch.float64, device=rows.A.device)
        parts = {"A": rows.A, "C": rows.C, "value": response.value, "shared": response.shared}
        if response.none is not None:
            share = torch.full_like(phi, response.none.prevalence)
            parts |= {"prevalence": share, "none_value": response.none.value}
        return {**parts, "phi": phi}

    @classmethod
    def of(cls, tensors: dict[str, Tensor]) -> LatentRows:
        """Return the parameters whose `tensors` these are."""
        t = tensors
        none = NoneModel(float(t["prevalence"]), t["none_value"]) if "prevalence" in t else None
        response = ResponseModel(t["value"], t["shared"], float(t["phi"]), none)
        return cls(RowModel(t["A"], t["C"]), response)


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
        """Return the sums as tensors, which are added over parts of the data."""
        numbers = [self.log_likelihood, self.loss, self.dispersion, self.without]
        tensors = [self.xx, self.xc, self.gradient, self.moments, self.score_square]
        rows = [t for own in (self.taken, self.total) if own is not None for t in own.tensors()]
        return [self.xx.new_tensor(numbers), *tensors, *rows]

    @classmethod
    def of_sums(cls, sums: list[Tensor]) -> Expected:
        """Return the object whose `sums` these are."""
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
