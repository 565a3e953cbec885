"""Excess prediction risk: Theorem "Excess prediction risk bound" and its balanced rates (4.3, S3).

The theorem gives orders, not numbers. Constants are arguments, one by default: the results show how
terms compare and how they move; they are not risks in the units of the response.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diagatt.arguments import Positive, Size


def parameter_count(d: Size, s: Size, q: Size | None = None) -> int:
    """Return the trainable dimension D (Section 4.3; low rank: S3.5).

    ``D = sd + sd²``; with query-key matrices of rank at most q, ``D_low = sd + s q(2d − q)``.

    Examples
    --------
    >>> parameter_count(70, 2), parameter_count(70, 2, q=3)
    (9940, 962)
    """
    if d < 1 or s < 1 or (q is not None and not 1 <= q <= d):
        raise ValueError(f"need d ≥ 1, s ≥ 1 and 1 ≤ q ≤ d, got d={d}, s={s}, q={q}.")
    return s * d + s * (d * d if q is None else q * (2 * d - q))


@dataclass(frozen=True)
class BalancedRates:
    """Localization accuracies that cost no more than estimation does (S3.4)."""

    epsilon: float  #: ε_n.
    eta: float  #: η_n.
    a_n: float  #: Estimation rate that they are balanced with.
    ell_n: float  #: ℓ_n = d + log p_max.
    h_n: float  #: h_n = d + log(e p_max s²d/a_n).
    truncated: bool  #: Whether a cap at 1/2 was needed: n is too small for the balance.


def balanced_rates(n: Size, d: Size, s: Size, p_max: Size, q: Size | None = None) -> BalancedRates:
    """Return ε_n and η_n that balance localization with estimation (S3.4, end of the proof).

    ``ε_n = min{½, (a_n/(s²dℓ_n))^{1/2}}`` and ``η_n = min{½, a_n/(2s²dh_n)}`` with
    ``a_n = √(sd² log n/n)``, or ``a_n = √(D_low log n/n)`` for rank-q query-key matrices. If ℓ_n
    and h_n are of order d, these are of the order ``d^{-1/2}s^{-3/4}(log n/n)^{1/4}`` and
    ``d^{-1}s^{-3/2}(log n/n)^{1/2}`` of the theorem.

    Examples
    --------
    >>> found = balanced_rates(n=10**6, d=20, s=1, p_max=100)
    >>> round(found.epsilon, 4), round(found.eta, 6), found.truncated
    (0.0123, 6e-05, False)
    """
    if n < 2 or d < 1 or s < 1 or p_max < 1:
        raise ValueError(f"need n ≥ 2 and d, s, p_max ≥ 1, got {n}, {d}, {s}, {p_max}.")
    size = s * d * d if q is None else parameter_count(d, s, q)
    a_n = float(np.sqrt(size * np.log(n) / n))
    ell_n = d + float(np.log(float(p_max)))
    h_n = d + float(np.log(np.e * p_max * s**2 * d / a_n))
    epsilon = float(np.sqrt(a_n / (s**2 * d * ell_n)))
    # h_n may fall below one only when a_n is enormous; the cap then applies anyway.
    eta = a_n / (2 * s**2 * d * h_n) if h_n > 0 else np.inf
    truncated = bool(epsilon > 0.5 or eta > 0.5)
    return BalancedRates(min(0.5, epsilon), min(0.5, eta), a_n, ell_n, h_n, truncated)


@dataclass(frozen=True)
class ExcessRisk:
    """The three terms of the excess-risk bound."""

    estimation: float  #: √(D log n/n).
    inexact: float  #: s²d(d + log p_max)ε²: weights almost, but not quite, on the right row.
    missed: float  #: s²d η(d + log(p_max/η)): samples in which the row is missed.
    total: float
    epsilon: float  #: The accuracy ε that was used.
    eta: float  #: The probability η that was used.


def excess_risk_rate(
    n: Size,
    d: Size,
    s: Size,
    p_max: Size,
    *,
    epsilon: float | None = None,
    eta: float | None = None,
    q: Size | None = None,
    C_estimation: Positive = 1.0,
    C_localization: Positive = 1.0,
) -> ExcessRisk:
    """Return the terms of Theorem "Excess prediction risk bound" (eq. scale-explicit-excess).

    ``√(D log n/n) + s²d{(d + log p_max)ε² + η(d + log(p_max/η))}``, times the given constants.

    Parameters
    ----------
    n, d, s, p_max : int
        Counts of samples, features and heads, and the largest count of rows in a sample.
    epsilon, eta : float, optional
        Localization accuracy; the balanced choices of :func:`balanced_rates` by default.
    q : int, optional
        Rank bound of the query-key matrices, which replaces D by D_low.
    C_estimation, C_localization : float
        Constants of the two parts. The second contains C_β² and the row-diameter constant.

    Examples
    --------
    >>> found = excess_risk_rate(n=10**6, d=20, s=1, p_max=100)
    >>> found.estimation > found.inexact > found.missed
    True
    """
    balanced = balanced_rates(n, d, s, p_max, q)
    eps = balanced.epsilon if epsilon is None else float(epsilon)
    tail = balanced.eta if eta is None else float(eta)
    if not (0 < eps < 1 and 0 < tail < 1):
        raise ValueError(f"epsilon and eta must lie in (0, 1), got {eps} and {tail}.")
    scale = C_localization * s**2 * d
    estimation = C_estimation * float(np.sqrt(parameter_count(d, s, q) * np.log(n) / n))
    inexact = float(scale * (d + np.log(float(p_max))) * eps**2)
    missed = float(scale * tail * (d + np.log(p_max / tail)))
    return ExcessRisk(estimation, inexact, missed, estimation + inexact + missed, eps, tail)


def samples_needed(
    target: float, d: Size, s: Size, q: Size | None = None, C: Positive = 1.0
) -> int:
    """Return the smallest n with ``C √(D log n/n) ≤ target``.

    Examples
    --------
    >>> full, low = samples_needed(0.5, d=70, s=1), samples_needed(0.5, d=70, s=1, q=3)
    >>> full > 10 * low
    True
    """
    if not target > 0:
        raise ValueError(f"target must be positive, got {target}.")
    D = parameter_count(d, s, q)

    def enough(n: Size) -> bool:
        return bool(C * np.sqrt(D * np.log(n) / n) <= target)

    low, high = 2, 3  # log n / n falls from n = 3 on
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:  # not enough(low), enough(high)
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
