"""Separating matrices for one active row per sample (Section 4.1, supplement S2.1 and S2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.arguments import Numbers
from diagatt.theory.moments import Moments, covariance_contrast, symmetric
from diagatt.theory.whitening import orthonormal, whiten_and_project


@dataclass(frozen=True)
class SeparatingMatrix:
    """A query-key matrix W with a known gap between expected scores."""

    W: np.ndarray  #: (d, d), symmetric positive semidefinite; the temperature is already inside.
    L: np.ndarray  #: (d, rank), factor W = L Lᵀ: query and key matrices with the same scores.
    gap: float  #: Score gap δ between the target row and its strongest competitor.
    exact: bool  #: Whether ``gap`` is the gap itself; otherwise it is a lower bound of it.
    rank: int
    operator_norm: float  #: Largest singular value of W.
    operator_norm_bound: float  #: The paper's bound 1 / (τ λ_min(Δ)).
    tau: float  #: Temperature τ.
    lambda_min: float  #: Smallest eigenvalue of the contrast Δ, in the subspace if there is one.
    mean_rank: int  #: rank(Z), the count of directions given up to annihilate the means.
    theorem: str  #: Where the construction stands in the paper.

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores ``xWxᵀ = ‖Lᵀx‖²`` of rows of shape (..., d)."""
        return np.sum((np.asarray(rows) @ self.L) ** 2, axis=-1)


def single_head_separator(
    active: Moments, background: Moments, tau: float = 1.0
) -> SeparatingMatrix:
    """Build the matrix of Theorem "A covariance-based sufficient construction" (prop1).

    With ``Δ = Σ₁ − Σ₀ ≻ 0``, ``Z = Δ^{-1/2}[μ₁, μ₀]`` and ``P_Z^⊥ = I − ZZ⁺``,

        W₀ = Δ^{-1/2} P_Z^⊥ Δ^{-1/2} / τ,   δ₀ = (d − rank Z) / τ  exactly,

    and W₀μ₁ = W₀μ₀ = 0.

    Parameters
    ----------
    active, background : Moments
        Common moments of all active and of all inactive rows.
    tau : float
        Temperature τ > 0.

    Raises
    ------
    SeparationError
        If Δ is not positive definite, or the means leave no direction.

    Examples
    --------
    >>> active = Moments([2.0, 0.0, 0.0], 2 * np.eye(3))
    >>> found = single_head_separator(active, Moments(np.zeros(3), np.eye(3)))
    >>> found.gap, found.exact, found.rank
    (2.0, True, 2)
    """
    return _separate(
        covariance_contrast(active, background.covariance, "active rows"),
        np.column_stack([active.mean, background.mean]),
        tau,
        theorem="prop1: covariance-based sufficient construction",
        exact=True,
    )


def single_head_subspace_separator(
    active: Moments, background: Moments, basis: Numbers, tau: float = 1.0
) -> SeparatingMatrix:
    """Build the informative-subspace matrix of one head (S2.3, eq. single-informative-weight).

    With U an orthonormal basis of the m-dimensional subspace, ``Δ_I = UᵀΔU ≻ 0`` and
    ``Z_I = Δ_I^{-1/2} Uᵀ[μ₁, μ₀]``,

        W = U Δ_I^{-1/2} P_{Z_I}^⊥ Δ_I^{-1/2} Uᵀ / τ,   rank W = q = m − rank Z_I,

    and the gap is q/τ exactly. Nothing is required of Δ outside the subspace. The columns of
    ``basis`` (d, m) need only be independent; they are made orthonormal.

    Examples
    --------
    >>> from diagatt.theory import SeparationError
    >>> active = Moments(np.zeros(3), np.diag([3.0, 2.0, 0.5]))
    >>> background = Moments(np.zeros(3), np.eye(3))
    >>> try:
    ...     single_head_separator(active, background)
    ... except SeparationError as error:
    ...     print(error.condition, error.value)
    ...     found = single_head_subspace_separator(active, background, error.suggestion)
    Δ_Σ = Σ₁ − Σ₀ ≻ 0 -0.5
    >>> found.gap, found.L.shape
    (2.0, (3, 2))
    """
    return _separate(
        covariance_contrast(active, background.covariance, "active rows"),
        np.column_stack([active.mean, background.mean]),
        tau,
        theorem="S2.3: informative-subspace construction",
        exact=True,
        basis=orthonormal(basis, active.n_features),
    )


