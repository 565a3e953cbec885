"""From a score gap to located rows: the lemma and the two localization theorems (Section 4, S1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "LocalizationGuarantee",
    "localization_guarantee",
    "softmax_error_bound",
    "sufficient_dimension",
    "sufficient_gap",
]


def softmax_error_bound(gap: float, radius: float, p: int) -> float:
    """Lemma "Deterministic gap-to-softmax bound" (S1.1).

    If expected scores differ by at least δ and every score is within r of its expectation, then
    ``‖softmax(ψ) − e_{j*}‖_∞ ≤ (p − 1) e^{−(δ − 2r)}`` whenever δ > 2r. One, which always bounds
    the error, is returned where the lemma says nothing or less; zero for p = 1.

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


def sufficient_gap(radius: float, p_max: int, epsilon: float, *, sharp: bool = False) -> float:
    """Smallest gap that suffices (eq. score-gap-condition-single and -multi).

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
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must lie strictly between 0 and 1, got {epsilon}.")
    threshold = np.log((p_max - 1) / epsilon) if p_max > 1 else 0.0
    if sharp:
        return float(2 * radius + threshold)
    return float(max(4 * radius, 2 * threshold))


@dataclass(frozen=True)
class LocalizationGuarantee:
    """Whether a localization theorem applies, and why not.

    Attributes
    ----------
    holds : bool
        The theorem applies: P(‖K − A‖_∞ ≤ ε) ≥ 1 − η for every sample.
    gap, needed : float
        The gap and the smallest one that suffices for the theorem.
    needed_sharp : float
        The smallest gap that suffices for the lemma, 2r + log((p_max − 1)/ε) ≤ ``needed``; its
        conclusion is the same.
    radius : float
    fluctuation_holds : bool
        gap ≥ 4r. No temperature changes it.
    softmax_holds : bool
        gap ≥ 2 log((p_max − 1)/ε). A smaller temperature helps.
    epsilon, eta : float
    softmax_error : float
        The lemma's own bound on the error at this gap and radius, often far below ε.
    reason : str
        One sentence.
    """

    holds: bool
    gap: float
    needed: float
    needed_sharp: float
    radius: float
    fluctuation_holds: bool
    softmax_holds: bool
    epsilon: float
    eta: float
    softmax_error: float
    reason: str

    @property
    def holds_sharp(self) -> bool:
        """Whether the lemma gives the theorem's conclusion, even if the theorem does not apply."""
        return self.gap > 2 * self.radius and self.gap >= self.needed_sharp


def localization_guarantee(
    gap: float, radius: float, p_max: int, epsilon: float, eta: float
) -> LocalizationGuarantee:
    """Theorems "Localization guarantee" for s = 1 and s > 1.

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
    if not 0 < eta < 1:
        raise ValueError(f"eta must lie strictly between 0 and 1, got {eta}.")
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
    lambda_delta: float,
    K: float,
    p_max: int,
    eta: float,
    *,
    gamma_max: float = 0.0,
    s: int = 1,
    C: float = 1.0,
) -> int:
    """Fewest separating directions that meet gap ≥ 4r (eq. multi-subgaussian-dimension).

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
    if not 0 < eta < 1 or p_max < 1 or s < 1:
        raise ValueError("need 0 < eta < 1, p_max ≥ 1 and s ≥ 1.")
    L = np.log(2 * s * p_max / eta)
    a = 4 * C * K**2 / (lambda_delta * (1 - gamma_max))
    return int(np.ceil(L * ((a + np.sqrt(a**2 + 4 * a)) / 2) ** 2))


def _check_rows(p: int) -> None:
    if p < 1:
        raise ValueError(f"a sample has at least one row, got p = {p}.")
