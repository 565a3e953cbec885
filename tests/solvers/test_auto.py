"""The contest of solvers."""

import warnings

import numpy as np
import pytest

from diagatt import NoRowOfInterestWarning
from diagatt.metrics import rmse
from tests.models import regressor


def heavy_tails(rng, n):
    X = rng.standard_t(3, size=(n, 10, 4))
    X[:, 0] *= 2
    return X, X[:, 0].sum(axis=1) + rng.standard_normal(n)


def skewed(rng, n):
    X = rng.exponential(size=(n, 10, 4))
    X[:, 0] += 1
    return X, X[:, 0].sum(axis=1) + rng.standard_normal(n)


def mixture(rng, n):
    X = rng.standard_normal((n, 10, 4)) + 4 * rng.integers(0, 2, size=(n, 10, 1))
    X[:, 0] = 2 * rng.standard_normal((n, 4)) - 3
    return X, X[:, 0].sum(axis=1) + rng.standard_normal(n)


def nothing(rng, n):
    return rng.standard_normal((n, 10, 4)), rng.standard_normal(n)


@pytest.mark.parametrize("make", [heavy_tails, skewed, mixture, nothing])
def test_auto_is_as_good_as_its_better_part(make):
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = make(rng, 1200), make(rng, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRowOfInterestWarning)
        error = {
            solver: rmse(y_test, regressor(solver=solver, random_state=0)
                         .fit(X, y).predict(X_test))
            for solver in ("auto", "likelihood", "gradient")
        }  # fmt: skip
    assert error["auto"] <= 1.1 * min(error["likelihood"], error["gradient"])


def test_auto_says_when_no_row_decides():
    X, y = nothing(np.random.default_rng(0), 800)
    with pytest.warns(NoRowOfInterestWarning, match="no row of interest"):
        model = regressor(random_state=0).fit(X, y)
    assert model.solver_ == "uniform"
    assert {r["solver"] for r in model.selection_ if "held_out_loss" in r} == {
        "likelihood", "refined", "gradient", "uniform",
    }  # fmt: skip
