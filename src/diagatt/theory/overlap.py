"""Spectral overlap: interference of other signal classes with a head (prop2 and supplement S4).

Two families of excess covariances have an overlap that is known in closed form (S4.1 to S4.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from diagatt.arguments import Numbers, Seed, Size
from diagatt.theory.moments import Moments, symmetric
from diagatt.theory.multi_head import OVERLAP_LIMIT
from diagatt.theory.whitening import whiten_and_project


@dataclass(frozen=True)
class HeadOverlap:
    """Interference seen by one head."""

    gamma_bar: float  #: γ̄_k*, the average of the d* smallest eigenvalues of ``eigenvalues``.
    gamma_pre: float  #: That average before the means are projected away: γ̄_k* is no smaller.
    upper: float  #: Interlacing bound γ̄_k* ≤ ``upper``.
    eigenvalues: np.ndarray  #: (d_k,), the projected spectrum, ascending.
    d_star: int
    mean_rank: int


@dataclass(frozen=True)
class SpectralOverlap:
    """Interference seen by every head, as a tuple of `HeadOverlap` in ``heads``."""

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
    """Return γ̄_k* of Theorem prop2 for every head, from moments, even where γ̄* ≥ 1.

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
    deltas: Sequence[Any], means: Numbers | None = None, d_star: int | None = None
) -> SpectralOverlap:
    """Return γ̄_k* for every head, from the excess covariances Δ_k themselves.

    ``T_k = Δ_k^{-1/2} (Σ_{ℓ≠k} Δ_ℓ) Δ_k^{-1/2}``, compressed to the complement of
    ``Z_k = Δ_k^{-1/2}[means]``; the d* smallest eigenvalues are averaged.

    Parameters
    ----------
    deltas : sequence of (d, d) arrays
        Positive definite; at least two.
    means : array of shape (d, k), optional
        Mean vectors to be annihilated, one per column.
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
        B, _, q = whiten_and_project(delta, columns, name=f"Δ_{k + 1}", head=k)
        if not 1 <= size <= d - q:
            raise ValueError(f"d* = {size} is outside 1..{d - q}, the directions left to head {k}.")
        others = total - delta
        lower, upper = interlacing_bounds(eigh(others, delta, eigvals_only=True), q, size)
        projected = np.linalg.eigvalsh(B.T @ others @ B)  # (d − q,)
        gamma = float(projected[:size].mean())
        heads.append(HeadOverlap(gamma, lower, upper, projected, size, q))
    return SpectralOverlap(tuple(heads))


def interlacing_bounds(spectrum: Numbers, q: Size, d_star: int) -> tuple[float, float]:
    """Bound γ̄_k* by Cauchy interlacing (eq. projection-interlacing and -correction).

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


# -------------------------------------------------------------------- the two closed families


def analytic_family(d: Size, s: Size, a: float, b: float, seed: Seed = None) -> np.ndarray:
    """Build the analytic sufficient family (S4.1): ``Δ_k = a P_k + b I`` on orthogonal subspaces.

    The s subspaces have dimension d* = ⌊d/s⌋: coordinate blocks, or the same blocks in a random
    orthonormal basis if a seed is given. The result has shape (s, d, d).

    Examples
    --------
    >>> np.diag(analytic_family(d=4, s=2, a=3.0, b=1.0)[1])
    array([1., 1., 4., 4.])
    """
    _check_positive(a=a, b=b)
    _check_classes(d, s)
    size = d // s
    diagonals = np.full((s, d), float(b))
    for k in range(s):
        diagonals[k, k * size : (k + 1) * size] += a
    return _in_basis(diagonals, seed)


def analytic_overlap(s: Size, a: float, b: float) -> float:
    """Return γ̄_k* of the analytic family, ``(s − 1) b/(a + b)``, below one iff ``a > (s − 2) b``.

    It holds for means whose whitened span is orthogonal to the class's own subspace (zero means,
    for one), and a > (s − 2)b; otherwise the smallest eigenvalues lie elsewhere.

    Examples
    --------
    >>> analytic_overlap(3, a=3.0, b=1.0)
    0.5
    """
    _check_positive(a=a, b=b)
    if a <= (s - 2) * b:
        raise ValueError(f"a = {a} ≤ (s − 2) b = {(s - 2) * b}: the family's condition fails.")
    return (s - 1) * b / (a + b)


def shared_specific_family(
    d: Size, s: Size, r_cs: int, c_sig: float = 1.0, c_eps: float = 0.01, seed: Seed = None
) -> np.ndarray:
    """Build the shared-and-class-specific family (S4.2).

    ``Δ_k = c_sig (P_sh + P_k) + c_eps I`` with r = d/s enhanced directions per class, of which r_cs
    are its own and r − r_cs are shared by all. Coordinates: shared, then s private blocks, then the
    rest; or a random orthonormal basis if a seed is given. The result has shape (s, d, d).

    Examples
    --------
    >>> np.diag(shared_specific_family(d=4, s=2, r_cs=1, c_eps=0.5)[1])
    array([1.5, 0.5, 1.5, 0.5])
    """
    _check_positive(c_sig=c_sig, c_eps=c_eps)
    diagonals = np.full((s, d), float(c_eps))
    for k, (shared, own) in enumerate(_blocks(d, s, r_cs)):
        diagonals[k, shared] += c_sig
        diagonals[k, own] += c_sig
    return _in_basis(diagonals, seed)


