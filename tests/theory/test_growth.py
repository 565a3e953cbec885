"""Growth conditions move the right way."""

from __future__ import annotations

import pytest

from diagatt.theory import growth_conditions


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
    with pytest.raises(KeyError, match="none of"):
        easy["weather"]
