"""The two steps that every construction shares: whiten by the contrast Δ, project the means away.

A construction whose condition fails raises a `SeparationError`, which contains the condition, the
number that violates it and, where one exists, a subspace on which the construction works.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, orth

from diagatt.arguments import Numbers
from diagatt.theory.moments import symmetric

# Below this ratio to the largest eigenvalue a contrast counts as singular: whitening by it would
# multiply rounding errors by more than 1e10.
RELATIVE_SINGULARITY = 1e-10
# Directions of means closer than this are one direction.
SPAN_TOLERANCE = 1e-12


class SeparationError(ValueError):
    """A construction's condition does not hold.

    Attributes
    ----------
    condition : str
        The violated condition, as a formula.
    value : float
        The number that violates it: a smallest eigenvalue, a dimension, γ̄*.
    head : int or None
        Index of the head concerned, counted from 0; None for single-head constructions.
    suggestion : ndarray of shape (d, m) or None
        Orthonormal basis of a subspace on which the contrast is positive definite, to be handed to
        the subspace version; None where that would not help or no such direction exists.
    """

    def __init__(
        self,
        message: str,
        *,
        condition: str,
        value: float,
        head: int | None = None,
        suggestion: np.ndarray | None = None,
    ) -> None:
        super().__init__(message)
        self.condition = condition
        self.value = value
        self.head = head
        self.suggestion = suggestion


def informative_subspace(Delta: Numbers, reference: Numbers | None = None) -> np.ndarray:
    """Return an orthonormal basis of a subspace on which a contrast is positive definite.

    Without a reference it is the span of all eigenvectors of Δ with a positive eigenvalue, the
    largest such subspace. With a reference covariance Σ₀ the directions are those of ``Δv = λΣ₀v``,
    λ₁ ≥ λ₂ ≥ …, and only the first m are kept, where m maximizes the ratio of gap to noise of the
    subspace construction under Gaussian rows: a direction of contrast λ adds 1 to the gap and
    ``2(1 + 1/λ)² + 2/λ²`` to the variance of a score difference, so a weak one does harm.

    Parameters
    ----------
    Delta : array of shape (d, d)
        Contrast Σ₁ − Σ₀ (or M₁ − M̄₀).
    reference : array of shape (d, d), optional
        Positive definite background covariance.

    Returns
    -------
    ndarray of shape (d, m)
        m = 0 if no direction is positive.

    Examples
    --------
    >>> informative_subspace(np.diag([2.0, -1.0, 0.0])).T
    array([[1., 0., 0.]])
    >>> informative_subspace(np.diag([2.0, 2.0, 0.01]), np.eye(3)).shape
    (3, 2)
    """
    contrast = symmetric(Delta, "Delta")
    if reference is None:
        values, vectors = np.linalg.eigh(contrast)
    else:
        try:
            values, vectors = eigh(contrast, symmetric(reference, "reference"))
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "reference is not positive definite: add a small multiple of the identity to it."
            ) from error
    order = np.argsort(values)[::-1]
    order = order[values[order] > RELATIVE_SINGULARITY * np.abs(values).max(initial=0.0)]
    values, vectors = values[order], vectors[:, order]
    if reference is not None and len(values):
        noise = np.cumsum((1 + 1 / values) ** 2 + 1 / values**2)  # (m_max,)
        ratio = np.arange(1, len(values) + 1) / np.sqrt(noise)
        vectors = vectors[:, : int(np.argmax(ratio)) + 1]
    basis = np.linalg.qr(vectors)[0]  # (d, m)
    # QR leaves signs open; the largest entry of each column is made positive for reproducibility.
    signs = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])])
    return basis * signs + 0.0  # + 0.0 turns -0.0 into 0.0


def whiten_and_project(
    Delta: np.ndarray,
    means: np.ndarray,
    *,
    tau: float = 1.0,
    basis: np.ndarray | None = None,
    name: str = "Δ_Σ = Σ₁ − Σ₀",
    head: int | None = None,
) -> tuple[np.ndarray, float, int]:
    """Return B (m, m − q) with BᵀΔB = I and Bᵀ[means] = 0, λ_min(Δ), and q = rank Z.

    ``B = Δ^{-1/2}K``, where the columns of K are an orthonormal basis of the complement of
    ``Z = Δ^{-1/2}[means]``. With a basis U (d, m), contrast and means (d, k) are compressed by it
    first. Errors mention `name` and `head`.
    """
    if not (np.isfinite(tau) and tau > 0):
        raise ValueError(f"tau must be a positive number, got {tau}.")
    scale = np.linalg.norm(means, axis=0)  # (k,)
    if basis is not None:
        Delta, means = basis.T @ Delta @ basis, basis.T @ means
    values, vectors = np.linalg.eigh(Delta)
    if not values[0] > RELATIVE_SINGULARITY * max(float(values[-1]), 0.0):
        raise _not_positive(Delta, float(values[0]), name, basis, head)
    root = (vectors / np.sqrt(values)) @ vectors.T
    # Δ^{-1/2} is invertible, so rank Z is the rank of the means: decide it before whitening, and
    # on directions, not sizes. What compression left of a mean may be rounding.
    lengths, m = np.linalg.norm(means, axis=0), len(Delta)
    kept = lengths > SPAN_TOLERANCE * scale
    spanned = np.zeros((m, 0))  # (m, q)
    if kept.any():
        spanned = orth(means[:, kept] / lengths[kept], SPAN_TOLERANCE)
    q = spanned.shape[1]
    if q == m:
        message = (
            f"the means span all {m} directions (rank Z = {m}): nothing is left to separate by; "
            "use more features, or second_moment_separator, which keeps the means."
        )
        raise SeparationError(message, condition="rank(Z) < dimension", value=float(m), head=head)
    complement = np.linalg.qr(root @ spanned, mode="complete")[0][:, q:]  # (m, m − q)
    return root @ complement, float(values[0]), q


def orthonormal(basis: Numbers, d: int) -> np.ndarray:
    """Check a basis (d, m) of independent columns and make it orthonormal."""
    columns = np.asarray(basis, dtype=np.float64)
    if columns.ndim != 2 or columns.shape[0] != d or not 1 <= columns.shape[1] <= d:
        raise ValueError(f"basis must have shape ({d}, m) with 1 ≤ m ≤ {d}, got {columns.shape}.")
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        raise ValueError("basis has dependent columns: pass a basis of the subspace.")
    return np.linalg.qr(columns)[0]


def _not_positive(
    contrast: np.ndarray, smallest: float, name: str, basis: np.ndarray | None, head: int | None
) -> SeparationError:
    """Return the error for a contrast, which is compressed to `basis` (d, m) if there is one."""
    inside = informative_subspace(contrast)  # (m, m')
    suggestion = inside if basis is None else basis @ inside
    m = suggestion.shape[1]
    where = "" if head is None else f" for head {head}"
    advice = (
        f"use the subspace version with error.suggestion, {m} of {len(contrast)} directions "
        "on which it is positive definite"
        if m
        else "no direction has a positive contrast, so no subspace helps"
    )
    return SeparationError(
        f"{name} is not positive definite{where}: smallest eigenvalue {smallest:.6g}; {advice}.",
        condition=f"{name} ≻ 0",
        value=smallest,
        head=head,
        suggestion=suggestion if m else None,
    )
