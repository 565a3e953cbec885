"""How a head of several picks its directions: the d* in which other classes disturb it least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from diagatt.theory.construct import from_factor, whiten_and_project
from diagatt.theory.moments import Moments, covariance_contrast, positive_part
from diagatt.theory.separation import HeadSeparation, MultiHeadSeparation, SeparationError

DStar = int | Literal["best"] | None
# The overlap condition is strict: an average of one up to rounding does not meet it.
OVERLAP_LIMIT = 1 - 1e-10


def separate_heads(
    classes: Sequence[Moments],
    covariance: np.ndarray,
    background_means: np.ndarray,
    bases: Sequence[np.ndarray | None],
    tau: float,
    d_star: DStar,
    *,
    theorem: str,
    background_exact: bool,
    shorten: bool = False,
) -> MultiHeadSeparation:
    """Build all heads against one background covariance (d, d) and background means (f, d)."""
    s, d = len(classes), len(covariance)
    if s < 2:
        raise ValueError(f"{s} signal class: use single_head_separator for one class.")
    deltas = [
        covariance_contrast(c, covariance, f"rows of class {k}") for k, c in enumerate(classes)
    ]
    means = np.column_stack([*background_means, *(c.mean for c in classes)])  # (d, k)
    heads = tuple(
        separate_head(k, U, deltas, means, tau, d_star, theorem, background_exact, shorten, d // s)
        for k, U in enumerate(bases)
    )
    return MultiHeadSeparation(heads)


def separate_head(
    k: int,
    U: np.ndarray | None,
    deltas: Sequence[np.ndarray],
    means: np.ndarray,
    tau: float,
    d_star: DStar,
    theorem: str,
    background_exact: bool,
    shorten: bool,
    default: int,
) -> HeadSeparation:
    """Build head k from the contrasts of all classes and all means (d, k)."""
    name = f"Δ_{k + 1} = Σ_{k + 1} − Σ₀"
    root, lambda_min, kept, mean_rank = whiten_and_project(deltas[k], means, tau, U, name, k)
    lift = root if U is None else U @ root  # (d, m)
    values, vectors = np.linalg.eigh(kept.T @ _interference(deltas, k, U, root) @ kept)  # (d_k,)
    size = _directions(d_star, values, default, k, shorten)
    gamma_bar = float(values[:size].mean())
    if gamma_bar >= OVERLAP_LIMIT:
        raise _overlap_refusal(gamma_bar, values, size, k)
    L = lift @ kept @ vectors[:, :size] / np.sqrt(tau)  # (d, d*)
    bound = size * (1 - gamma_bar) / tau
    others = [delta for j, delta in enumerate(deltas) if j != k]
    overlap = max(float(np.sum((L.T @ delta) * L.T)) for delta in others)  # tr(W_k Δ_ℓ)
    return HeadSeparation(
        gap=min(size / tau, bound),
        exact=False,
        mean_rank=mean_rank,
        theorem=theorem,
        background_gap=size / tau,
        background_exact=background_exact,
        signal_gap_bound=bound,
        signal_gap=size / tau - overlap,
        gamma_bar=gamma_bar,
        d_star=size,
        d_k=len(values),
        **from_factor(L, tau, lambda_min),
    )


def _interference(
    deltas: Sequence[np.ndarray], k: int, U: np.ndarray | None, root: np.ndarray
) -> np.ndarray:
    """Whitened interference ``T_k = Δ_k^{-1/2} D_k Δ_k^{-1/2}``, (m, m)."""
    others = [delta for j, delta in enumerate(deltas) if j != k]
    if U is not None:
        others = [U.T @ delta @ U for delta in others]
    # The proof uses Δ_ℓ ⪯ D_k, true only if every summand is positive semidefinite; one summand
    # alone is D_k itself and needs nothing.
    if len(others) > 1:
        others = [
            delta if np.linalg.eigvalsh(delta)[0] >= 0 else positive_part(delta) for delta in others
        ]
    T = root @ np.sum(others, axis=0) @ root
    return (T + T.T) / 2


def _directions(d_star: DStar, values: np.ndarray, default: int, k: int, shorten: bool) -> int:
    available = len(values)
    if d_star == "best":
        return max(1, int(np.sum(values < OVERLAP_LIMIT)))
    size = default if d_star is None else int(d_star)
    if shorten and d_star is None:
        size = min(max(size, 1), available)
    if size < 1:
        raise SeparationError(
            f"d* = ⌊d/s⌋ = {size} for head {k}: there are more classes than features.",
            condition="d* ≥ 1",
            value=float(size),
            head=k,
        )
    if size > available:
        raise SeparationError(
            f"d* = {size} exceeds d_k = {available}, the directions left to head {k} once the "
            "means are projected away: ask for a smaller d_star, or d_star='best'.",
            condition="d* ≤ d_k",
            value=float(available),
            head=k,
        )
    return size


def _overlap_refusal(gamma: float, values: np.ndarray, size: int, k: int) -> SeparationError:
    good = int(np.sum(values < OVERLAP_LIMIT))
    advice = (
        f"d_star='best' would keep the {good} directions with interference below one"
        if good
        else "no direction has interference below one: the other classes cover this one"
    )
    return SeparationError(
        f"γ̄* = {gamma:.6g} ≥ 1 for head {k}: in its {size} least disturbed directions the other "
        f"classes together vary as much as the target; {advice}.",
        condition="γ̄* < 1",
        value=gamma,
        head=k,
    )
