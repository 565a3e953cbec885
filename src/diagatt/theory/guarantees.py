"""From a score gap to located rows: concentration radii, the lemma, the localization theorems.

Section 4 and S1. A radius r bounds how far scores stray from their expectations, all rows at once
(Assumption "concentration condition"): ``P(max_j |ψ_j − Eψ_j| ≤ r_{η,p}) ≥ 1 − η``. No radius here
assumes that rows are independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diagatt.arguments import Numbers, Positive, Size
from diagatt.theory.moments import Moments, standardized_score


def hanson_wright_tail(
    t: float, q: Size, lambda_delta: Positive, K: Positive, tau: Positive = 1.0, c: Positive = 1.0
) -> float:
    """Bound the tail of one score (eq. single-hanson-wright).

    ``P(|ψ − Eψ| > t) ≤ 2 exp[−c min{τ²λ_Δ²t²/(K⁴q), τλ_Δt/K²}]``, capped at one, for a matrix that
    annihilates the means and has rank q. The paper leaves the universal constant c open: pass it.

    Examples
    --------
    >>> round(hanson_wright_tail(20.0, q=100, lambda_delta=1.0, K=1.0), 4)
    0.0366
    """
    scaled = tau * lambda_delta * t / K**2
    return float(min(1.0, 2 * np.exp(-c * min(scaled**2 / q, scaled))))


def subgaussian_radius(
    q: Size,
    lambda_delta: Positive,
    K: Positive,
    p_max: Size,
    eta: float,
    *,
    s: Size = 1,
    tau: Positive = 1.0,
    C: Positive = 1.0,
) -> float:
    """Return the sub-Gaussian radius (eq. single-subgaussian-radius, multi-subgaussian-radius).

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
        Largest count of rows in a sample.
    eta : float
        Probability that the radius may be exceeded, in (0, 1).
    s : int
        Count of heads.
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
    W: Numbers, rows: Sequence[Moments], p_max: Size, eta: float, *, s: Size = 1
) -> float:
    """Return a radius for Gaussian rows with every constant explicit, of the paper's order.

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
    p_max, eta
        As in :func:`subgaussian_radius`.
    s : int
        Count of heads over which the radius holds jointly; at least the count of matrices.

    Examples
    --------
    >>> row = Moments(np.zeros(100), np.eye(100))
    >>> round(gaussian_radius(np.eye(100), [row], p_max=20, eta=0.05), 2)
    65.08
    """
    matrices = np.asarray(W, dtype=np.float64)
    matrices = matrices[None] if matrices.ndim == 2 else matrices  # (R, d, d)
    t = _log_union(max(s, len(matrices)) * p_max, eta)
    radii = []
    for weight in matrices:
        for row in rows:
            A, pulled = standardized_score(weight, row)
            V = np.sum(A**2) + 2 * pulled @ pulled
            radii.append(2 * np.sqrt(t * V) + 2 * t * np.abs(np.linalg.eigvalsh(A)).max())
    return float(max(radii))


def moment_radius(variances: Numbers, eta: float) -> float:
    """Return a radius for any distribution from score variances (Chebyshev and a union bound).

    ``r = √(Σ_j Var(ψ_j) / η)``, where the sum runs over all rows (and heads) of a sample. It grows
    much faster with p and 1/η than the other radii, but holds for every distribution that has
    variances, also with heavy tails.

    Examples
    --------
    >>> moment_radius([2.0, 2.0, 1.0], eta=0.05)
    10.0
    """
    _check_share("eta", eta)
    spread = np.asarray(variances, dtype=np.float64)
    if spread.size == 0 or np.any(spread < 0) or not np.all(np.isfinite(spread)):
        raise ValueError("variances must be finite, non-negative numbers, one per row.")
    return float(np.sqrt(spread.sum() / eta))


def softmax_error_bound(gap: float, radius: float, p: Size) -> float:
    """Bound the softmax error by Lemma "Deterministic gap-to-softmax bound" (S1.1).

    If expected scores differ by at least δ and every score is within r of its expectation, then
    ``‖softmax(ψ) − e_{j*}‖_∞ ≤ (p − 1) e^{−(δ − 2r)}`` whenever δ > 2r. One, which always bounds
    the error, is returned where the lemma gives no smaller bound; zero for p = 1.

    Examples
    --------
    >>> round(softmax_error_bound(gap=12.0, radius=3.0, p=11), 4)
    0.0248
    >>> softmax_error_bound(gap=5.0, radius=3.0, p=11)
    1.0
    """
    _check_rows(p)
    if radius < 0:
        raise ValueError(f"radius must not be negative, got {radius}.")
    if p == 1:
        return 0.0
    margin = gap - 2 * radius
    return float(min(1.0, (p - 1) * np.exp(-margin))) if margin > 0 else 1.0


def sufficient_gap(radius: float, p_max: Size, epsilon: float, *, sharp: bool = False) -> float:
    """Return the smallest gap that suffices (eq. score-gap-condition-single and -multi).

    ``max{4r, 2 log((p_max − 1)/ε)}``; with ``sharp``, ``2r + log((p_max − 1)/ε)``, which the lemma
    allows and which is never larger.

    Examples
    --------
    >>> round(sufficient_gap(radius=3.0, p_max=101, epsilon=0.05), 3)
    15.202
    >>> round(sufficient_gap(radius=3.0, p_max=101, epsilon=0.05, sharp=True), 3)
    13.601
    """
    _check_rows(p_max)
    _check_share("epsilon", epsilon)
    threshold = np.log((p_max - 1) / epsilon) if p_max > 1 else 0.0
    return float(2 * radius + threshold if sharp else max(4 * radius, 2 * threshold))


