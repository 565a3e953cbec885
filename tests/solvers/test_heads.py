"""How many heads: the count is found, and the report says at what price."""

import pytest
from scipy.stats import norm

from diagatt import simulate
from tests.models import regressor


def test_summary_prints_what_a_statistician_expects():
    data = simulate.regression(400, p=6, d=3, s=2, mu=(1.0, 4.0), sigma2=(3.0, 3.0), seed=1)
    model = regressor(n_heads="auto", selection="bic", solver="likelihood", random_state=0)
    summary = model.fit(data.X, data.y).summary()
    assert model.n_heads_ == 2  # BIC finds the number of active rows
    assert [c["n_heads"] for c in summary.criteria] == [1, 2, 3]
    text = str(summary)
    assert all(word in text for word in ("estimate", "s.e.", "P>|z|", "AIC", "BIC", "samples"))
    assert max(map(len, text.splitlines())) <= 80
    line = summary.coefficients[0]
    assert line["z"] == pytest.approx(line["estimate"] / line["se"])
    assert line["p"] == pytest.approx(2 * norm.sf(abs(line["z"])))
