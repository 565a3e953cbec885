"""What every estimator promises: bad data are named, and a fit that fails changes nothing."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, RaggedRows
from diagatt.estimators.competitor import Competitor
from diagatt.estimators.times import ReadsTimes
from diagatt.lifetimes import make_times
from diagatt.parameters import ParameterError
from diagatt.persistence import registered
from tests.estimators.samples import ragged, responses

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

X = ragged(n=40, d=3, longest=4)


def make(kind):
    """A small estimator of the kind."""
    settings = {"n_hidden": 4, "max_steps": 5, "random_state": 0}
    names = kind._get_param_names()
    if "members" in names:
        inner = DiagAttClassifier if issubclass(kind, registered()["BlendedClassifier"]) else None
        inner = (inner or DiagAttRegressor)(solver="likelihood")
        return kind([("one", inner, None), ("two", clone(inner), None)])
    if issubclass(kind, DiagAttClassifier | DiagAttRegressor | DiagAttSurvival):
        settings["solver"] = "likelihood"
    return kind(**{name: value for name, value in settings.items() if name in names})


MODELS = [make(kind) for kind in registered().values()]
each = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


def y_of(model):
    if isinstance(model, ReadsTimes):
        return make_times(np.arange(40) % 3 > 0, np.exp(responses(X, "gaussian")))
    return responses(X, "three" if is_classifier(model) else "gaussian")


def shown(model, y):
    """MDSP is shown the responses."""
    return {"y": y} if type(model).__name__.startswith("MDSP") else {}


@pytest.fixture(scope="module")
def kept():
    return {}


@pytest.fixture
def fitted(model, kept):
    """A copy of the model's fit to X, which all tests of the model share."""
    name = type(model).__name__
    if name not in kept:
        kept[name] = clone(model).fit(X, y_of(model))
    return deepcopy(kept[name])


def state(model):
    return {name: repr(value) for name, value in vars(model).items()}


def spoiled(value, sample=7, row=0):
    samples = [np.array(s) for s in X]
    samples[sample][row, 1] = value
    return samples


def masked():
    samples = [np.ma.masked_array(s, mask=np.zeros(s.shape)) for s in X]
    samples[7][0, 1] = np.ma.masked
    return samples


def test_every_estimator_is_here():
    assert len(MODELS) == 19


@each
def test_every_parameter_has_a_rule(model):
    rules = {}
    for base in type(model).__mro__:
        rules |= vars(base).get("rules", {})
    assert set(model.get_params(deep=False)) <= set(rules)


@each
@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (lambda: spoiled(np.nan), "sample 7, row 0 contains NaN: drop the row or impute it"),
        (lambda: spoiled(np.inf), "sample 7, row 0 contains infinity"),
        (lambda: spoiled(np.nan, 0, 3), "sample 0, row 3 contains NaN"),
        (masked, "sample 7, row 0 is masked"),
    ],
)
def test_rows_that_cannot_be_read_are_named_in_fit_and_predict(model, fitted, samples, message):
    y = y_of(model)
    with pytest.raises(ValueError, match=message):
        clone(model).fit(samples(), y)
    for method in (fitted.predict, fitted.locate):
        with pytest.raises(ValueError, match=message):
            method(samples(), **shown(model, y))


@each
def test_one_row_samples_are_named_too(model):
    table, y = np.array(X.values[:40]), y_of(model)
    fitted = clone(model).fit(table, y)
    bad = table.copy()
    bad[5, 1] = np.nan
    for frame in (bad, pd.DataFrame(bad), bad.tolist(), np.where(np.isnan(bad), None, bad)):
        with pytest.raises(ValueError, match="sample 5, row 0 contains NaN"):
            clone(model).fit(frame, y)
        with pytest.raises(ValueError, match="sample 5, row 0 contains NaN"):
            fitted.predict(frame, **shown(model, y))


