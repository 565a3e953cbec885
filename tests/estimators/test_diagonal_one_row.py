"""On samples of one row, the estimators are generalized linear models."""

import numpy as np
import pytest
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)

from diagatt import DiagAttClassifier, DiagAttRegressor
from tests.estimators.diagonal_samples import one_row_data

# Short fits need not find a row; what is tested here is something else.
pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def scikit_learn(family, ridge, total_weight):
    """The model that minimizes summed loss + ½ ridge ‖coef‖²."""
    exact = {"tol": 1e-10, "max_iter": 10_000}
    if family == "gaussian":
        return Ridge(alpha=ridge) if ridge else LinearRegression()
    if family in ("poisson", "gamma"):
        model = PoissonRegressor if family == "poisson" else GammaRegressor
        return model(alpha=ridge / total_weight, solver="newton-cholesky", **exact)
    return LogisticRegression(C=1 / ridge if ridge else np.inf, **exact)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_regression_on_one_row_samples_is_scikit_learns_glm(family, ridge, weighted):
    X, y, weights = one_row_data(family)
    weights = weights if weighted else np.ones(len(y))
    ours = DiagAttRegressor(family=family, ridge=ridge).fit(X, y, sample_weight=weights)
    theirs = scikit_learn(family, ridge, weights.sum()).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.value_[0], theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    assert ours.score(X, y) == pytest.approx(
        1 - np.sum((y - theirs.predict(X)) ** 2) / np.sum((y - y.mean()) ** 2), abs=1e-6
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("family", ["bernoulli", "multinomial"])
def test_classification_on_one_row_samples_is_logistic_regression(family, ridge, weighted):
    X, y, weights = one_row_data(family)
    weights = weights if weighted else np.ones(len(y))
    ours = DiagAttClassifier(ridge=ridge).fit(X, y, sample_weight=weights)
    theirs = scikit_learn(family, ridge, weights.sum()).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    z, expected = ours.decision_function(X), theirs.decision_function(X)
    if family == "multinomial":  # a shift common to all classes is free
        z, expected = (a - a.mean(axis=1, keepdims=True) for a in (z, expected))
    np.testing.assert_allclose(z, expected, atol=1e-6)
    assert ours.score(X, y) == theirs.score(X, y)


def test_two_classes_with_a_softmax_link_are_logistic_regression_with_half_the_penalty():
    X, y, _ = one_row_data("bernoulli")
    softmax = DiagAttClassifier(family="multinomial", ridge=2.0).fit(X, y)
    logit = DiagAttClassifier(ridge=1.0).fit(X, y)
    np.testing.assert_allclose(softmax.predict_proba(X), logit.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(softmax.decision_function(X), logit.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_more_features_than_newton_likes_are_still_solved(family):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3100))
    y = rng.poisson(2.0, size=30).astype(float)
    ours = DiagAttRegressor(family=family, ridge=500.0).fit(X, y)
    theirs = scikit_learn(family, 500.0, 30)
    if family == "poisson":
        theirs.set_params(solver="lbfgs")
    np.testing.assert_allclose(ours.predict(X), theirs.fit(X, y).predict(X), rtol=2e-3)
