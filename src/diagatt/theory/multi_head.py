"""Separating matrices for several signal classes (Section 4.2, supplement S2.2 and S2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diagatt.arguments import Numbers
from diagatt.theory.moments import Moments, covariance_contrast, positive_part, symmetric
from diagatt.theory.separators import SeparatingMatrix, from_factor
from diagatt.theory.whitening import SeparationError, orthonormal, whiten_and_project

DStar = int | Literal["best"] | None
# The overlap condition is strict: an average of one up to rounding does not meet it.
OVERLAP_LIMIT = 1 - 1e-10


@dataclass(frozen=True)
class HeadSeparation(SeparatingMatrix):
    """One head of a multi-head construction."""

    background_gap: float  #: δ_k⁽⁰⁾ over the inactive rows: d*/τ.
    background_exact: bool  #: Whether ``background_gap`` is exact or a lower bound.
    signal_gap_bound: float  #: Lower bound d*(1 − γ̄_k*)/τ of the gap over every other class.
    signal_gap: float  #: The gap over the strongest other class itself, from its moments.
    gamma_bar: float  #: γ̄_k*, the average of the d* selected interference eigenvalues.
    d_star: int  #: Count of directions kept, d*.
    d_k: int  #: Count of directions available, dimension minus rank(Z_k).


@dataclass(frozen=True)
class MultiHeadSeparation:
    """One separating matrix per signal class, as a tuple of `HeadSeparation` in ``heads``."""

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
        """Largest operator norm of the heads, which the class radius R₂ must reach."""
        return max(head.operator_norm for head in self.heads)


def multi_head_separators(
    classes: Sequence[Moments], background: Moments, tau: float = 1.0, d_star: DStar = None
) -> MultiHeadSeparation:
    """Build the matrices of Theorem "… sufficient multi-head construction" (prop2).

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
        Count of directions that a head keeps. None is the theorem's ⌊d/s⌋. "best" keeps, in each
        head, every direction whose interference eigenvalue is below one, which makes the lower
        bound ``Σ_q (1 − γ_q)/τ`` as large as it can be.

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
    theorem = "prop2: covariance-based multi-head construction"
    covariance, means = background.covariance, [background.mean]
    return _separate_heads(classes, covariance, means, tau=tau, d_star=d_star, theorem=theorem)


def multi_head_envelope_separators(
    classes: Sequence[Moments],
    covariance_envelope: Numbers,
    background_means: Sequence[Any],
    tau: float = 1.0,
    d_star: DStar = None,
) -> MultiHeadSeparation:
    """Build the matrices of several heads with heterogeneous backgrounds (S2.2).

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
    return _separate_heads(
        classes,
        symmetric(covariance_envelope, "covariance_envelope"),
        np.reshape(np.asarray(background_means, dtype=np.float64), (-1, classes[0].n_features)),
        tau=tau,
        d_star=d_star,
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
    """Build matrices on head-specific informative subspaces (S2.3, eq. multi-informative-weight).

    With U_k an orthonormal basis of head k's subspace and ``U_kᵀΔ_kU_k ≻ 0``, Theorem prop2 is
    carried out on moments compressed by U_k and lifted back: W_k annihilates all means, has rank
    d_k*, ``δ_k⁽⁰⁾ = d_k*/τ`` exactly and ``δ_k⁽¹⁾ ≥ d_k*(1 − γ̄_k*)/τ``.

    Parameters
    ----------
    classes, background, tau
        As in :func:`multi_head_separators`.
    bases : sequence of (d, m_k) arrays or None
        One per head; None keeps the whole space.
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
        raise ValueError(f"{len(bases)} bases for {len(classes)} classes: give one per head.")
    d = background.n_features
    return _separate_heads(
        classes,
        background.covariance,
        [background.mean],
        [None if U is None else orthonormal(U, d) for U in bases],
        tau=tau,
        d_star=d_star,
        theorem="S2.3: head-specific informative subspaces",
        shorten=True,
    )


