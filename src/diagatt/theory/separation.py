"""What a separating-matrix construction returns, and how it refuses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["HeadSeparation", "MultiHeadSeparation", "SeparatingMatrix", "SeparationError"]


class SeparationError(ValueError):
    """A construction's condition does not hold.

    Attributes
    ----------
    condition : str
        The violated condition, as a formula.
    value : float
        The number that violates it: a smallest eigenvalue, a dimension, γ̄*.
    head : int or None
        The head it concerns, counted from 0; None for single-head constructions.
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


@dataclass(frozen=True)
class SeparatingMatrix:
    """A query-key matrix W with a known gap between expected scores.

    Attributes
    ----------
    W : ndarray of shape (d, d)
        Symmetric positive semidefinite; the temperature τ is already inside.
    L : ndarray of shape (d, rank)
        Low-rank factor, W = L Lᵀ: query and key matrices with the same scores.
    gap : float
        Score gap δ between the target row and its strongest competitor.
    exact : bool
        True if ``gap`` is the gap, False if it is a lower bound of it.
    rank : int
    operator_norm : float
        Largest singular value of W.
    operator_norm_bound : float
        The paper's bound 1 / (τ λ_min(Δ)).
    tau : float
        Temperature τ.
    lambda_min : float
        Smallest eigenvalue of the contrast Δ, in the subspace if there is one.
    mean_rank : int
        rank(Z), the directions given up to annihilate the means.
    theorem : str
        Where the construction stands in the paper.
    """

    W: np.ndarray
    L: np.ndarray
    gap: float
    exact: bool
    rank: int
    operator_norm: float
    operator_norm_bound: float
    tau: float
    lambda_min: float
    mean_rank: int
    theorem: str

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Scores ``xWxᵀ = ‖Lᵀx‖²`` of rows of shape (..., d)."""
        return np.sum((np.asarray(rows) @ self.L) ** 2, axis=-1)


@dataclass(frozen=True)
class HeadSeparation(SeparatingMatrix):
    """One head of a multi-head construction.

    Attributes
    ----------
    background_gap : float
        δ_k⁽⁰⁾ over the inactive rows: d*/τ.
    background_exact : bool
        Whether ``background_gap`` is exact (common background moments) or a lower bound.
    signal_gap_bound : float
        Lower bound d*(1 − γ̄_k*)/τ of the gap over every other signal class.
    signal_gap : float
        The gap over the strongest other signal class itself, from its moments.
    gamma_bar : float
        γ̄_k*, the average of the d* selected interference eigenvalues.
    d_star : int
        Directions kept, d*.
    d_k : int
        Directions available, dimension minus rank(Z_k).
    """

    background_gap: float
    background_exact: bool
    signal_gap_bound: float
    signal_gap: float
    gamma_bar: float
    d_star: int
    d_k: int


@dataclass(frozen=True)
class MultiHeadSeparation:
    """One separating matrix per signal class.

    Attributes
    ----------
    heads : tuple of HeadSeparation
    """

    heads: tuple[HeadSeparation, ...]

    @property
    def W(self) -> np.ndarray:
        """All query-key matrices, (s, d, d)."""
        return np.stack([head.W for head in self.heads])

    @property
    def gap(self) -> float:
        """Guaranteed smallest gap over heads and competitors, a lower bound of δ_min."""
        return min(head.gap for head in self.heads)

    @property
    def gamma_max(self) -> float:
        """γ̄_max*, the largest average interference."""
        return max(head.gamma_bar for head in self.heads)

    @property
    def lambda_min(self) -> float:
        """λ_Δ, the smallest eigenvalue of all contrasts."""
        return min(head.lambda_min for head in self.heads)

    @property
    def operator_norm(self) -> float:
        """Largest operator norm of the heads, what the class radius R₂ must reach."""
        return max(head.operator_norm for head in self.heads)
