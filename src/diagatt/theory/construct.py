"""The two steps every construction shares: whiten by Δ, then project the means away."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.theory.separation import SeparatingMatrix, SeparationError
from diagatt.theory.whitening import complement, inverse_root, span


def separate(
    Delta: np.ndarray,
    means: np.ndarray,
    tau: float,
    *,
    theorem: str,
    exact: bool,
    basis: np.ndarray | None = None,
    name: str = "Δ_Σ = Σ₁ − Σ₀",
) -> SeparatingMatrix:
    """Whiten, project the means (d, k) away, and lift back: every single-head version."""
    root, lambda_min, kept, mean_rank = whiten_and_project(Delta, means, tau, basis, name, None)
    lift = root if basis is None else basis @ root  # (d, m)
    return SeparatingMatrix(
        gap=kept.shape[1] / tau,
        exact=exact,
        mean_rank=mean_rank,
        theorem=theorem,
        **from_factor(lift @ kept / np.sqrt(tau), tau, lambda_min),
    )


def whiten_and_project(
    Delta: np.ndarray,
    means: np.ndarray,
    tau: float,
    basis: np.ndarray | None,
    name: str,
    head: int | None,
) -> tuple[np.ndarray, float, np.ndarray, int]:
    """Δ^{-1/2} (m, m), λ_min, a basis (m, m − q) of the complement of col(Z), and q = rank Z."""
    if not (np.isfinite(tau) and tau > 0):
        raise ValueError(f"tau must be a positive number, got {tau}.")
    scale = np.linalg.norm(means, axis=0)  # (k,)
    if basis is not None:
        Delta, means = basis.T @ Delta @ basis, basis.T @ means
    root, lambda_min = inverse_root(Delta, name, basis, head)
    # Δ^{-1/2} is invertible, so rank Z is the rank of the means: decide it before whitening.
    spanned = span(means, scale)  # (m, q)
    kept = complement(root @ spanned)  # (m, m − q)
    if kept.shape[1] == 0:
        raise SeparationError(
            f"the means span all {len(Delta)} directions (rank Z = {len(Delta)}): nothing is left "
            "to separate by; use more features, or second_moment_separator, which keeps the means.",
            condition="rank(Z) < dimension",
            value=float(len(Delta)),
            head=head,
        )
    return root, lambda_min, kept, spanned.shape[1]


def from_factor(L: np.ndarray, tau: float, lambda_min: float) -> dict[str, Any]:
    """Fields of a SeparatingMatrix that follow from its factor L (d, rank)."""
    return {
        "W": L @ L.T,
        "L": L,
        "rank": L.shape[1],
        "operator_norm": float(np.linalg.eigvalsh(L.T @ L)[-1]),
        "operator_norm_bound": 1 / (tau * lambda_min),
        "tau": float(tau),
        "lambda_min": lambda_min,
    }
