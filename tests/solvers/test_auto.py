"""The contest of solvers out of fold."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeCV

from diagatt import DiagAttClassifier, DiagAttRegressor, NoRowOfInterestWarning, simulate
from diagatt.metrics import rmse
from diagatt.solvers import SOLVERS, Auto, Fitted, Likelihood, Solver, Uniform
from diagatt.solvers.glm import DivergedError
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
@pytest.mark.parametrize("n", [120, 800])
@pytest.mark.parametrize("make", [heavy_tails, skewed, mixture, nothing])
def test_auto_is_as_good_as_its_better_part(make, n):
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = make(rng, n), make(rng, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRowOfInterestWarning)
        error = {
            solver: rmse(y_test, regressor(solver=solver, random_state=0)
                         .fit(X, y).predict(X_test))
            for solver in ("auto", "likelihood", "uniform")
        }  # fmt: skip
    assert error["auto"] <= 1.05 * min(error["likelihood"], error["uniform"])


@pytest.mark.slow
def test_auto_says_when_no_row_decides():
    X, y = nothing(np.random.default_rng(0), 300)
    with pytest.warns(NoRowOfInterestWarning, match="no row of interest") as record:
        model = regressor(random_state=0).fit(X, y)
    assert record[0].filename == __file__  # the line that called fit
    assert model.has_row_of_interest_ is False
    assert "none" in str(model.summary())
    assert {line["solver"] for line in model.report_} == {
        "likelihood", "mixture", "gradient", "uniform",
    }  # fmt: skip


@pytest.mark.slow
def test_wide_rows_lose_nothing_in_a_regression_on_their_means():
    """Rare words decide, of which the principal subspace of rows keeps little."""
    rng = np.random.default_rng(0)
    often = 0.5 / np.arange(1, 801)
    effect = rng.normal(size=800) / often**0.5
    X = (rng.random((400, 6, 800)) < often).astype(float)
    signal = X.mean(axis=1) @ effect
    y = (signal - signal.mean()) / signal.std() + 0.3 * rng.standard_normal(400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRowOfInterestWarning)
        model = DiagAttRegressor(random_state=0).fit(X[:150], y[:150])
    means = X.mean(axis=1)
    scaled = (means - means[:150].mean(axis=0)) / means[:150].std(axis=0).clip(1e-9)
    ridge = RidgeCV(np.logspace(-1, 5, 20)).fit(scaled[:150], y[:150])
    assert rmse(y[150:], model.predict(X[150:])) < 1.02 * rmse(y[150:], ridge.predict(scaled[150:]))


@pytest.mark.slow
def test_contributions_that_add_up_are_found_by_sums_and_sizes():
    """The response is a sum over rows: a mean says little where samples differ in size."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 20, 300)
    X = [rng.normal(0.5, 1.0, size=(p, 3)) for p in lengths]
    y = np.array([sample.sum() for sample in X]) + rng.standard_normal(300)
    model = DiagAttRegressor(random_state=0).fit(X[:200], y[:200])
    assert rmse(y[200:], model.predict(X[200:])) < 0.2 * y.std()
    used = [line["what"] for line in model.report_ if line["weight"] > 0]
    assert all("sum" in what for what in used)