FAILURES = {
    "rows": lambda model, y: (spoiled(np.nan), y),
    "features": lambda model, y: ([], y),
    "too few responses": lambda model, y: (X, y[1:]),
    "dates": lambda model, y: (X, np.full(40, "2020-01-01", dtype="M8[D]")),
    "no responses": lambda model, y: (X, None),
    "other features, bad responses": lambda model, y: (X.with_values(X.values[:, :2]), y[1:]),
    "table, bad responses": lambda model, y: (pd.DataFrame(X.values[:40]), [np.nan] * 40),
}


@each
@pytest.mark.parametrize("case", FAILURES)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model, fitted, case):
    y = y_of(model)
    first = clone(model)
    with pytest.raises(ValueError, match=r"."):
        first.fit(*FAILURES[case](model, y))
    assert state(first) == state(clone(model))
    with pytest.raises(NotFittedError):
        check_is_fitted(first)
    with pytest.raises(NotFittedError):
        first.predict(X, **shown(model, y))

    before, answers = state(fitted), fitted.predict(X, **shown(model, y))
    with pytest.raises(ValueError, match=r"."):
        fitted.fit(*FAILURES[case](model, y))
    assert state(fitted) == before
    np.testing.assert_array_equal(fitted.predict(X, **shown(model, y)), answers)


@each
def test_a_fit_that_breaks_off_late_leaves_the_estimator_as_it_was(model, fitted, monkeypatch):
    """The solver has set most attributes when it fails: none of them is kept."""
    y = y_of(model)
    before = state(fitted)
    solve = type(model)._fit_problem

    def fails_at_the_end(self, problem):
        solve(self, problem)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_fit_problem", fails_at_the_end)
    other = X.with_values(X.values[:, :2])
    for unlucky in (fitted, fresh := clone(model)):
        with pytest.raises(KeyboardInterrupt):
            unlucky.fit(other, y)
    assert state(fitted) == before
    assert state(fresh) == state(clone(model))


@each
def test_a_second_fit_leaves_nothing_of_the_first(model, fitted):
    y = y_of(model)
    table = pd.DataFrame(X.values[:40], columns=["a", "b", "c"])
    twice = clone(model).fit(table, y)
    assert twice.feature_names_in_.tolist() == ["a", "b", "c"]
    twice.fit(X, y)
    assert state(twice).keys() == state(fitted).keys()
    assert not hasattr(twice, "feature_names_in_")


@each
@pytest.mark.parametrize(
    "wrong", [{"random_state": "zero"}, {"random_state": -1}, {"random_state": np.nan}]
)
def test_parameters_are_checked_before_the_data_are_read(model, wrong):
    with pytest.raises(ParameterError, match="random_state must be None, a whole number"):
        clone(model).set_params(**wrong).fit("no samples at all", None)


@pytest.mark.parametrize(
    "model", [m for m in MODELS if isinstance(m, Competitor)], ids=lambda m: type(m).__name__
)
def test_covariates_that_were_not_fitted_are_refused(model, fitted):
    if shown(model, None):
        pytest.skip("predict takes the responses, and nothing else")
    with pytest.raises(ValueError, match="fitted with 0 covariates, got 2"):
        fitted.predict(X, np.zeros((40, 2)))


def test_a_store_and_its_rows_give_the_same_fit(tmp_path):
    from diagatt import PooledRegressor, RowStore

    y = responses(X)
    store = RowStore.write(tmp_path / "store", zip(X, y, strict=True))
    rows = store.to_rows()
    fitted, same = (PooledRegressor().fit(samples, y) for samples in (store, rows))
    np.testing.assert_array_equal(fitted.predict(store), same.predict(rows))


def test_views_of_any_layout_give_the_same_fit():
    y, Z = responses(X), np.random.default_rng(0).normal(size=(40, 2))
    model = DiagAttRegressor(solver="likelihood", random_state=0)
    expected = clone(model).fit(X, y, covariates=Z).predict(X, Z)
    other = RaggedRows.from_samples([np.asfortranarray(s) for s in X])
    flipped = np.flip(np.flip(Z).copy())  # negative strides
    model.fit(other, y[::-1][::-1], covariates=flipped)
    np.testing.assert_allclose(model.predict(other, flipped), expected, atol=1e-5)
