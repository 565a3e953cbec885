"""Presets and parameters of the estimators, and the tools of scikit-learn that set them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import (
    LinearRegression,
    Ridge,
)
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows
from diagatt.solvers import Auto, Gradient, Likelihood, Uniform
from tests.closeness import assert_equal_up_to_rounding
from tests.estimators.diagonal_samples import D, classifier, marked_rows, one_row_data, regressor
from tests.short_contest import shorten_contests

# Short fits need not find a row; what is tested here is something else.
pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.mark.parametrize(
    ("estimator", "temperature"), [(DiagAttRegressor, 100.0), (DiagAttClassifier, 1000.0)]
)
def test_the_preset_of_the_paper(estimator, temperature):
    """Supplement S7.1: Adam in its default settings, τ by task, no penalty."""
    model = estimator.preset("paper", n_heads=2, solver__max_epochs=3)
    solver = model.solver
    assert (solver.temperature, model.n_heads, solver.optimizer) == (temperature, 2, "adam")
    assert (solver.learning_rate, model.ridge, solver.score_ridge) == (1e-3, 0, 0)
    assert (solver.batch_size, solver.init, solver.init_scale) == (32, "zero", 1.0)
    assert (solver.max_epochs, estimator.preset("paper").solver.max_epochs) == (3, 40)
    assert (solver.parameterization, model.coupling, model.score_form) == (
        "factored",
        "independent",
        "quadratic",
    )
    X, y, _ = marked_rows(n=30)
    model.fit(X, y if estimator is DiagAttRegressor else y > np.median(y))
    assert model.query_key_.shape == (2, D, D)
    assert model.temperature_ == temperature
    assert len(model.history_[0]) == 3


@pytest.mark.parametrize("parameterization", ["factored", "psd"])
@pytest.mark.parametrize("score_form", ["quadratic", "affine", "contextual"])
def test_low_rank_is_kept_as_factors(parameterization, score_form, tmp_path):
    rng = np.random.default_rng(0)
    X = RaggedRows.from_samples([rng.normal(size=(p, 6)) for p in rng.integers(2, 6, 60)])
    y = np.array([sample[0, 0] for sample in X])
    options = {"parameterization": parameterization, "score_form": score_form, "rank": 2}
    model = regressor(**options, n_restarts=3, n_heads=2, max_epochs=3, optimizer="adam").fit(X, y)
    width = {"quadratic": 6, "affine": 7, "contextual": 13}[score_form]
    assert model.query_.shape == model.key_.shape == (6, width, 2)
    product = np.einsum("hdq,heq->hde", model.query_, model.key_)
    assert_equal_up_to_rounding(model.query_key_, product)
    model.save(tmp_path / "m.safetensors")
    read = DiagAttRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    dense = DiagAttRegressor.load(tmp_path / "m.safetensors")
    dense.query_key_ = model.query_key_
    np.testing.assert_allclose(dense.predict(X), model.predict(X), rtol=1e-10)
    for ours, theirs in zip(dense.attention(X), model.attention(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("estimator", [DiagAttRegressor, DiagAttClassifier])
def test_clone_and_parameters(estimator):
    model = estimator(2, solver=Gradient(temperature=3.0))
    assert repr(clone(model).get_params()) == repr(model.get_params())
    changed = clone(model).set_params(n_heads=3, solver__temperature=2.0)
    assert (changed.n_heads, model.n_heads) == (3, 2)
    assert (changed.solver.temperature, model.solver.temperature) == (2.0, 3.0)
    X, y, _ = marked_rows(n=20)
    model.set_params(solver="gradient").fit(X, y > np.median(y))
    assert not [name for name in vars(clone(model)) if name.endswith("_")]


@pytest.mark.parametrize("changed", [{}, {"n_heads": "auto", "solver": "likelihood"}], ids=str)
def test_fit_does_not_change_parameters(changed, monkeypatch):
    shorten_contests(monkeypatch)
    X, y, _ = marked_rows(n=30)
    model = DiagAttRegressor(**changed, random_state=0)
    before = model.get_params()
    assert model.fit(X, y).get_params() == before


@pytest.mark.parametrize("solver", ["gradient", "likelihood", "auto"])
def test_the_random_state_decides(solver):
    X, y, _ = marked_rows(n=40)
    short = Gradient(optimizer="adam", max_epochs=2)
    contest = Auto([Uniform(), Likelihood(), short], folds=2)
    solvers = {"gradient": short, "likelihood": "likelihood", "auto": contest}
    options = {"n_heads": 2, "solver": solvers[solver]}
    first, again = (DiagAttRegressor(**options, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.query_key_, again.query_key_)
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    if solver == "gradient":
        other = DiagAttRegressor(**options, random_state=4).fit(X, y)
        assert (first.query_key_ != other.query_key_).any()


def test_a_random_state_object_moves_on():
    X, y, _ = marked_rows(n=40)
    state = np.random.RandomState(0)
    options = {"optimizer": "adam", "max_epochs": 1}
    first, second = (regressor(**options, random_state=state).fit(X, y) for _ in range(2))
    assert (first.query_key_ != second.query_key_).any()


# ---------------------------------------------------------------------- with scikit-learn


def test_a_pipeline_after_a_scaler_on_tables():
    X, y, _ = one_row_data("gaussian")
    pipeline = make_pipeline(StandardScaler(), DiagAttRegressor()).fit(10 * X + 3, y)
    expected = make_pipeline(StandardScaler(), Ridge()).fit(10 * X + 3, y)
    np.testing.assert_allclose(pipeline.predict(10 * X + 3), expected.predict(10 * X + 3))


def test_a_pipeline_after_the_transform():
    X, y, _ = marked_rows(n=120)
    pipeline = make_pipeline(regressor(ridge=0.0, score_ridge=1.0), LinearRegression()).fit(X, y)
    # The pooled rows already are the features of the best linear fit.
    np.testing.assert_allclose(pipeline.predict(X), pipeline[0].predict(X), atol=1e-5)


def test_cross_validation_and_grid_search_on_ragged_samples():
    X, y, _ = marked_rows(n=60)
    model = regressor(max_epochs=30)
    scores = cross_val_score(model, X, y, cv=3)
    assert (scores > 0.5).all()
    for k, held_out in enumerate(np.array_split(np.arange(60), 3)):
        train = np.setdiff1d(np.arange(60), held_out)
        by_hand = clone(model).fit(X[train], y[train]).score(X[held_out], y[held_out])
        assert scores[k] == pytest.approx(by_hand, rel=1e-6)
    assert cross_val_predict(model, X, y, cv=3).shape == (60,)
    grid = {"ridge": [1.0, 1e6], "n_heads": [1, 2]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_params_["ridge"] == 1.0
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


def test_grid_search_of_a_classifier_on_ragged_samples():
    X, y, _ = marked_rows(n=60)
    search = GridSearchCV(classifier(max_epochs=30), {"ridge": [1.0, 1e6]}, cv=2)
    search.fit(X, np.where(y > np.median(y), "large", "small"))
    assert search.best_params_ == {"ridge": 1.0}
    assert search.best_score_ > 0.7
