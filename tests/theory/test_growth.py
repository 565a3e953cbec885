"""Growth conditions move the right way; temperatures that work, and why there may be none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.theory import growth_conditions, temperature_interval

PROPERTY = settings(max_examples=200)


def test_growth_conditions_move_the_right_way():
    easy = growth_conditions(10**8, 120, 2, 50, tau=0.5)
    assert easy.holds, str(easy)
    assert not growth_conditions(10**8, 8, 2, 50)["fluctuation"].holds
    assert not growth_conditions(10**3, 120, 2, 50)["estimation"].holds
    assert not growth_conditions(10**8, 120, 2, 50, tau=50.0)["softmax"].holds
    assert not growth_conditions(10**8, 4, 2, 3)["dimension"].holds
    crowded = growth_conditions(10**8, 120, 2, 10**40)
    assert not crowded["rows"].holds
    assert not crowded["joint selection"].holds
    assert growth_conditions(10**5, 70, 1, 50, q=2)["estimation"].holds
    bounded = growth_conditions(10**8, 120, 2, 50, tau=0.5, lambda_delta=0.1, R2=1.0)
    assert not bounded["temperature"].holds
    assert not bounded["comparator norm"].holds
    assert bounded["entropy"].holds
    assert "FAILS" in str(bounded)
    with pytest.raises(KeyError, match="not one of"):
        easy["weather"]


@PROPERTY
@given(
    gap=st.floats(0.1, 500),
    p=st.integers(2, 1000),
    epsilon=st.floats(1e-3, 0.5),
    lam=st.floats(0.01, 10),
    R2=st.floats(0.01, 100),
)
def test_temperature_interval_is_what_the_paper_says(gap, p, epsilon, lam, R2):
    found = temperature_interval(gap, p, epsilon, lambda_delta=lam, R2=R2)
    threshold = 2 * np.log((p - 1) / epsilon)
    if abs(R2 * lam * gap - threshold) > 1e-9 * threshold:
        assert found.empty == (R2 * lam * gap < threshold)
    if found.empty:
        assert "raise R₂" in found.reason
        assert (found.low + found.high) / 2 not in found
    else:
        tau = np.sqrt(found.low * found.high)
        assert tau in found
        assert gap / tau >= threshold * (1 - 1e-9)
        assert 1 / (tau * lam) <= R2 * (1 + 1e-9)


def test_no_temperature_when_scores_fluctuate_too_much():
    found = temperature_interval(10.0, 20, 0.1, unit_radius=3.0)
    assert found.empty
    assert "every temperature" in found.reason
    assert temperature_interval(0.0, 20, 0.1).empty
    with pytest.raises(ValueError, match="lambda_delta"):
        temperature_interval(10.0, 20, 0.1, R2=1.0)
