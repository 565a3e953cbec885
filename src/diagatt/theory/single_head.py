"""Separating matrices for one active row per sample (Section 4.1, supplement S2.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.theory.construct import separate
from diagatt.theory.moments import Moments, covariance_contrast
from diagatt.theory.separation import SeparatingMatrix
from diagatt.theory.whitening import orthonormal

__all__ = [
    "single_head_separator",
    "single_head_subspace_separator",
]


def single_head_separator(
    active: Moments, background: Moments, tau: float = 1.0
) -> SeparatingMatrix:
    """Theorem "A covariance-based sufficient construction" (prop1).

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
    return separate(
        covariance_contrast(active, background.covariance, "active rows"),
        np.column_stack([active.mean, background.mean]),
        tau,
        theorem="prop1: covariance-based sufficient construction",
        exact=True,
    )


def single_head_subspace_separator(
    active: Moments, background: Moments, basis: Any, tau: float = 1.0
) -> SeparatingMatrix:
    """Informative-subspace construction for one head (S2.3, eq. single-informative-weight).

    With U an orthonormal basis of the m-dimensional subspace, ``Δ_I = UᵀΔU ≻ 0`` and
    ``Z_I = Δ_I^{-1/2} Uᵀ[μ₁, μ₀]``,

        W = U Δ_I^{-1/2} P_{Z_I}^⊥ Δ_I^{-1/2} Uᵀ / τ,   rank W = q = m − rank Z_I,

    and the gap is q/τ exactly.

    Nothing is asked of Δ outside the subspace. ``basis`` (d, m) needs independent columns only; it
    is made orthonormal.

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
    return separate(
        covariance_contrast(active, background.covariance, "active rows"),
        np.column_stack([active.mean, background.mean]),
        tau,
        theorem="S2.3: informative-subspace construction",
        exact=True,
        basis=orthonormal(basis, active.n_features),
    )
