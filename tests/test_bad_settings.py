"""Settings that cannot be: an error that says what, where and what to do."""

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.solvers import Gradient
from tests.test_bad_input import samples

# Short fits need not find a row; what is tested here is something else.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


@pytest.mark.parametrize("heads", [0, -1, 1.5, True, "many", [], (1, 0)])
def test_impossible_numbers_of_heads(heads):
    with pytest.raises(
        ValueError, match=r"n_heads must be a whole number of at least 1, a list .* or 'auto', got "
    ):
        DiagAttRegressor(heads).fit(*samples())


def test_more_heads_than_rows_when_rows_must_be_distinct():
    X, y = samples()
    X[6] = X[6][:1]
    with pytest.raises(ValueError, match="need 2 distinct rows, but sample 6 has 1: lower n_heads"):
        DiagAttRegressor(2).fit(X, y)
    DiagAttRegressor(2, coupling="independent", solver="gradient", random_state=0).fit(X, y)


@pytest.mark.parametrize("method", ["predict", "locate", "attention", "transform"])
def test_new_samples_shorter_than_the_heads_of_distinct_rows(method):
    X, y = samples()
    model = DiagAttRegressor(2, solver="gradient", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="need 2 distinct rows, but sample 1 has 1: drop short"):
        getattr(model, method)([X[0], X[1][:1], X[2][:1]])


@pytest.mark.parametrize("estimator", [DiagAttRegressor, DiagAttClassifier])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("family", "cauchy", r"unknown family 'cauchy': choose one of \['bernoulli'"),
        ("solver", "magic", r"solver must be .* or a solver object, got 'magic'"),
        ("optimizer", "sgd", "solver__optimizer must be 'auto', 'adam' or 'lbfgs', got 'sgd'"),
        ("score_form", "cubic", "score_form must be 'quadratic', .*, got 'cubic'"),
        ("coupling", "loose", "coupling must be 'independent' or 'distinct', got 'loose'"),
        ("parameterization", "sparse", "parameterization must be 'full', .*, got 'sparse'"),
        ("init", "warm", "init must be 'pooled' or 'zero', got 'warm'"),
        ("missing", "impute", "missing must be 'refuse' or 'marginalize', got 'impute'"),
        ("temperature", 0.0, "temperature must be a positive number, got 0.0"),
        ("temperature", -1.0, "temperature must be a positive number, got -1.0"),
        ("learning_rate", 0.0, "learning_rate must be a positive number"),
        ("ridge", -1.0, "ridge must be a number of at least 0, got -1.0"),
        ("score_ridge", -1.0, "score_ridge must be a number of at least 0"),
        ("row_dropout", 1.0, r"row_dropout must be a number in \[0, 1\), got 1.0"),
        ("value_dropout", 1.0, r"value_dropout must be a number in \[0, 1\), got 1.0"),
        ("validation_fraction", -0.1, r"validation_fraction must be a number in \[0, 1\)"),
        ("value_bound", 0.0, "value_bound must be a positive number or None, got 0.0"),
        ("score_bound", -1.0, "score_bound must be a positive number or None"),
        ("n_restarts", 0, "n_restarts must be a whole number of at least 1, got 0"),
        ("patience", 0, "patience must be a whole number of at least 1"),
        ("batch_size", 0, "batch_size must be a whole number of at least 1 or None, got 0"),
        ("max_epochs", 0, "max_epochs must be a whole number of at least 1 or None"),
        ("rank", 0, "rank must be a whole number of at least 1 or None"),
    ],
)
def test_impossible_settings(estimator, name, value, message):
    X, y = samples()
    given = {"solver": Gradient(**{name: value})} if name in Gradient.rules else {name: value}
    with pytest.raises(ValueError, match=message):
        estimator(**given).fit(X, (y > 0).astype(int))


def test_a_family_of_the_other_estimator():
    X, y = samples()
    with pytest.raises(ValueError, match="'bernoulli' is for classes: use the classifier"):
        DiagAttRegressor(family="bernoulli").fit(X, y)
    with pytest.raises(ValueError, match="'poisson' is for numbers: use the regressor"):
        DiagAttClassifier(family="poisson").fit(X, y > 0)
    with pytest.raises(ValueError, match="'bernoulli' has two classes, y has 3"):
        DiagAttClassifier(family="bernoulli").fit(X, np.digitize(y, [-1, 1]))


@pytest.mark.parametrize("estimator", [DiagAttRegressor, DiagAttClassifier])
def test_an_unknown_preset(estimator):
    with pytest.raises(ValueError, match="unknown preset 'best': choose 'paper'"):
        estimator.preset("best")


def test_held_out_part_that_leaves_nothing():
    X, y = samples(n=2)
    model = DiagAttRegressor(solver=Gradient(validation_fraction=0.9))
    with pytest.raises(ValueError, match="validation_fraction leaves no sample to train on: lower"):
        model.fit(X, y)
