"""Spectral overlap: how much other signal classes disturb a head (prop2 and supplement S4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.theory.construct import whiten_and_project
from diagatt.theory.moments import Moments, symmetric
from diagatt.theory.multi_construct import OVERLAP_LIMIT

__all__ = [
    "HeadOverlap",
    "SpectralOverlap",
    "contrast_overlap",
    "interlacing_bounds",
    "spectral_overlap",
]


@dataclass(frozen=True)
class HeadOverlap:
    """Interference seen by one head.

    Attributes
    ----------
    gamma_bar : float
        γ̄_k*, the average of the d* smallest eigenvalues after the means are projected away.
    gamma_pre : float
        The same average before the projection.
    lower, upper : float
        Interlacing bounds of γ̄_k*: ``lower`` is ``gamma_pre``.
    eigenvalues : ndarray of shape (d_k,)
        Projected spectrum, ascending.
    d_star, mean_rank : int
    """

    gamma_bar: float
    gamma_pre: float
    lower: float
    upper: float
    eigenvalues: np.ndarray
    d_star: int
    mean_rank: int


@dataclass(frozen=True)
class SpectralOverlap:
    """Interference seen by every head.

    Attributes
    ----------
    heads : tuple of HeadOverlap
    """

    heads: tuple[HeadOverlap, ...]

    @property
    def gamma_max(self) -> float:
        """γ̄_max*; Theorem prop2 needs it below one."""
        return max(head.gamma_bar for head in self.heads)

    @property
    def identifiable(self) -> np.ndarray:
        """Which heads have γ̄_k* < 1, (s,) booleans."""
        return np.array([head.gamma_bar < OVERLAP_LIMIT for head in self.heads])

    @property
    def holds(self) -> bool:
        """Whether the spectral-overlap condition holds."""
        return bool(np.all(self.identifiable))


def spectral_overlap(
    classes: Sequence[Moments], background: Moments, d_star: int | None = None
) -> SpectralOverlap:
    """γ̄_k* of Theorem prop2 for every head, from moments; never refuses because of γ̄* ≥ 1.

    Parameters
    ----------
    classes : sequence of Moments
        Signal classes; every Σ_k − Σ₀ must be positive definite.
    background : Moments
    d_star : int, optional
        ⌊d/s⌋ by default.

    Examples
    --------
    >>> first = Moments(np.zeros(4), np.diag([9.0, 9.0, 2.0, 2.0]))
    >>> second = Moments(np.zeros(4), np.diag([2.0, 2.0, 9.0, 9.0]))
    >>> found = spectral_overlap([first, second], Moments(np.zeros(4), np.eye(4)))
    >>> round(found.gamma_max, 12), found.holds
    (0.125, True)
    """
    means = np.column_stack([background.mean, *(c.mean for c in classes)])  # (d, s + 1)
    return contrast_overlap([c.covariance - background.covariance for c in classes], means, d_star)


def contrast_overlap(
    deltas: Sequence[Any], means: Any = None, d_star: int | None = None
) -> SpectralOverlap:
    """γ̄_k* from the excess covariances Δ_k themselves.

    ``T_k = Δ_k^{-1/2} (Σ_{ℓ≠k} Δ_ℓ) Δ_k^{-1/2}``, compressed to the complement of
    ``Z_k = Δ_k^{-1/2}[means]``; the d* smallest eigenvalues are averaged.

    Parameters
    ----------
    deltas : sequence of (d, d) arrays
        Positive definite; at least two.
    means : array of shape (d, k), optional
        Mean vectors to be annihilated, one a column.
    d_star : int, optional
        ⌊d/s⌋ by default.

    Examples
    --------
    >>> same = [np.diag([2.0, 1.0, 1.0])] * 3
    >>> round(contrast_overlap(same).gamma_max, 12)
    2.0
    """
    contrasts = [symmetric(delta, f"deltas[{k}]") for k, delta in enumerate(deltas)]
    s, d = len(contrasts), len(contrasts[0])
    if s < 2:
        raise ValueError("overlap needs at least two signal classes.")
    columns = np.zeros((d, 1)) if means is None else np.asarray(means, dtype=np.float64)
    size = d // s if d_star is None else d_star
    total = np.sum(contrasts, axis=0)
    heads = []
    for k, delta in enumerate(contrasts):
        root, _, kept, q = whiten_and_project(delta, columns, 1.0, None, f"Δ_{k + 1}", k)
        if not 1 <= size <= d - q:
            raise ValueError(f"d* = {size} is outside 1..{d - q}, the directions left to head {k}.")
        T = root @ (total - delta) @ root  # (d, d)
        heads.append(_head(np.linalg.eigvalsh(T), np.linalg.eigvalsh(kept.T @ T @ kept), q, size))
    return SpectralOverlap(tuple(heads))


def interlacing_bounds(spectrum: Any, q: int, d_star: int) -> tuple[float, float]:
    """Cauchy interlacing (eq. projection-interlacing and -correction).

    With ζ₁ ≤ … ≤ ζ_d the spectrum before projection and q = rank Z_k,
    ``mean(ζ₁..ζ_{d*}) ≤ γ̄_k* ≤ mean(ζ_{1+q}..ζ_{d*+q})``.

    Examples
    --------
    >>> interlacing_bounds([1.0, 2.0, 3.0, 4.0], q=1, d_star=2)
    (1.5, 2.5)
    """
    zeta = np.sort(np.asarray(spectrum, dtype=np.float64))
    if not (q >= 0 and 1 <= d_star <= len(zeta) - q):
        raise ValueError(f"need q ≥ 0 and 1 ≤ d* ≤ d − q, got q={q}, d*={d_star}, d={len(zeta)}.")
    return float(zeta[:d_star].mean()), float(zeta[q : q + d_star].mean())


def _head(before: np.ndarray, after: np.ndarray, q: int, d_star: int) -> HeadOverlap:
    lower, upper = interlacing_bounds(before, q, d_star)
    gamma = float(after[:d_star].mean())
    return HeadOverlap(gamma, lower, lower, upper, after, d_star, q)
