"""Two families of excess covariances whose overlap is known in closed form (S4.1–S4.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "analytic_family",
    "analytic_overlap",
    "class_specific_cutoff",
    "preprojection_average",
    "shared_specific_family",
    "shared_specific_spectrum",
]


def analytic_family(d: int, s: int, a: float, b: float, seed: int | None = None) -> np.ndarray:
    """Analytic sufficient family (S4.1): ``Δ_k = a P_k + b I`` on orthogonal subspaces.

    The s subspaces have dimension d* = ⌊d/s⌋: coordinate blocks, or the same blocks in a random
    orthonormal basis if a seed is given.

    Returns
    -------
    ndarray of shape (s, d, d)

    Examples
    --------
    >>> np.diag(analytic_family(d=4, s=2, a=3.0, b=1.0)[1])
    array([1., 1., 4., 4.])
    """
    _positive(a=a, b=b)
    _blocks(d, s)
    size = d // s
    diagonals = np.full((s, d), float(b))
    for k in range(s):
        diagonals[k, k * size : (k + 1) * size] += a
    return _in_basis(diagonals, seed)


def analytic_overlap(s: int, a: float, b: float) -> float:
    """γ̄_k* of the analytic family, ``(s − 1) b/(a + b)``, below one iff ``a > (s − 2) b``.

    It holds for means whose whitened span is orthogonal to the class's own subspace (zero means,
    for one), and a > (s − 2)b; otherwise the smallest eigenvalues lie elsewhere.

    Examples
    --------
    >>> analytic_overlap(3, a=3.0, b=1.0)
    0.5
    """
    _positive(a=a, b=b)
    if a <= (s - 2) * b:
        raise ValueError(f"a = {a} ≤ (s − 2) b = {(s - 2) * b}: the family's condition fails.")
    return (s - 1) * b / (a + b)


def shared_specific_family(
    d: int, s: int, r_cs: int, c_sig: float = 1.0, c_eps: float = 0.01, seed: int | None = None
) -> np.ndarray:
    """Shared-and-class-specific construction (S4.2).

    ``Δ_k = c_sig (P_sh + P_k) + c_eps I`` with r = d/s enhanced directions a class, of which r_cs
    are its own and r − r_cs are shared by all. Coordinates: shared, then s private blocks, then the
    rest; or a random orthonormal basis if a seed is given.

    Returns
    -------
    ndarray of shape (s, d, d)

    Examples
    --------
    >>> np.diag(shared_specific_family(d=4, s=2, r_cs=1, c_eps=0.5)[1])
    array([1.5, 0.5, 1.5, 0.5])
    """
    _positive(c_sig=c_sig, c_eps=c_eps)
    diagonals = np.full((s, d), float(c_eps))
    for k, (shared, own) in enumerate(specific_blocks(d, s, r_cs)):
        diagonals[k, shared] += c_sig
        diagonals[k, own] += c_sig
    return _in_basis(diagonals, seed)


def preprojection_average(
    fraction: float, s: int, c_sig: float = 1.0, c_eps: float = 0.01
) -> float:
    """Average overlap before the means are projected away (eq. preprojection-average).

    ``γ̄_pre = f (s − 1)c_eps/(c_sig + c_eps) + (1 − f)(s − 1)`` with f = r_cs/r.

    Examples
    --------
    >>> [round(preprojection_average(1.0, s), 4) for s in (3, 5, 10)]
    [0.0198, 0.0396, 0.0891]
    """
    return fraction * (s - 1) * c_eps / (c_sig + c_eps) + (1 - fraction) * (s - 1)


def class_specific_cutoff(s: int, c_sig: float = 1.0, c_eps: float = 0.01) -> float:
    """Fraction r_cs/r above which γ̄_pre < 1 (eq. class-specific-cutoff).

    ``(s − 2)(c_sig + c_eps) / ((s − 1) c_sig)``.

    Examples
    --------
    >>> [round(class_specific_cutoff(s), 4) for s in (3, 5, 10)]
    [0.505, 0.7575, 0.8978]
    """
    return (s - 2) * (c_sig + c_eps) / ((s - 1) * c_sig)


def shared_specific_spectrum(
    means: Any, s: int, r_cs: int, k: int, c_sig: float = 1.0, c_eps: float = 0.01
) -> np.ndarray:
    """Projected interference spectrum of head k of the shared-and-class-specific family.

    Same numbers as the dense computation in coordinates, in O(d (s + 1)²): T_k is a scalar on each
    of three coordinate sets, so inside a set only the span of the whitened means matters. A QR step
    squeezes every set to at most s + 1 directions; the others are eigenvectors as they stand.

    Parameters
    ----------
    means : array of shape (d, m)
        Raw mean vectors, one a column, linearly independent; d divisible by s.
    s, r_cs, k : int
    c_sig, c_eps : float

    Returns
    -------
    ndarray of shape (d − m,)
        Ascending.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shared_specific_spectrum(rng.standard_normal((12, 2)), s=3, r_cs=0, k=0).round(12)
    array([2., 2., 2., 2., 2., 2., 2., 2., 2., 2.])
    """
    columns = np.asarray(means, dtype=np.float64)
    d, m = columns.shape
    blocks = specific_blocks(d, s, r_cs)
    shared, own = blocks[k]
    others = [block for j, (_, block) in enumerate(blocks) if j != k]
    enhanced = np.zeros(d, dtype=bool)
    enhanced[shared], enhanced[own] = True, True
    levels = np.full(d, s - 1.0)  # shared and remaining directions
    levels[own] = (s - 1) * c_eps / (c_sig + c_eps)
    for block in others:
        levels[block] = s - 1 + c_sig / c_eps
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


def specific_blocks(d: int, s: int, r_cs: int) -> list[tuple[slice, slice]]:
    """Coordinates of the shared block and of class k's own block, for every k."""
    _blocks(d, s)
    r = d // s
    if d % s or not 0 <= r_cs <= r:
        raise ValueError(f"need d divisible by s and 0 ≤ r_cs ≤ d/s, got {d}, {s}, {r_cs}.")
    shared = slice(0, r - r_cs)
    starts = [r - r_cs + k * r_cs for k in range(s)]
    return [(shared, slice(start, start + r_cs)) for start in starts]


def _in_basis(diagonals: np.ndarray, seed: int | None) -> np.ndarray:
    d = diagonals.shape[1]
    if seed is None:
        return diagonals[:, :, None] * np.eye(d)  # (s, d, d)
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    return np.stack([(basis * row) @ basis.T for row in diagonals])


def _blocks(d: int, s: int) -> None:
    if s < 2 or d < s:
        raise ValueError(f"need at least two classes and one feature a class, got s={s}, d={d}.")


def _positive(**constants: float) -> None:
    for name, value in constants.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}.")
