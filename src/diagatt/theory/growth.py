"""Requirements of S3.6 on sizes and on the temperature.

Growth conditions decide whether d, s and p_max may be this large with n samples. The interval holds
the temperatures that are neither so high that weights blur nor so low that W leaves its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diagatt.arguments import Positive, Size
from diagatt.theory.guarantees import sufficient_gap
from diagatt.theory.risk import BalancedRates, balanced_rates, excess_risk_rate, parameter_count


@dataclass(frozen=True)
class Condition:
    """One requirement ``left ≤ right``."""

    name: str
    formula: str
    left: float
    right: float
    #: Whether the paper gives it as an example of a regime that works, not as a requirement.
    illustrative: bool = False

    @property
    def holds(self) -> bool:
        """Whether the requirement is met, left ≤ right."""
        return bool(self.left <= self.right)

    def __str__(self) -> str:
        sign, mark = ("≤", "holds") if self.holds else (">", "FAILS")
        return f"{self.name}: {self.left:.4g} {sign} {self.right:.4g} ({self.formula}) {mark}"


@dataclass(frozen=True)
class GrowthReport:
    """All growth conditions at one (n, d, s, p_max)."""

    conditions: tuple[Condition, ...]
    rates: BalancedRates  #: The ε_n and η_n at which the conditions were evaluated.

    @property
    def holds(self) -> bool:
        """Whether every condition holds, illustrative ones aside."""
        return all(condition.holds for condition in self.conditions if not condition.illustrative)

    def __getitem__(self, name: str) -> Condition:
        for condition in self.conditions:
            if condition.name == name:
                return condition
        raise KeyError(f"{name!r} is not one of {[c.name for c in self.conditions]}.")

    def __str__(self) -> str:
        return "\n".join(map(str, self.conditions))


def growth_conditions(
    n: Size,
    d: Size,
    s: Size,
    p_max: Size,
    *,
    g_gamma: float = 1.0,
    tau: Positive = 1.0,
    mean_rank: Size | None = None,
    lambda_delta: Positive = 1.0,
    R2: Positive | None = None,
    q: Size | None = None,
    c: Positive = 1.0,
    tolerance: float = 1.0,
) -> GrowthReport:
    """Evaluate the dimension-growth conditions of S3.6 at the balanced ε_n, η_n.

    Orders become inequalities through two arguments: ``≳`` is ``≥ c·``, and ``o(1)`` is
    ``≤ tolerance``. A condition says whether the theory covers the setting, not that a fit works.

    Parameters
    ----------
    n, d, s, p_max : int
    g_gamma : float
        1 − γ̄_max*; one for a single head.
    tau : float
        Temperature τ_n.
    mean_rank : int, optional
        rank(Z_k); s + 1, its largest value, by default.
    lambda_delta, R2 : float
        Smallest contrast eigenvalue and operator-norm radius of the class. With ``R2``, the
        temperature-radius compatibility and the entropy condition are added.
    q : int, optional
        Rank bound of the query-key matrices.
    c, tolerance : float

    Examples
    --------
    >>> report = growth_conditions(n=10**7, d=200, s=2, p_max=50)
    >>> report["fluctuation"].holds, report["estimation"].holds
    (True, True)
    """
    rates = balanced_rates(n, d, s, p_max, q)
    unit_gap = (d // s) * g_gamma
    rank = s + 1 if mean_rank is None else mean_rank
    threshold = 2 * float(np.log(max(p_max - 1, 1) / rates.epsilon))
    found = [
        *_orders(n, d, s, p_max, q, rates, c, tolerance),
        Condition("dimension", "d* ≤ d − rank(Z_k)", d // s, d - rank),
        Condition("one direction", "1 ≤ d*", 1, d // s),
        Condition("softmax", "2 log((p_max − 1)/ε_n) ≤ d* g/τ", threshold, unit_gap / tau),
    ]
    if R2 is not None:
        entropy = float(np.log(2 + np.sqrt(s * (d if q is None else q)) * R2))
        compatible = R2 * lambda_delta * unit_gap
        found += [
            Condition("temperature", "2 log((p_max − 1)/ε_n) ≤ R₂λ_Δ d* g", threshold, compatible),
            Condition("comparator norm", "1/(τλ_Δ) ≤ R₂", 1 / (tau * lambda_delta), R2),
            Condition("entropy", "log(2 + √(sd) R₂) ≤ log(n)/c", entropy, float(np.log(n)) / c),
        ]
    return GrowthReport(tuple(found), rates)


def _orders(
    n: Size,
    d: Size,
    s: Size,
    p: Size,
    q: Size | None,
    rates: BalancedRates,
    c: Positive,
    tolerance: float,
) -> Iterator[Condition]:
    """Yield the conditions that the paper states as orders."""
    D = parameter_count(d, s, q)
    yield Condition("estimation", "D log n / n = o(1)", D * float(np.log(n)) / n, tolerance)
    risk = excess_risk_rate(n, d, s, p, epsilon=rates.epsilon, eta=rates.eta, q=q)
    formula = "s²d{(d + log p)ε² + η(d + log(p/η))} = o(1)"
    yield Condition("localization", formula, risk.inexact + risk.missed, tolerance)
    upper = float(np.sqrt(n / s) / np.log(n))
    yield Condition("features", "d ≤ √(n/s)/log n", d, upper, illustrative=True)
    spread = c * float(np.log(s * p / rates.eta))
    yield Condition("fluctuation", "c log(s p/η_n) ≤ d/s", spread, d / s)
    tail = np.log(s**3 * p * d * rates.h_n / rates.a_n)
    blur = np.log(p * s * np.sqrt(d * rates.ell_n / rates.a_n))
    formula = "c max{log(s³pdh/a), log(ps√(dℓ/a))} ≤ d/s"
    yield Condition("joint selection", formula, c * float(max(tail, blur)), d / s)
    # Compared on the log scale: exp(cd/s) overflows long before it stops being informative. The
    # envelope is the first part of joint selection, solved for p, so c divides here.
    log_rows = d / (c * s) - 2.5 * np.log(s) - np.log(d) + 0.5 * np.log(np.log(n) / n)
    formula = "log p ≤ d/(cs) − log(s^{5/2} d) + ½ log(log n/n)"
    yield Condition("rows", formula, float(np.log(float(p))), float(log_rows), illustrative=True)


@dataclass(frozen=True)
class TemperatureInterval:
    """Temperatures τ with low ≤ τ ≤ high, or why there are none."""

    low: float  #: 1/(R₂λ_Δ); kept when the interval is empty.
    high: float  #: d*g/(2 log((p_max − 1)/ε)); kept when the interval is empty.
    empty: bool
    reason: str  #: What the interval allows, or what must change, in one sentence.

    def __contains__(self, tau: Positive) -> bool:
        return not self.empty and self.low <= tau <= self.high


def temperature_interval(
    unit_gap: float,
    p_max: Size,
    epsilon: float,
    *,
    lambda_delta: Positive | None = None,
    R2: Positive | None = None,
    unit_radius: float | None = None,
) -> TemperatureInterval:
    """Return the temperature-radius interval (S3.6, eq. temperature-radius-interval).

    ``1/(R₂λ_Δ) ≤ τ ≤ d*g_γ / (2 log((p_max − 1)/ε))``, nonempty iff
    ``R₂ λ_Δ d* g_γ ≥ 2 log((p_max − 1)/ε)``.

    Parameters
    ----------
    unit_gap : float
        Gap at τ = 1: d*(1 − γ̄_max*) with several heads, d − rank Z with one.
    p_max : int
    epsilon : float
        Largest softmax error that is allowed.
    lambda_delta : float, optional
        Smallest eigenvalue λ_Δ of the contrasts.
    R2 : float, optional
        Largest operator norm the parameter class allows; without it the lower end is 0.
    unit_radius : float, optional
        Concentration radius at τ = 1. Gap and radius share the factor 1/τ, so if
        ``unit_gap < 4·unit_radius`` no temperature works and the interval is empty.

    Examples
    --------
    >>> found = temperature_interval(20.0, p_max=100, epsilon=0.01, lambda_delta=1.0, R2=2.0)
    >>> round(found.low, 3), round(found.high, 3), 1.0 in found
    (0.5, 1.087, True)
    >>> temperature_interval(20.0, p_max=100, epsilon=0.01, lambda_delta=0.1, R2=2.0).reason
    'empty: R₂λ_Δ·gap = 4 < 2 log((p_max − 1)/ε) = 18.4; raise R₂ to at least 9.2.'
    """
    if R2 is not None and (lambda_delta is None or lambda_delta <= 0 or R2 <= 0):
        raise ValueError("a bound R2 > 0 needs lambda_delta > 0, the smallest contrast eigenvalue.")
    threshold = sufficient_gap(0.0, p_max, epsilon)  # 2 log((p_max − 1)/ε)
    high = unit_gap / threshold if threshold > 0 else float("inf")
    low = 0.0 if R2 is None or lambda_delta is None else 1 / (R2 * lambda_delta)
    if unit_gap <= 0:
        reason = f"empty: the gap {unit_gap:.4g} is not positive."
    elif unit_radius is not None and unit_gap < 4 * unit_radius:
        reason = (
            f"empty: gap/radius = {unit_gap / unit_radius:.3g} < 4 at every temperature; "
            "more or stronger separating directions are needed."
        )
    elif low > high:
        strength = unit_gap / low  # R₂ λ_Δ d* g
        reason = (
            f"empty: R₂λ_Δ·gap = {strength:.3g} < 2 log((p_max − 1)/ε) = {threshold:.3g}; "
            f"raise R₂ to at least {low * (R2 or 1.0) / high:.3g}."
        )
    else:
        return TemperatureInterval(low, high, False, f"any τ from {low:.4g} to {high:.4g}.")
    return TemperatureInterval(low, high, True, reason)