def preprojection_average(
    fraction: float, s: Size, c_sig: float = 1.0, c_eps: float = 0.01
) -> float:
    """Return the average overlap before the means are projected away (eq. preprojection-average).

    ``γ̄_pre = f (s − 1)c_eps/(c_sig + c_eps) + (1 − f)(s − 1)`` with f = r_cs/r.

    Examples
    --------
    >>> [round(preprojection_average(1.0, s), 4) for s in (3, 5, 10)]
    [0.0198, 0.0396, 0.0891]
    """
    return fraction * (s - 1) * c_eps / (c_sig + c_eps) + (1 - fraction) * (s - 1)


def class_specific_cutoff(s: Size, c_sig: float = 1.0, c_eps: float = 0.01) -> float:
    """Return the fraction r_cs/r above which γ̄_pre < 1 (eq. class-specific-cutoff).

    ``(s − 2)(c_sig + c_eps) / ((s − 1) c_sig)``.

    Examples
    --------
    >>> [round(class_specific_cutoff(s), 4) for s in (3, 5, 10)]
    [0.505, 0.7575, 0.8978]
    """
    return (s - 2) * (c_sig + c_eps) / ((s - 1) * c_sig)


def shared_specific_spectrum(
    means: Any, s: Size, r_cs: int, k: int, c_sig: float = 1.0, c_eps: float = 0.01
) -> np.ndarray:
    """Return the projected interference spectrum of head k of the shared-and-class-specific family.

    It equals the spectrum of the dense computation in coordinates, at a cost of O(d (s + 1)²): T_k
    is a scalar on each of three coordinate sets, so inside a set only the span of the whitened
    means matters. A QR step compresses every set to at most s + 1 directions; all other directions
    are eigenvectors already. The result (d − m,) is ascending.

    Parameters
    ----------
    means : array of shape (d, m)
        Raw mean vectors, one per column, linearly independent; d divisible by s.
    s, r_cs, k, c_sig, c_eps
        As in :func:`shared_specific_family`; k is the head.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shared_specific_spectrum(rng.standard_normal((12, 2)), s=3, r_cs=0, k=0).round(12)
    array([2., 2., 2., 2., 2., 2., 2., 2., 2., 2.])
    """
    columns = np.asarray(means, dtype=np.float64)
    d, m = columns.shape
    blocks = _blocks(d, s, r_cs)
    shared, own = blocks[k]
    enhanced = np.zeros(d, dtype=bool)
    enhanced[shared], enhanced[own] = True, True
    levels = np.full(d, s - 1.0)  # shared and remaining directions
    levels[own] = (s - 1) * c_eps / (c_sig + c_eps)
    for j, (_, other) in enumerate(blocks):
        if j != k:
            levels[other] = s - 1 + c_sig / c_eps
    Z = columns / np.sqrt(c_eps + c_sig * enhanced)[:, None]  # (d, m) whitened
    small, small_levels, untouched = [], [], []
    for level in np.unique(levels):
        R = np.linalg.qr(Z[levels == level], mode="r")  # (≤ m, m)
        small.append(R)
        small_levels.append(np.full(len(R), level))
        untouched.append(np.full(int(np.sum(levels == level)) - len(R), level))
    kept = np.linalg.qr(np.vstack(small), mode="complete")[0][:, m:]
    moved = np.linalg.eigvalsh((kept.T * np.concatenate(small_levels)) @ kept)
    return np.sort(np.concatenate([*untouched, moved]))


def _blocks(d: Size, s: Size, r_cs: int) -> list[tuple[slice, slice]]:
    """Return the coordinates of the shared block and of class k's own block, for every k."""
    _check_classes(d, s)
    r = d // s
    if d % s or not 0 <= r_cs <= r:
        raise ValueError(f"need d divisible by s and 0 ≤ r_cs ≤ d/s, got {d}, {s}, {r_cs}.")
    shared = slice(0, r - r_cs)
    starts = [r - r_cs + k * r_cs for k in range(s)]
    return [(shared, slice(start, start + r_cs)) for start in starts]


def _in_basis(diagonals: np.ndarray, seed: Seed) -> np.ndarray:
    """Return diagonal matrices (s, d, d), in a random orthonormal basis if a seed is given."""
    d = diagonals.shape[1]
    if seed is None:
        return diagonals[:, :, None] * np.eye(d)  # (s, d, d)
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    return np.stack([(basis * row) @ basis.T for row in diagonals])


def _check_classes(d: Size, s: Size) -> None:
    if s < 2 or d < s:
        raise ValueError(f"need at least two classes and one feature per class, got s={s}, d={d}.")


def _check_positive(**constants: float) -> None:
    for name, value in constants.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}.")