def single_head_envelope_separator(
    active: Moments, covariance_envelope: Numbers, background_means: Sequence[Any], tau: float = 1.0
) -> SeparatingMatrix:
    """Build the matrix for heterogeneous inactive rows whose means lie in a known span (S2.1).

    With ``Σ₀(f) ⪯ Σ̄₀`` for every inactive distribution f, ``Δ = Σ₁ − Σ̄₀ ≻ 0`` and all inactive
    means inside the columns of Z next to μ₁, the matrix of Theorem prop1 has gap at least
    ``(d − rank Z)/τ`` over every f.

    Parameters
    ----------
    active : Moments
    covariance_envelope : array of shape (d, d)
        Σ̄₀, for instance from :func:`envelope`.
    background_means : sequence of (d,) arrays
        Means μ₀(f), or vectors that span them.
    tau : float

    Examples
    --------
    >>> active = Moments(np.zeros(4), 3 * np.eye(4))
    >>> found = single_head_envelope_separator(active, np.eye(4), [[1, 0, 0, 0], [0, 1, 0, 0]])
    >>> found.gap, found.exact
    (2.0, False)
    """
    upper = symmetric(covariance_envelope, "covariance_envelope")
    return _separate(
        covariance_contrast(active, upper, "active rows"),
        np.column_stack([active.mean, *(np.asarray(m, float) for m in background_means)]),
        tau,
        theorem="S2.1: covariance envelope with annihilated means",
        exact=False,
    )


def second_moment_separator(
    active: Moments, second_moment_envelope: Numbers, tau: float = 1.0, basis: Numbers | None = None
) -> SeparatingMatrix:
    """Build the matrix for heterogeneous inactive rows from second moments (S2.1).

    With ``M₀(f) = Σ₀(f) + μ₀(f)μ₀(f)ᵀ ⪯ M̄₀`` for every f and ``Δ_M = M₁ − M̄₀ ≻ 0``,

        W = Δ_M^{-1} / τ,   gap ≥ d / τ  over every f  (eq. heterogeneous-…-weight).

    Means are not annihilated: they are part of what separates.

    Parameters
    ----------
    active : Moments
    second_moment_envelope : array of shape (d, d)
        M̄₀, for instance from :func:`envelope`.
    tau : float
    basis : array of shape (d, m), optional
        Subspace on which Δ_M is positive definite; then ``W = U(UᵀΔ_MU)^{-1}Uᵀ/τ`` and the gap is
        at least m/τ, by the same trace calculation.

    Examples
    --------
    >>> active = Moments([2.0, 0.0], 2 * np.eye(2))
    >>> second_moment_separator(active, np.eye(2), tau=0.5).gap
    4.0
    """
    contrast = active.second_moment - symmetric(second_moment_envelope, "second_moment_envelope")
    return _separate(
        contrast,
        np.zeros((len(contrast), 1)),
        tau,
        theorem="S2.1: heterogeneous inactive rows by second moments",
        exact=False,
        basis=None if basis is None else orthonormal(basis, len(contrast)),
        name="Δ_M = M₁ − M̄₀",
    )


def _separate(
    Delta: np.ndarray,
    means: np.ndarray,
    tau: float,
    *,
    theorem: str,
    exact: bool,
    basis: np.ndarray | None = None,
    name: str = "Δ_Σ = Σ₁ − Σ₀",
) -> SeparatingMatrix:
    """Whiten, project the means (d, k) away, and lift back, as all single-head versions do."""
    B, lambda_min, mean_rank = whiten_and_project(Delta, means, tau=tau, basis=basis, name=name)
    L = (B if basis is None else basis @ B) / np.sqrt(tau)
    return SeparatingMatrix(
        gap=L.shape[1] / tau,
        exact=exact,
        mean_rank=mean_rank,
        theorem=theorem,
        **from_factor(L, tau, lambda_min),
    )


def from_factor(L: np.ndarray, tau: float, lambda_min: float) -> dict[str, Any]:
    """Return the fields of a `SeparatingMatrix` that follow from its factor L (d, rank)."""
    return {
        "W": L @ L.T,
        "L": L,
        "rank": L.shape[1],
        "operator_norm": float(np.linalg.eigvalsh(L.T @ L)[-1]),
        "operator_norm_bound": 1 / (tau * lambda_min),
        "tau": float(tau),
        "lambda_min": lambda_min,
    }