def _separate_heads(
    classes: Sequence[Moments],
    covariance: np.ndarray,
    background_means: Iterable[np.ndarray],
    bases: Sequence[np.ndarray | None] | None = None,
    **settings: Any,
) -> MultiHeadSeparation:
    """Build all heads against one background covariance (d, d) and background means (d,)."""
    s, d = len(classes), len(covariance)
    if s < 2:
        raise ValueError(f"{s} signal class: use single_head_separator for one class.")
    deltas = [
        covariance_contrast(c, covariance, f"rows of class {k}") for k, c in enumerate(classes)
    ]
    means = np.column_stack([*background_means, *(c.mean for c in classes)])  # (d, k)
    return MultiHeadSeparation(
        tuple(
            separate_head(k, deltas, means, basis=U, default=d // s, **settings)
            for k, U in enumerate(bases or [None] * s)
        )
    )


def separate_head(
    k: int,
    deltas: Sequence[np.ndarray],
    means: np.ndarray,
    *,
    theorem: str,
    basis: np.ndarray | None = None,
    tau: float = 1.0,
    d_star: DStar = "best",
    default: int = 1,
    shorten: bool = False,
    background_exact: bool = True,
) -> HeadSeparation:
    """Build head k from the contrasts of all classes and all means (d, k).

    It keeps the d* directions in which the other classes disturb it least; ``d_star=None`` is
    `default`, or with `shorten` as many of those as there are.
    """
    B, lambda_min, mean_rank = whiten_and_project(
        deltas[k], means, tau=tau, basis=basis, name=f"Δ_{k + 1} = Σ_{k + 1} − Σ₀", head=k
    )
    others = [delta for j, delta in enumerate(deltas) if j != k]
    values, vectors = np.linalg.eigh(B.T @ _disturbance(others, basis) @ B)  # (d_k,)
    if d_star is None and shorten:
        d_star = min(max(default, 1), len(values))
    size = _directions(default if d_star is None else d_star, values, k)
    gamma_bar = float(values[:size].mean())
    if gamma_bar >= OVERLAP_LIMIT:
        raise _overlap_refusal(gamma_bar, values, size, k)
    L = B @ vectors[:, :size] / np.sqrt(tau)
    L = L if basis is None else basis @ L  # (d, d*)
    bound = size * (1 - gamma_bar) / tau
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


def _disturbance(others: list[np.ndarray], basis: np.ndarray | None) -> np.ndarray:
    """Return D_k, the sum of the other contrasts, compressed to the basis if there is one."""
    if basis is not None:
        others = [basis.T @ delta @ basis for delta in others]
    # The proof uses Δ_ℓ ⪯ D_k, true only if every summand is positive semidefinite; one summand
    # alone is D_k itself and needs nothing.
    if len(others) > 1:
        others = [
            delta if np.linalg.eigvalsh(delta)[0] >= 0 else positive_part(delta) for delta in others
        ]
    return np.sum(others, axis=0)


def _directions(d_star: int | Literal["best"], values: np.ndarray, k: int) -> int:
    """Return how many of the directions with these interference eigenvalues head k keeps."""
    if d_star == "best":
        return max(1, int(np.sum(values < OVERLAP_LIMIT)))
    size, available = int(d_star), len(values)
    if size < 1:
        message = f"d* = ⌊d/s⌋ = {size} for head {k}: there are more classes than features."
        raise SeparationError(message, condition="d* ≥ 1", value=float(size), head=k)
    if size > available:
        message = (
            f"d* = {size} exceeds d_k = {available}, the directions left to head {k} once the "
            "means are projected away: ask for a smaller d_star, or d_star='best'."
        )
        raise SeparationError(message, condition="d* ≤ d_k", value=float(available), head=k)
    return size


def _overlap_refusal(gamma: float, values: np.ndarray, size: int, k: int) -> SeparationError:
    good = int(np.sum(values < OVERLAP_LIMIT))
    advice = (
        f"d_star='best' would keep the {good} directions with interference below one"
        if good
        else "no direction has interference below one: the other classes cover this one"
    )
    message = (
        f"γ̄* = {gamma:.6g} ≥ 1 for head {k}: in its {size} least disturbed directions the other "
        f"classes together vary as much as the target; {advice}."
    )
    return SeparationError(message, condition="γ̄* < 1", value=gamma, head=k)
