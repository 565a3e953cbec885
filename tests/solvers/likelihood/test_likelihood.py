"""The likelihood solver through the estimators: against the Bayes oracle, and on hard input."""

import numpy as np
import pytest

from diagatt import NoRowOfInterestWarning, simulate
from diagatt.metrics import accuracy, crlr, rmse
from diagatt.solvers.likelihood.covariance import COVARIANCES
from diagatt.solvers.likelihood.em import EM
from tests.models import classifier, regressor


def test_integer_weights_equal_repetition():
    data = simulate.regression(60, p=5, d=3, mu=(3.0,), sigma2=(3.0,), seed=1)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    repeated = np.repeat(np.arange(60), weights)
    model = regressor(solver="likelihood", random_state=0)
    weighted = model.fit(data.X, data.y, sample_weight=weights).predict(data.X)
    again = model.fit(data.X[repeated], data.y[repeated]).predict(data.X)
    np.testing.assert_allclose(weighted, again, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_reaches_the_oracle_and_names_its_certainty():
    train = simulate.regression(1500, p=30, d=12, mu=(2.0,), sigma2=(4.0,), seed=0)
    test = train.draw(1000, seed=1)
    oracle = test.oracle()
    model = regressor(solver="likelihood", random_state=0).fit(train.X, train.y)
    assert rmse(test.y, model.predict(test.X)) <= 1.05 * rmse(test.y, oracle.prediction)
    assert crlr(test.rows, model.locate(test.X)) >= crlr(test.rows, oracle.rows) - 0.01
    certainty = model.certainty(test.X)
    right = certainty.rows == test.rows
    # The posterior is calibrated: it says how often the row is right.
    assert abs(certainty.posterior.mean() - right.mean()) < 0.03
    assert right[certainty.ambiguous].mean() < right[~certainty.ambiguous].mean()
    weights = np.concatenate(model.attention(test.X))
    entropy = -np.add.reduceat(
        np.where(weights > 0, weights * np.log(weights), 0), test.X.offsets[:-1]
    )
    np.testing.assert_allclose(certainty.entropy, entropy, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("R", [2, 3])
def test_several_heads_reach_the_oracle(R):
    mu, sigma2 = (1.0, 4.0, -4.0)[:R], (4.0, 3.0, 3.0)[:R]
    train = simulate.regression(1500, p=20, d=16, s=R, mu=mu, sigma2=sigma2, seed=R)
    test = train.draw(600, seed=9)
    model = regressor(n_heads=R, solver="likelihood", random_state=0).fit(train.X, train.y)
    oracle = test.oracle()
    assert rmse(test.y, model.predict(test.X)) <= 1.10 * rmse(test.y, oracle.prediction)
    assert crlr(test.rows, model.locate(test.X)) >= crlr(test.rows, oracle.rows) - 0.01
    rows = model.locate(test.X)
    assert all(len(set(line)) == R for line in rows)  # distinct rows


@pytest.mark.slow
def test_context_helps_when_rows_are_correlated():
    train = simulate.regression(1500, p=30, d=10, mu=(2.0,), sigma2=(3.0,), rho=0.6, seed=0)
    test = train.draw(600, seed=1)
    error = {
        form: rmse(test.y, regressor(solver="likelihood", score_form=form, random_state=0)
                   .fit(train.X, train.y).predict(test.X))
        for form in ("affine", "contextual")
    }  # fmt: skip
    assert error["contextual"] < error["affine"]
    assert error["contextual"] <= 1.4 * rmse(test.y, test.oracle().prediction)


@pytest.mark.slow
def test_classification_reaches_the_oracle():
    train = simulate.classification(1500, p=20, d=16, mu=(4, -4), sigma2=(3, 3), seed=0)
    test = train.draw(1000, seed=1)
    model = classifier(solver="likelihood", random_state=0).fit(train.X, train.y)
    oracle = accuracy(test.y, test.oracle().prediction > 0.5)
    assert accuracy(test.y, model.predict(test.X)) >= oracle - 0.02


@pytest.mark.parametrize("kind", COVARIANCES)
def test_more_features_than_samples(kind):
    data = simulate.regression(40, p=6, d=60, mu=(3.0,), sigma2=(4.0,), seed=0)
    model = regressor(solver="likelihood", covariance=kind, random_state=0)
    prediction = model.fit(data.X, data.y).predict(data.X)
    assert np.isfinite(prediction).all()
    assert crlr(data.rows, model.locate(data.X)) > 0.8


def degenerate(kind: str):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5, 4))
    X[:, 0] *= 3
    y = X[:, 0].sum(axis=1)
    if kind == "constant feature":
        X[..., 1] = 7.0
    elif kind == "copied feature":
        X[..., 1] = X[..., 0]
    elif kind == "duplicated rows":
        X = np.repeat(X[:, :2], 3, axis=1)
    elif kind == "constant y":
        y = np.zeros(60)
    elif kind == "all rows equal":
        X = np.ones((60, 5, 4))
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["likelihood", "auto"])
@pytest.mark.parametrize(
    "kind",
    ["constant feature", "copied feature", "duplicated rows", "constant y", "all rows equal"],
)
@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_degenerate_data_stay_finite(kind, solver):
    X, y = degenerate(kind)
    model = regressor(solver=solver, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert all(np.isfinite(a).all() for a in model.attention(X))


@pytest.mark.parametrize("R", [2, 3])
@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_more_heads_than_active_rows_and_samples_of_exactly_R_rows(R):
    data = simulate.regression(300, p=(R, 6), d=4, mu=(3.0,), sigma2=(4.0,), seed=0)
    model = regressor(n_heads=R, solver="likelihood", random_state=0).fit(data.X, data.y)
    assert np.isfinite(model.predict(data.X)).all()
    exact = simulate.regression(100, p=R, d=3, s=R, mu=2.0, sigma2=3.0, seed=0)
    model.fit(exact.X, exact.y)
    assert np.isfinite(model.predict(exact.X)).all()


def test_perfect_separation_stays_finite():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5, 3))
    X[:, 0] *= 3
    y = X[:, 0, 0] > 0
    model = classifier(solver="likelihood", random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, y) > 0.9


