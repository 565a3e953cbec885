"""The contest of solvers."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
import torch

from diagatt import DiagAttRegressor, NoRowOfInterestWarning
from diagatt.metrics import rmse
from diagatt.solvers import SOLVERS, Auto, Fitted, Solver, Uniform
from diagatt.solvers.auto import _champion
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


@pytest.mark.slow
@pytest.mark.parametrize("make", [heavy_tails, skewed, mixture, nothing])
def test_auto_is_as_good_as_its_better_part(make):
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = make(rng, 600), make(rng, 1000)
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
    with pytest.warns(NoRowOfInterestWarning, match="no row of interest") as record:
        model = regressor(random_state=0).fit(X, y)
    assert record[0].filename == __file__  # the line that called fit
    assert model.solver_ == "uniform"
    assert {r["solver"] for r in model.selection_ if "held_out_loss" in r} == {
        "likelihood", "refined", "gradient", "uniform",
    }  # fmt: skip


# ---------------------------------------------------------------------- contestants of one's own


@pytest.fixture
def shifted():
    """A solver with a state of its own: the GLM of mean rows, its intercept shifted."""
    before = dict(SOLVERS)

    class Shifted(Solver):
        name = "shifted"
        scores_see_response = False
        asked: ClassVar[list] = []

        def __init__(self, by=0.0):
            self.by = by

        def fit(self, problem, model, *, seed, start=None, checkpoint=None, verbose=False):
            Shifted.asked.append((problem.n_samples, None if start is None else start.state))
            fitted = Uniform().fit(problem, model)
            with torch.no_grad():
                fitted.module.intercept.add_(self.by)
            return Fitted(fitted.module, self, [[]], state=("shifted", problem.n_samples))

    yield Shifted
    SOLVERS.clear()
    SOLVERS.update(before)


@pytest.mark.parametrize("judge", ["bic", "held_out"])
@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_a_users_own_solver_competes(shifted, judge):
    X, y = nothing(np.random.default_rng(0), 200)
    for by in (5.0, 0.0, -5.0):  # of equals the first wins
        contest = Auto([Uniform(), shifted(by)], judge=judge)
        model = DiagAttRegressor(solver=contest, random_state=0).fit(X, y)
        assert model.solver_ == "uniform"
        assert [line["solver"] for line in model.selection_] == ["uniform", "shifted"]
    contest = Auto([shifted(5.0), shifted(-0.001)], judge=judge)
    model = DiagAttRegressor(solver=contest, random_state=0).fit(X, y)
    assert model.solver_ == "shifted"
    uniform = DiagAttRegressor(solver="uniform").fit(X, y)
    np.testing.assert_allclose(model.predict(X), uniform.predict(X) - 0.001)


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_the_winner_goes_on_from_what_it_found_on_a_part(shifted):
    X, y = nothing(np.random.default_rng(0), 200)
    DiagAttRegressor(solver=Auto([shifted()], judge="held_out"), random_state=0).fit(X, y)
    (part, nothing_yet), (whole, state) = shifted.asked
    assert (part, whole) == (175, 200)  # an eighth is held out
    assert nothing_yet is None
    assert state == ("shifted", 175)


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_the_state_of_another_solver_is_no_start(shifted):
    """After a contest that `shifted` won, likelihood starts as if there had been none."""
    X, y = nothing(np.random.default_rng(0), 200)
    model = DiagAttRegressor(solver=shifted(), warm_start=True, random_state=0).fit(X, y)
    model.set_params(solver="likelihood").fit(X, y)
    cold = DiagAttRegressor(solver="likelihood", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.value_, cold.value_)


def test_judges_compare_what_they_say():
    """BIC has no refined contestant; held-out losses are those of the contestants' own fits."""
    X, y = mixture(np.random.default_rng(0), 150)
    by_bic = DiagAttRegressor(solver=Auto(judge="bic"), random_state=0).fit(X, y)
    reported = {line["solver"]: line["bic"] for line in by_bic.selection_ if "bic" in line}
    assert list(reported) == ["uniform", "likelihood", "gradient"]
    assert by_bic.solver_ == min(reported, key=reported.get)
    held_out = DiagAttRegressor(solver=Auto(judge="held_out"), random_state=0).fit(X, y)
    losses = {
        line["solver"]: line["held_out_loss"]
        for line in held_out.selection_
        if "held_out_loss" in line
    }
    assert list(losses) == ["uniform", "likelihood", "refined", "gradient"]
    assert losses[held_out.solver_] < losses["uniform"]
    default = DiagAttRegressor(random_state=0).fit(X, y)  # below 500 samples
    assert default.selection_ == by_bic.selection_


def test_a_challenger_must_win_by_a_standard_error():
    losses = torch.linspace(0, 1, 100, dtype=torch.float64)
    noise = torch.linspace(-1, 1, 100, dtype=torch.float64)
    error = float(noise.std()) / 10
    for gain, expected in [(0.9 * error, 0), (1.1 * error, 1)]:
        assert _champion([losses, losses - gain + noise]) == expected
    assert _champion([losses, losses - 1, losses - 1]) == 1  # the simpler of equals
    assert _champion([losses, losses + 1, losses - 1]) == 2