@pytest.mark.slow
def test_the_reported_fit_predicts_with_its_own_coefficients():
    """`value_` and `intercept_` are those of original features, whatever units rows have."""
    data = simulate.regression(300, p=6, d=3, mu=(3,), sigma2=(4,), seed=0)
    X, units = np.stack([np.asarray(s) for s in data.X]), np.array([1e-3, 1.0, 1e4])
    contest = Auto(combine="best")
    model = DiagAttRegressor(solver=contest, random_state=0).fit(X * units + units, data.y)
    alone = DiagAttRegressor(solver="likelihood", random_state=0).fit(X, data.y)
    assert model.solver_ == "likelihood"
    np.testing.assert_allclose(model.value_ * units, alone.value_, rtol=1e-3, atol=1e-3)
    kappa = np.stack(model.attention(X * units + units))[:, :, 0]  # (n, p)
    pooled = np.einsum("np,npd->nd", kappa, X * units + units)
    expected = pooled @ model.value_[0] + model.intercept_
    np.testing.assert_allclose(model.predict(X * units + units), expected, rtol=1e-6)
    assert model.value_se_.shape == alone.value_se_.shape
    np.testing.assert_allclose(model.value_se_[:3] * units, alone.value_se_[:3], rtol=1e-2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_groups_are_held_out_together():
    """Samples of one group share a nuisance row: held out one by one, it seems a signal."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 6)
    marks, effects = 5 * rng.standard_normal((20, 6)), rng.standard_normal(20)
    X = rng.standard_normal((120, 4, 6))
    X[:, 0] = marks[groups]
    y = effects[groups] + 0.1 * rng.standard_normal(120)
    scores = []
    for given in ({}, {"groups": groups}):
        model = DiagAttRegressor(random_state=0).fit(X, y, **given)
        scores.append(max(line["r2"] for line in model.report_ if line["r2"] is not None))
    assert scores[0] > 0.8
    assert scores[1] < 0.5
    with pytest.raises(ValueError, match="groups has 3 entries, but there are 120 samples"):
        DiagAttRegressor().fit(X, y, groups=[1, 2, 3])


@pytest.mark.slow
def test_several_heads_compete():
    data = simulate.regression(200, p=6, d=3, mu=(3, -3), sigma2=(4, 4), seed=0)
    model = DiagAttRegressor(2, random_state=0).fit(data.X, data.y)
    assert {line["solver"] for line in model.report_} == {
        "likelihood", "mixture", "gradient", "uniform",
    }  # fmt: skip
    located = model.locate(data.X)
    assert located.shape == (200, 2)
    assert (located[:, 0] != located[:, 1]).all()


@pytest.mark.slow
def test_classes_of_more_than_two_are_blended():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.standard_normal((150, 5, 4))
    X[np.arange(150), rng.integers(0, 5, 150), :3] += 4 * np.eye(3)[y]
    model = DiagAttClassifier(random_state=0).fit(X[:100], y[:100])
    p = model.predict_proba(X[100:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p.argmax(axis=1) == y[100:]).mean() > 0.8
    assert (model.predict(X[100:]) == model.classes_[p.argmax(axis=1)]).all()


# ---------------------------------------------------------------------- contestants of one's own


@pytest.fixture
def shifted():
    """The GLM of mean rows, its intercept shifted."""
    before = dict(SOLVERS)

    class Shifted(Solver):
        name = "shifted"
        scores_see_response = False
        asked: ClassVar[list] = []

        def __init__(self, by=0.0):
            self.by = by

        def fit(self, problem, model, *, seed, start=None, checkpoint=None, verbose=False):
            Shifted.asked.append((problem.n_samples, start))
            fitted = Uniform().fit(problem, model)
            with torch.no_grad():
                fitted.module.intercept.add_(self.by)
            return Fitted(fitted.module, self, [[]], state=("shifted", problem.n_samples))

    yield Shifted
    SOLVERS.clear()
    SOLVERS.update(before)


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_a_users_own_solver_competes(shifted):
    X, y = nothing(np.random.default_rng(0), 200)
    for by in (5.0, -5.0):
        contest = Auto([Uniform(), shifted(by)], combine="best")
        model = DiagAttRegressor(solver=contest, random_state=0).fit(X, y)
        assert model.solver_ == "uniform"
        assert [line["solver"] for line in model.report_] == ["uniform", "shifted"]
    contest = Auto([shifted(5.0), shifted(-0.001)], combine="best")
    model = DiagAttRegressor(solver=contest, random_state=0).fit(X, y)
    assert model.solver_ == "shifted"
    uniform = DiagAttRegressor(solver="uniform", ridge=1.0 / y.var()).fit(
        X, (y - y.mean()) / y.std()
    )
    expected = (uniform.predict(X) - 0.001) * y.std() + y.mean()
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_every_fold_starts_cold(shifted):
    X, y = nothing(np.random.default_rng(0), 200)
    DiagAttRegressor(solver=Auto([shifted()], folds=4), random_state=0).fit(X, y)
    *folds, (whole, _) = shifted.asked
    assert [n for n, _ in folds] == [150] * 4
    assert whole == 200
    assert all(begun is None for _, begun in shifted.asked)


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_the_state_of_another_solver_is_no_start(shifted):
    """After a contest that `shifted` won, likelihood starts as if there had been none."""
    X, y = nothing(np.random.default_rng(0), 200)
    model = DiagAttRegressor(solver=shifted(), warm_start=True, random_state=0).fit(X, y)
    model.set_params(solver="likelihood").fit(X, y)
    cold = DiagAttRegressor(solver="likelihood", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.value_, cold.value_)


def test_one_contestant_is_its_own_solver():
    """A contest of one is that solver's fit, but for the response's units that it saw."""
    X, y = mixture(np.random.default_rng(0), 200)
    contest = DiagAttRegressor(solver=Auto([Likelihood()]), random_state=0, ridge=0.0).fit(X, y)
    alone = DiagAttRegressor(solver="likelihood", random_state=0, ridge=0.0).fit(X, y)
    np.testing.assert_allclose(contest.predict(X), alone.predict(X), atol=1e-2 * y.std())
    assert contest.log_likelihood_ == pytest.approx(alone.log_likelihood_, rel=1e-4)


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_a_contestant_that_breaks_down_does_not_win(shifted):
    class Broken(shifted):
        name = "broken"

        def fit(self, problem, model, **how):
            raise DivergedError("the loss became nan")

    X, y = nothing(np.random.default_rng(0), 60)
    model = DiagAttRegressor(solver=Auto([Uniform(), Broken()]), random_state=0).fit(X, y)
    assert model.solver_ == "uniform"
    with pytest.raises(DivergedError, match="the loss became nan"):
        DiagAttRegressor(solver=Auto([Broken()]), random_state=0).fit(X, y)