# ---------------------------------------------------------------------- warm start


@pytest.mark.parametrize("R", [1, 2])
def test_a_warm_start_goes_on_from_the_last_fit(R, monkeypatch):
    """Nothing is built anew, two iterations see that there is nothing to gain."""
    iterate, iterations = EM._iterate, []

    def counting(self, now):
        iterations.append(now)
        iterate(self, now)

    monkeypatch.setattr(EM, "_iterate", counting)
    mu, sigma2 = (2.0, 4.0)[:R], (3.0, 3.0)[:R]
    data = simulate.regression(300, p=6, d=4, s=R, mu=mu, sigma2=sigma2, seed=0)
    X = data.X.astype(np.float64)
    options = {"solver": "likelihood", "tolerance": 1e-7, "max_iterations": 500}
    model = regressor(R, **options, random_state=0, warm_start=True).fit(X, data.y)
    cold, value, prediction = len(iterations), model.log_likelihood_, model.predict(X)
    assert model.selection_  # the starts that competed
    iterations.clear()
    model.fit(X, data.y)
    assert model.n_iter_ == len(iterations) <= 3 < cold / 10
    assert model.selection_ == []
    assert model.log_likelihood_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(model.predict(X), prediction, atol=1e-4 * np.abs(prediction).max())


def test_a_warm_start_follows_data_that_change_a_little():
    data = simulate.regression(400, p=6, d=4, mu=(2.0,), sigma2=(3.0,), seed=0)
    X, options = data.X.astype(np.float64), {"solver": "likelihood", "tolerance": 1e-7}
    warm = regressor(**options, random_state=0, warm_start=True).fit(X[:350], data.y[:350])
    before = warm.value_
    cold = regressor(**options, random_state=0).fit(X, data.y)
    warm.fit(X, data.y)
    assert warm.log_likelihood_ == pytest.approx(cold.log_likelihood_, rel=1e-7)
    np.testing.assert_allclose(warm.value_, cold.value_, atol=1e-4)
    assert np.abs(before - cold.value_).max() > 5e-3


def test_a_model_without_a_state_starts_anew():
    data = simulate.regression(200, p=6, d=4, mu=(2.0,), sigma2=(3.0,), seed=0)
    model = regressor(solver="uniform", random_state=0, warm_start=True)
    with pytest.warns(NoRowOfInterestWarning):
        model.fit(data.X, data.y)
    model.set_params(solver="likelihood").fit(data.X, data.y)
    cold = regressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    np.testing.assert_array_equal(model.value_, cold.value_)