@dataclass(frozen=True)
class LocalizationGuarantee:
    """Whether a localization theorem applies, and if not, why."""

    holds: bool  #: Whether the theorem applies: P(‖K − A‖_∞ ≤ ε) ≥ 1 − η for every sample.
    gap: float
    needed: float  #: The smallest gap that suffices for the theorem.
    needed_sharp: float  #: The smallest gap that suffices for the lemma; never above ``needed``.
    radius: float
    fluctuation_holds: bool  #: gap ≥ 4r. No temperature changes it.
    softmax_holds: bool  #: gap ≥ 2 log((p_max − 1)/ε). A smaller temperature helps.
    epsilon: float
    eta: float
    softmax_error: float  #: The lemma's own bound on the error, often far below ε.
    reason: str  #: Why the theorem applies or does not, in one sentence.

    @property
    def holds_sharp(self) -> bool:
        """Whether the lemma gives the theorem's conclusion, even if the theorem does not apply."""
        return self.gap > 2 * self.radius and self.gap >= self.needed_sharp


def localization_guarantee(
    gap: float, radius: float, p_max: Size, epsilon: float, eta: float
) -> LocalizationGuarantee:
    """Check the Theorems "Localization guarantee" for s = 1 and s > 1.

    If ``δ ≥ max{4r, 2 log((p_max − 1)/ε)}`` then ``P(‖κ − α‖_∞ ≤ ε) ≥ 1 − η`` for every sample. For
    s > 1 pass δ_min and a radius that holds jointly over heads (``s=`` in the radius functions);
    the statement is then about the whole matrix K − A.

    Examples
    --------
    >>> found = localization_guarantee(gap=31.2, radius=6.15, p_max=100, epsilon=0.01, eta=0.05)
    >>> found.holds, found.needed
    (True, 24.6)
    >>> localization_guarantee(9.0, 6.15, p_max=100, epsilon=0.01, eta=0.05).reason
    'gap 9 < 4r = 24.6: scores fluctuate too much, and no temperature changes that ratio.'
    """
    _check_share("eta", eta)
    needed = sufficient_gap(radius, p_max, epsilon)
    threshold = sufficient_gap(0.0, p_max, epsilon)
    fluctuation, softmax = bool(gap >= 4 * radius), bool(gap >= threshold)
    if not gap > 0:
        reason = f"gap {gap:.4g} is not positive: these scores do not separate the rows."
    elif not fluctuation:
        reason = (
            f"gap {gap:.4g} < 4r = {4 * radius:.4g}: scores fluctuate too much, and no temperature "
            "changes that ratio."
        )
    elif not softmax:
        reason = (
            f"gap {gap:.4g} < 2 log((p_max − 1)/ε) = {threshold:.4g}: divide the temperature by "
            f"{threshold / gap:.4g} or more."
        )
    else:
        reason = f"gap {gap:.4g} ≥ needed {needed:.4g}."
    return LocalizationGuarantee(
        holds=bool(gap > 0 and fluctuation and softmax),
        gap=float(gap),
        needed=needed,
        needed_sharp=sufficient_gap(radius, p_max, epsilon, sharp=True),
        radius=float(radius),
        fluctuation_holds=fluctuation,
        softmax_holds=softmax,
        epsilon=float(epsilon),
        eta=float(eta),
        softmax_error=softmax_error_bound(gap, radius, p_max),
        reason=reason,
    )


def sufficient_dimension(
    lambda_delta: Positive,
    K: Positive,
    p_max: Size,
    eta: float,
    *,
    gamma_max: float = 0.0,
    s: Size = 1,
    C: Positive = 1.0,
) -> int:
    """Return the fewest separating directions that meet gap ≥ 4r (eq. multi-subgaussian-dimension).

    Solves ``q g ≥ 4CK²/λ_Δ · (√(qL) + L)`` with ``g = 1 − γ̄_max*`` and ``L = log(2 s p_max/η)``:
    with ``a = 4CK²/(λ_Δ g)`` the answer is ``q = L ((a + √(a² + 4a))/2)²``, of the paper's order
    ``max{a², a} L``. The temperature cancels. q is d − rank Z for one head, d* = ⌊d/s⌋ for several.

    Examples
    --------
    >>> sufficient_dimension(lambda_delta=1.0, K=1.0, p_max=100, eta=0.05, C=0.5)
    62
    """
    if not gamma_max < 1:
        raise ValueError(f"gamma_max = {gamma_max} ≥ 1: no dimension suffices (γ̄_max* < 1 fails).")
    L = _log_union(s * p_max, eta)
    a = 4 * C * K**2 / (lambda_delta * (1 - gamma_max))
    return int(np.ceil(L * ((a + np.sqrt(a**2 + 4 * a)) / 2) ** 2))


def _log_union(events: int, eta: float) -> float:
    _check_share("eta", eta)
    if events < 1:
        raise ValueError(f"p_max and s must be at least 1, their product is {events}.")
    return float(np.log(2 * events / eta))


def _check_rows(p: Size) -> None:
    if p < 1:
        raise ValueError(f"a sample has at least one row, got p = {p}.")


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}.")
