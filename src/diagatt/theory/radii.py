"""Concentration radii r: how far scores stray from their expectations, all rows at once.

Assumption "concentration condition": ``P(max_j |ψ_j − Eψ_j| ≤ r_{η,p}) ≥ 1 − η``. No radius here
asks rows to be independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diagatt.theory.moments import Moments

__all__ = ["gaussian_radius", "hanson_wright_tail", "moment_radius", "subgaussian_radius"]


def hanson_wright_tail(
    t: float, q: int, lambda_delta: float, K: float, tau: float = 1.0, c: float = 1.0
) -> float:
    """Bound the tail of one score (eq. single-hanson-wright).

    ``P(|ψ − Eψ| > t) ≤ 2 exp[−c min{τ²λ_Δ²t²/(K⁴q), τλ_Δt/K²}]``, capped at one, for a matrix that
    annihilates the means and has rank q. The universal constant c is unknown to the paper: give it.

    Examples
    --------
    >>> round(hanson_wright_tail(20.0, q=100, lambda_delta=1.0, K=1.0), 4)
    0.0366
    """
    scaled = tau * lambda_delta * t / K**2
    return float(min(1.0, 2 * np.exp(-c * min(scaled**2 / q, scaled))))


def subgaussian_radius(
    q: int,
    lambda_delta: float,
    K: float,
    p_max: int,
    eta: float,
    *,
    s: int = 1,
    tau: float = 1.0,
    C: float = 1.0,
) -> float:
    """Sub-Gaussian radius (eq. single-subgaussian-radius; s > 1: eq. multi-subgaussian-radius).

    ``r = C K²/(τλ_Δ) · (√(qL) + L)`` with ``L = log(2 s p_max/η)``.

    Parameters
    ----------
    q : int
        Rank of the separating matrix: d − rank Z, or d* with several heads.
    lambda_delta : float
        λ_min of the contrast, the smallest over heads.
    K : float
        Sub-Gaussian scale of the centred rows. With bounded standardized norm K² may be
        replaced by the largest eigenvalue of all covariances.
    p_max : int
        Most rows in a sample.
    eta : float
        Probability that the radius may be exceeded, in (0, 1).
    s : int
        Heads.
    tau : float
        Temperature.
    C : float
        Universal constant, not given by the paper; :func:`gaussian_radius` has none.

    Examples
    --------
    >>> round(subgaussian_radius(100, 1.0, 1.0, p_max=20, eta=0.05), 2)
    32.54
    """
    L = _log_union(s * p_max, eta)
    return float(C * K**2 / (tau * lambda_delta) * (np.sqrt(q * L) + L))


def gaussian_radius(
    W: Any, rows: Sequence[Moments], p_max: int, eta: float, *, s: int = 1
) -> float:
    """Radius for Gaussian rows with every constant explicit (of the same order as the paper's).

    For ``x ~ N(μ, Σ)`` and ``A = Σ^{1/2}WΣ^{1/2}``, the cumulant bound of a Gaussian quadratic form
    gives ``P(|ψ − Eψ| > 2√(tV) + 2‖A‖t) ≤ 2e^{−t}`` with ``V = ‖A‖_F² + 2μᵀWΣWμ``; the union over
    s·p_max scores sets ``t = log(2 s p_max/η)``. It needs no annihilated means, so it also serves
    the second-moment construction. The largest radius over the given kinds of rows is returned.

    Parameters
    ----------
    W : array of shape (d, d) or (R, d, d)
        One query-key matrix, or those of all heads.
    rows : sequence of Moments
        Every kind of row that occurs: background and signal classes.
    p_max : int
    eta : float
    s : int
        Heads over which the radius holds jointly; at least the number of matrices given.

    Examples
    --------
    >>> row = Moments(np.zeros(100), np.eye(100))
    >>> round(gaussian_radius(np.eye(100), [row], p_max=20, eta=0.05), 2)
    65.08
    """
    matrices = np.asarray(W, dtype=np.float64)
    matrices = matrices[None] if matrices.ndim == 2 else matrices  # (R, d, d)
    t = _log_union(max(s, len(matrices)) * p_max, eta)
    return max(_one_gaussian_radius(weight, row, t) for weight in matrices for row in rows)


def moment_radius(variances: Any, eta: float) -> float:
    """Radius from score variances alone (Chebyshev and a union bound): any distribution.

    ``r = √(Σ_j Var(ψ_j) / η)``, the sum over all rows (and heads) of a sample. Far wider than the
    other radii in p and η, but right for rows with heavy tails as long as variances exist.

    Examples
    --------
    >>> moment_radius([2.0, 2.0, 1.0], eta=0.05)
    10.0
    """
    _check_eta(eta)
    spread = np.asarray(variances, dtype=np.float64)
    if spread.size == 0 or np.any(spread < 0) or not np.all(np.isfinite(spread)):
        raise ValueError("variances must be finite, non-negative numbers, one a row.")
    return float(np.sqrt(spread.sum() / eta))


def _one_gaussian_radius(weight: np.ndarray, row: Moments, t: float) -> float:
    weight = (weight + weight.T) / 2
    values, vectors = np.linalg.eigh(row.covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))  # (d, d), Σ = root rootᵀ
    A = root.T @ weight @ root  # (d, d), same spectrum as Σ^{1/2}WΣ^{1/2}
    pulled = root.T @ (weight @ row.mean)  # (d,)
    V = np.sum(A**2) + 2 * pulled @ pulled
    return float(2 * np.sqrt(t * V) + 2 * t * np.abs(np.linalg.eigvalsh(A)).max())


def _log_union(events: int, eta: float) -> float:
    _check_eta(eta)
    if events < 1:
        raise ValueError(f"p_max and s must be at least 1, their product is {events}.")
    return float(np.log(2 * events / eta))


def _check_eta(eta: float) -> None:
    if not 0 < eta < 1:
        raise ValueError(f"eta must lie strictly between 0 and 1, got {eta}.")
