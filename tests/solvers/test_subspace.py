"""Very wide rows: solvers of d² parameters fit a subspace, and tell it in all features."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

from diagatt import DiagAttClassifier, DiagAttRegressor, NoRowOfInterestWarning, simulate
from diagatt.rowmaps import ROW_MAPS
from diagatt.solvers import Gradient, Mixture
from diagatt.solvers.gradient import train

SOLVERS = ["likelihood", "gradient", "mixture", "refined"]
D = 1500  # more features than parameters of their pairs are fitted for
every_solver = pytest.mark.parametrize("solver", SOLVERS)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def bags(n=80, p=4, d=D, seed=0):
    """Samples of the second class have one row that is shifted by eight, in ten hidden factors.

    Features are noisy copies of the factors, so that a subspace of few dimensions holds them.
    """
    rng = np.random.default_rng(seed)
    factors, y = rng.standard_normal((n, p, 10)), np.arange(n) % 2
    factors[y == 1, 1, 0] += 8.0
    loadings = np.random.default_rng(7).standard_normal((10, d))
    return factors @ loadings + 0.1 * rng.standard_normal((n, p, d)), y


@every_solver
def test_a_fit_finds_the_rows_and_keeps_no_squared_features(solver, tmp_path):
    X, y = bags()
    model = DiagAttClassifier(solver=solver, random_state=0).fit(X, y)
    new, labels = bags(seed=1)
    assert roc_auc_score(labels, model.predict_proba(new)[:, 1]) > 0.97
    assert np.mean(model.locate(new)[labels == 1] == 1) > 0.97
    assert model.value_.shape == (1, D)
    assert model.query_.shape == model.key_.shape
    assert model.query_.shape[2] <= 1 + 128
    model.save(tmp_path / "model.safetensors")
    again = DiagAttClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


@pytest.mark.parametrize("form", ["quadratic", "affine", "contextual"])
def test_it_is_the_fit_to_mapped_rows(form):
    """The same as mapping the rows beforehand, in every form of the scores."""
    X, y = bags(n=40)
    name = "scaled" if form == "quadratic" else "full"
    rows = ROW_MAPS[name].fitted_to(torch.from_numpy(X.reshape(-1, D)))
    few = rows(torch.from_numpy(X.reshape(-1, D))).numpy().reshape(40, 4, -1)
    how = {"solver": Gradient(max_epochs=30), "score_form": form, "random_state": 0}
    ours, theirs = DiagAttClassifier(**how).fit(X, y), DiagAttClassifier(**how).fit(few, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(few), rtol=1e-6)


def test_a_few_factors_are_fitted_to_all_features():
    """A rank that is given is kept, in the features as they are."""
    X, y = bags(n=30)
    model = DiagAttClassifier(solver=Gradient("factored", rank=2, max_epochs=3), random_state=0)
    assert model.fit(X, y).query_.shape == (1, D + 1, 2)
    assert not Mixture("factored", rank=2)._squares_features


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_a_fit_goes_on_from_an_earlier_one():
    X, y = bags(n=40)
    model = DiagAttClassifier(solver=Gradient(max_epochs=200), random_state=0, warm_start=True)
    first = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X), first, atol=0.02)


@pytest.mark.parametrize("kind", [DiagAttRegressor, DiagAttClassifier])
def test_uniform_attention_to_many_features_is_the_regression_on_mean_rows(kind, monkeypatch):
    """Fewer samples than features are fitted in their own span, which changes nothing."""
    monkeypatch.setattr(train, "NEWTON_COEFFICIENTS", 100)
    X, y = bags(n=50)
    means = X.mean(axis=1) / 30
    with pytest.warns(NoRowOfInterestWarning):
        model = kind(solver="uniform", ridge=2.0, random_state=0).fit(X / 30, y)
    assert model.query_.shape == (1, D + 1, 1)
    if kind is DiagAttRegressor:
        theirs = Ridge(alpha=2.0).fit(means, y)
        np.testing.assert_allclose(model.predict(X / 30), theirs.predict(means), rtol=1e-7)
        return
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(means, y)
    ours = model.predict_proba(X / 30)
    np.testing.assert_allclose(ours, theirs.predict_proba(means), rtol=1e-5)


@pytest.mark.parametrize("form", ["affine", "contextual"])
@pytest.mark.parametrize("constant", [0.0, 2024.0, 1e6])
@every_solver
def test_constant_features_change_nothing(solver, form, constant):
    """They are left out, and their coefficients are 0; one of a million had spoilt every fit."""
    data = simulate.regression(150, p=5, d=3, mu=(3,), sigma2=(4,), seed=0)
    rows = data.X.values
    wider = data.X.with_values(np.insert(rows, 1, constant, axis=1).astype(rows.dtype))
    how = {"solver": solver, "score_form": form, "random_state": 0}
    expected = DiagAttRegressor(**how).fit(data.X, data.y)
    model = DiagAttRegressor(**how).fit(wider, data.y)
    assert (model.value_[:, 1] == 0).all()
    assert not model.query_key_[:, 1].any()
    found, wanted = model.predict(wider), expected.predict(data.X)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3 * wanted.std())
    np.testing.assert_array_equal(model.locate(wider), expected.locate(data.X))
    if expected.log_likelihood_ is not None:
        assert model.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-5)


def test_the_likelihood_solver_goes_on_where_a_feature_is_constant():
    """Also if the feature varies afterwards, in which case it starts anew."""
    data = simulate.regression(150, p=5, d=3, mu=(3,), sigma2=(4,), seed=0)
    rows = data.X.values
    wider = data.X.with_values(np.insert(rows, 1, 7.0, axis=1).astype(rows.dtype))
    model = DiagAttRegressor(solver="likelihood", warm_start=True, random_state=0)
    assert model.fit(wider, data.y).selection_  # starts are compared
    assert model.fit(wider, data.y).selection_ == []
    varying = data.X.with_values(np.concatenate([rows, rows[:, :1] ** 2], axis=1))
    assert model.fit(varying, data.y).selection_
    assert model.value_.all()


def test_a_fit_goes_on_only_where_the_same_features_are_constant():
    data = simulate.regression(120, p=5, d=3, mu=(3,), sigma2=(4,), seed=0)
    rows = np.asarray(data.X.values)
    first, second = (
        data.X.with_values(np.insert(rows, k, 7.0, axis=1).astype(rows.dtype)) for k in (0, 3)
    )
    model = DiagAttRegressor(solver="likelihood", random_state=0)
    fresh = model.fit(second, data.y).predict(second)
    model.set_params(warm_start=True).fit(second, data.y)
    assert model.n_iter_ < 5  # EM goes on where it had ended
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(first, data.y)
    found = model.set_params(warm_start=True).fit(second, data.y).predict(second)
    np.testing.assert_array_equal(found, fresh)  # as if there were no fit to other columns


def test_a_constant_feature_may_stand_for_the_constant_of_a_score():
    """Scores without a constant keep it: with a column of ones they are affine scores."""
    data = simulate.regression(150, p=5, d=3, mu=(3,), sigma2=(4,), seed=0)
    rows = data.X.values
    wider = data.X.with_values(np.insert(rows, 0, 1.0, axis=1).astype(rows.dtype))
    how = {"solver": Gradient(max_epochs=50), "score_form": "quadratic", "random_state": 0}
    model = DiagAttRegressor(**how).fit(wider, data.y)
    assert model.query_[0, 0].any()
