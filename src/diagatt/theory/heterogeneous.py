"""Separating matrices for one active row among differing inactive rows (supplement S2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diagatt.theory.construct import separate
from diagatt.theory.moments import Moments, covariance_contrast, symmetric
from diagatt.theory.separation import SeparatingMatrix
from diagatt.theory.whitening import orthonormal

__all__ = ["second_moment_separator", "single_head_envelope_separator"]


def single_head_envelope_separator(
    active: Moments, covariance_envelope: Any, background_means: Sequence[Any], tau: float = 1.0
) -> SeparatingMatrix:
    """Heterogeneous inactive rows whose means lie in a known span (S2.1).

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
    means = np.column_stack([active.mean, *(np.asarray(m, float) for m in background_means)])
    return separate(
        covariance_contrast(
            active, symmetric(covariance_envelope, "covariance_envelope"), "active rows"
        ),
        means,
        tau,
        theorem="S2.1: covariance envelope with annihilated means",
        exact=False,
    )


def second_moment_separator(
    active: Moments, second_moment_envelope: Any, tau: float = 1.0, basis: Any = None
) -> SeparatingMatrix:
    """Heterogeneous inactive rows, by full second moments (S2.1, eq. heterogeneous-…-weight).

    With ``M₀(f) = Σ₀(f) + μ₀(f)μ₀(f)ᵀ ⪯ M̄₀`` for every f and ``Δ_M = M₁ − M̄₀ ≻ 0``,

        W = Δ_M^{-1} / τ,   gap ≥ d / τ  over every f.

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
    return separate(
        contrast,
        np.zeros((len(contrast), 1)),
        tau,
        theorem="S2.1: heterogeneous inactive rows by second moments",
        exact=False,
        basis=None if basis is None else orthonormal(basis, len(contrast)),
        name="Δ_M = M₁ − M̄₀",
    )
