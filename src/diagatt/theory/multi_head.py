"""Separating matrices for several signal classes (Section 4.2, supplement S2.2 and S2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diagatt.theory.moments import Moments, symmetric
from diagatt.theory.multi_construct import DStar, separate_heads
from diagatt.theory.separation import MultiHeadSeparation
from diagatt.theory.whitening import orthonormal

__all__ = [
    "multi_head_envelope_separators",
    "multi_head_separators",
    "multi_head_subspace_separators",
]


def multi_head_separators(
    classes: Sequence[Moments], background: Moments, tau: float = 1.0, d_star: DStar = None
) -> MultiHeadSeparation:
    """Theorem "A covariance-based sufficient multi-head construction" (prop2).

    For head k, with ``Δ_k = Σ_k − Σ₀ ≻ 0``, ``Z_k = Δ_k^{-1/2}[μ₀, …, μ_s]``, ``D_k = Σ_{ℓ≠k} Δ_ℓ``
    and Γ_k the eigenvectors of the d* smallest positive eigenvalues, of average γ̄_k*, of
    ``D̃_k = P^⊥ Δ_k^{-1/2} D_k Δ_k^{-1/2} P^⊥``,

        W_k = Δ_k^{-1/2} Γ_k Γ_kᵀ Δ_k^{-1/2} / τ,
        δ_k⁽⁰⁾ = d*/τ exactly,   δ_k⁽¹⁾ ≥ d*(1 − γ̄_k*)/τ.

    Parameters
    ----------
    classes : sequence of Moments
        Signal classes 1, …, s; at least two.
    background : Moments
    tau : float
        Temperature τ > 0.
    d_star : int, "best" or None
        Directions a head keeps. None is the theorem's ⌊d/s⌋. "best" keeps, in each head, every
        direction whose interference eigenvalue is below one, which makes the lower bound
        ``Σ_q (1 − γ_q)/τ`` as large as it can be.

    Raises
    ------
    SeparationError
        If some Δ_k is not positive definite, d* > d_k, or γ̄_k* ≥ 1.

    Examples
    --------
    >>> first = Moments(np.zeros(4), np.diag([9.0, 9.0, 2.0, 2.0]))
    >>> second = Moments(np.zeros(4), np.diag([2.0, 2.0, 9.0, 9.0]))
    >>> found = multi_head_separators([first, second], Moments(np.zeros(4), np.eye(4)))
    >>> found.heads[0].background_gap, round(found.heads[0].signal_gap_bound, 12)
    (2.0, 1.75)
    """
    return separate_heads(
        classes,
        background.covariance,
        np.array([background.mean]),
        [None] * len(classes),
        tau,
        d_star,
        theorem="prop2: covariance-based multi-head construction",
        background_exact=True,
    )


def multi_head_envelope_separators(
    classes: Sequence[Moments],
    covariance_envelope: Any,
    background_means: Sequence[Any],
    tau: float = 1.0,
    d_star: DStar = None,
) -> MultiHeadSeparation:
    """Multi-head construction with heterogeneous backgrounds (S2.2).

    With ``Σ₀(f) ⪯ Σ̄₀`` for every background distribution f, ``Δ_k = Σ_k − Σ̄₀ ≻ 0`` and Z_k built
    from the signal means and the background means, the matrices of Theorem prop2 have
    ``δ_k⁽⁰⁾ ≥ d*/τ`` over every f and the same bound ``d*(1 − γ̄_k*)/τ`` over the other classes.

    Parameters
    ----------
    classes, tau, d_star
        As in :func:`multi_head_separators`.
    covariance_envelope : array of shape (d, d)
        Σ̄₀, for instance from :func:`envelope`.
    background_means : sequence of (d,) arrays
        Means μ₀(f), or vectors that span them.

    Examples
    --------
    >>> first = Moments(np.zeros(4), np.diag([9.0, 9.0, 2.0, 2.0]))
    >>> second = Moments(np.zeros(4), np.diag([2.0, 2.0, 9.0, 9.0]))
    >>> found = multi_head_envelope_separators([first, second], np.eye(4), [[1, 0, 0, 0]], d_star=1)
    >>> found.heads[0].background_gap, found.heads[0].background_exact
    (1.0, False)
    """
    return separate_heads(
        classes,
        symmetric(covariance_envelope, "covariance_envelope"),
        np.reshape(np.asarray(background_means, dtype=np.float64), (-1, classes[0].n_features)),
        [None] * len(classes),
        tau,
        d_star,
        theorem="S2.2: multi-head construction, heterogeneous backgrounds",
        background_exact=False,
    )


def multi_head_subspace_separators(
    classes: Sequence[Moments],
    background: Moments,
    bases: Sequence[Any],
    tau: float = 1.0,
    d_star: DStar = None,
) -> MultiHeadSeparation:
    """Head-specific informative subspaces (S2.3, eq. multi-informative-weight).

    With U_k an orthonormal basis of head k's subspace and ``U_kᵀΔ_kU_k ≻ 0``, Theorem prop2 is
    carried out on moments compressed by U_k and lifted back: W_k annihilates all means, has rank
    d_k*, ``δ_k⁽⁰⁾ = d_k*/τ`` exactly and ``δ_k⁽¹⁾ ≥ d_k*(1 − γ̄_k*)/τ``.

    Parameters
    ----------
    classes, background, tau
        As in :func:`multi_head_separators`.
    bases : sequence of (d, m_k) arrays or None
        One a head; None keeps the whole space.
    d_star : int, "best" or None
        None is ⌊d/s⌋, or all available directions where there are fewer.

    Notes
    -----
    The bound over other classes needs ``U_kᵀΔ_ℓU_k ⪰ 0`` for every ℓ ≠ k, which the paper does
    not state. Where it fails, D_k is summed from the positive parts of the compressed Δ_ℓ; the
    bound then holds, and it is the paper's wherever the paper's proof applies.

    Examples
    --------
    >>> first = Moments(np.zeros(3), np.diag([3.0, 1.0, 1.0]))
    >>> second = Moments(np.zeros(3), np.diag([1.0, 5.0, 1.0]))
    >>> axes = np.eye(3)
    >>> found = multi_head_subspace_separators(
    ...     [first, second], Moments(np.zeros(3), np.eye(3)), [axes[:, :1], axes[:, 1:2]]
    ... )
    >>> found.gap, found.heads[1].rank
    (1.0, 1)
    """
    if len(bases) != len(classes):
        raise ValueError(f"{len(bases)} bases for {len(classes)} classes: give one a head.")
    d = background.n_features
    return separate_heads(
        classes,
        background.covariance,
        np.array([background.mean]),
        [None if U is None else orthonormal(U, d) for U in bases],
        tau,
        d_star,
        theorem="S2.3: head-specific informative subspaces",
        background_exact=True,
        shorten=True,
    )
