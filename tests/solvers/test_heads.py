"""How many heads: the count is found, and the report says at what price."""

import numpy as np
import pytest
from scipy.stats import norm

from diagatt import DiagAttRegressor, simulate
from diagatt.solvers import Auto, Likelihood, Model, Uniform
from diagatt.solvers.heads import heads_to_try
from tests.models import regressor
from tests.solvers.samples import make_problem

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


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
    z = line["estimate"] / line["se"]
    assert line["p_value"] == pytest.approx(2 * norm.sf(abs(z)))
    half = norm.ppf(0.975) * line["se"]
    ends = (line["estimate"] - half, line["estimate"] + half)
    assert (line["low"], line["high"]) == pytest.approx(ends)


def two_kinds_of_data():
    """Samples of which one row decides, and samples of which two do."""
    common = {"p": 6, "d": 3, "seed": 1}
    one = simulate.regression(300, s=1, mu=(3.0,), sigma2=(3.0,), **common)
    two = simulate.regression(300, s=2, mu=(1.0, 4.0), sigma2=(3.0, 3.0), **common)
    return one, two


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["holdout", "bic", 2])
def test_the_count_of_active_rows_is_chosen(selection):
    for count, data in enumerate(two_kinds_of_data(), start=1):
        options = {"selection": selection, "solver": "likelihood", "random_state": 0}
        model = regressor([1, 2], **options).fit(data.X, data.y)
        assert model.n_heads_ == count
        alone = regressor(count, **options).fit(data.X, data.y)
        np.testing.assert_array_equal(model.query_key_, alone.query_key_)
        if selection == "bic":
            assert [line["n_heads"] for line in model.criteria_] == [1, 2]
            assert model.criteria_[count - 1] == alone.criteria_[0]
        else:
            losses = {line["n_heads"]: line["loss"] for line in model.selection_[:2]}
            assert min(losses, key=losses.get) == count
            assert model.criteria_ == alone.criteria_


@pytest.mark.parametrize("solver", ["likelihood", "gradient"])
def test_a_warm_start_with_another_count_starts_anew(solver):
    one, two = two_kinds_of_data()
    short = {"optimizer": "adam", "max_epochs": 2} if solver == "gradient" else {}
    options = {"solver": solver, "selection": "holdout", "random_state": 0, **short}
    model = regressor([1], **options, warm_start=True).fit(one.X, one.y)
    model.set_params(n_heads=[2]).fit(two.X, two.y)
    assert model.n_heads_ == 2
    cold = regressor(2, **options).fit(two.X, two.y)
    np.testing.assert_array_equal(model.query_key_, cold.query_key_)


def test_auto_tries_what_the_shortest_sample_allows():
    problem = make_problem(shortest=2)
    assert heads_to_try("auto", Model(), problem) == [1, 2]
    assert heads_to_try("auto", Model(coupling="independent"), problem) == [1, 2, 3]
    assert heads_to_try((3, 1), Model(), problem) == [3, 1]
    assert heads_to_try(4, Model(), problem) == [4]


def test_the_default_compares_counts_out_of_fold():
    """A second head is taken where two rows decide; where it adds nothing, no third is tried."""
    one, two = two_kinds_of_data()
    few = Auto([Uniform(), Likelihood()])
    for count, data in enumerate((one, two), start=1):
        model = DiagAttRegressor([1, 2, 3], solver=few, random_state=0).fit(data.X, data.y)
        assert model.n_heads_ == count
        tried = [line for line in model.selection_ if "n_heads" in line and "loss" in line]
        assert [line["n_heads"] for line in tried] == list(range(1, count + 2))
        alone = DiagAttRegressor(count, solver=few, random_state=0).fit(data.X, data.y)
        np.testing.assert_array_equal(model.query_key_, alone.query_key_)
