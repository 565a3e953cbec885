"""Linear algebra shared by the constructions: whitening, mean spans, informative subspaces."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from diagatt.theory.moments import symmetric
from diagatt.theory.separation import SeparationError

__all__ = ["informative_subspace"]

# Below this ratio to the largest eigenvalue a contrast counts as singular: whitening by it would
# multiply rounding errors by more than 1e10.
RELATIVE_SINGULARITY = 1e-10
# Directions of means closer than this are one direction.
SPAN_TOLERANCE = 1e-12


def informative_subspace(Delta: Any, reference: Any = None) -> np.ndarray:
    """Orthonormal basis of a subspace on which a covariance contrast is positive definite.

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


def inverse_root(
    contrast: np.ndarray, name: str, basis: np.ndarray | None, head: int | None
) -> tuple[np.ndarray, float]:
    """Δ^{-1/2} and λ_min(Δ), or a refusal that names λ_min and suggests a subspace.

    ``contrast`` is already compressed to ``basis`` (d, m) if there is one.
    """
    values, vectors = np.linalg.eigh(contrast)
    smallest = float(values[0])
    if smallest <= RELATIVE_SINGULARITY * max(float(values[-1]), 0.0):
        inside = informative_subspace(contrast)  # (m, m')
        suggestion = inside if basis is None else basis @ inside
        m = suggestion.shape[1]
        where = "" if head is None else f" for head {head}"
        advice = (
            f"use the subspace version with error.suggestion, {m} of {len(values)} directions "
            "on which it is positive definite"
            if m
            else "no direction has a positive contrast, so no subspace helps"
        )
        raise SeparationError(
            f"{name} is not positive definite{where}: "
            f"smallest eigenvalue {smallest:.6g}; {advice}.",
            condition=f"{name} ≻ 0",
            value=smallest,
            head=head,
            suggestion=suggestion if m else None,
        )
    return (vectors / np.sqrt(values)) @ vectors.T, smallest


def span(means: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """Orthonormal basis (m, q) of the column span of means (m, k).

    Ranks are decided on directions, not sizes: every column is scaled to length one first.
    ``scale`` (k,) gives the lengths before compression, so that rounding is not taken for a mean.
    """
    lengths = np.linalg.norm(means, axis=0)  # (k,)
    kept = lengths > SPAN_TOLERANCE * (lengths if scale is None else scale)
    if not np.any(kept):
        return np.zeros((len(means), 0))
    left, singular, _ = np.linalg.svd(means[:, kept] / lengths[kept], full_matrices=False)
    return left[:, singular > SPAN_TOLERANCE * singular[0]]


def complement(columns: np.ndarray) -> np.ndarray:
    """Orthonormal basis (m, m − q) of what is orthogonal to q independent columns (m, q)."""
    m, q = columns.shape
    if q == 0:
        return np.eye(m)
    return np.linalg.qr(columns, mode="complete")[0][:, q:]


def orthonormal(basis: Any, d: int) -> np.ndarray:
    """Check a basis (d, m) of independent columns and make it orthonormal."""
    columns = np.asarray(basis, dtype=np.float64)
    if columns.ndim != 2 or columns.shape[0] != d or not 1 <= columns.shape[1] <= d:
        raise ValueError(f"basis must have shape ({d}, m) with 1 ≤ m ≤ {d}, got {columns.shape}.")
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        raise ValueError("basis has dependent columns: pass a basis of the subspace.")
    return np.linalg.qr(columns)[0]
