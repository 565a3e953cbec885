"""Which temperatures work: not so hot that weights blur, not so cold that W leaves its class."""

from __future__ import annotations

from dataclasses import dataclass

from diagatt.theory.guarantees import sufficient_gap


@dataclass(frozen=True)
class TemperatureInterval:
    """Temperatures τ with low ≤ τ ≤ high, or why there are none."""

    low: float  #: 1/(R₂λ_Δ); kept when the interval is empty.
    high: float  #: d*g/(2 log((p_max − 1)/ε)); kept when the interval is empty.
    empty: bool
    reason: str  #: One sentence: what the interval allows, or what must change.

    def __contains__(self, tau: float) -> bool:
        return not self.empty and self.low <= tau <= self.high


def temperature_interval(
    unit_gap: float,
    p_max: int,
    epsilon: float,
    *,
    lambda_delta: float | None = None,
    R2: float | None = None,
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
        Wanted softmax error.
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
