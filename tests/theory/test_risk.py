"""Rates of the excess-risk theorem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.theory import (
    balanced_rates,
    excess_risk_rate,
    parameter_count,
    samples_needed,
)

PROPERTY = settings(max_examples=200)


@PROPERTY
@given(
    n=st.integers(100, 10**9),
    d=st.integers(1, 200),
    s=st.integers(1, 8),
    p=st.integers(1, 10**4),
    low_rank=st.booleans(),
)
def test_balanced_choices_cost_no_more_than_estimation(n, d, s, p, low_rank):
    q = max(1, d // 10) if low_rank else None
    rates = balanced_rates(n, d, s, p, q)
    assert 0 < rates.epsilon <= 0.5
    assert 0 < rates.eta <= 0.5
    if rates.truncated:
        return
    risk = excess_risk_rate(n, d, s, p, q=q)
    assert risk.inexact == pytest.approx(rates.a_n, rel=1e-9)
    assert risk.missed <= rates.a_n * (1 + 1e-9)
    assert rates.a_n <= risk.estimation * (1 + 1e-12)  # sd² ≤ D
    assert risk.total == pytest.approx(risk.estimation + risk.inexact + risk.missed)


def test_balanced_choices_have_the_orders_of_the_theorem():
    # ℓ and h are of order d when log p and log n are small beside d: ratios must then settle.
    def ratios(n, d, s):
        rates = balanced_rates(n, d, s, p_max=10)
        small = np.log(n) / n
        return (
            rates.epsilon / (d**-0.5 * s**-0.75 * small**0.25),
            rates.eta / (d**-1 * s**-1.5 * small**0.5),
        )

    one, other = ratios(10**9, 1000, 2), ratios(10**11, 2000, 4)
    np.testing.assert_allclose(one, other, rtol=0.05)


def test_parameter_counts():
    assert parameter_count(70, 3) == 3 * 70 + 3 * 4900
    assert parameter_count(70, 3, q=70) == parameter_count(70, 3)
    assert parameter_count(70, 3, q=2) == 3 * 70 + 3 * 2 * 138
    with pytest.raises(ValueError, match="q"):
        parameter_count(5, 1, q=6)


def test_samples_needed_is_the_smallest():
    n = samples_needed(0.3, d=20, s=2)
    D = parameter_count(20, 2)
    assert np.sqrt(D * np.log(n) / n) <= 0.3 < np.sqrt(D * np.log(n - 1) / (n - 1))


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="epsilon and eta"):
        excess_risk_rate(100, 2, 1, 5, epsilon=2.0)
    with pytest.raises(ValueError, match="target"):
        samples_needed(0.0, 2, 1)
    with pytest.raises(ValueError, match="n ≥ 2"):
        balanced_rates(1, 2, 1, 5)
