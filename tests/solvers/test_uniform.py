"""Uniform attention is the GLM of mean rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from diagatt import NoRowOfInterestWarning
from tests.models import classifier, regressor
from tests.solvers.samples import ragged


def means(X):
    return np.array([x.mean(axis=0) for x in X])


@pytest.mark.parametrize("n_heads", [1, 2])
@pytest.mark.parametrize("score_form", ["quadratic", "affine", "contextual"])
def test_it_is_ridge_regression_on_mean_rows(n_heads, score_form):
    X, y = ragged()
    model = regressor(n_heads, solver="uniform", score_form=score_form, ridge=2.0)
    with pytest.warns(NoRowOfInterestWarning):
        model.fit(X, y)
    theirs = Ridge(alpha=2.0).fit(means(X), y)
    np.testing.assert_allclose(model.predict(X), theirs.predict(means(X)), rtol=1e-9)
    np.testing.assert_allclose(model.value_, np.tile(theirs.coef_ / n_heads, (n_heads, 1)))
    assert not model.query_key_.any()
    assert model.solver_ == "uniform"


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_other_families_are_scikit_learns():
    X, y = ragged()
    exact = {"tol": 1e-10, "max_iter": 10_000}
    counts = np.round(np.exp(y / 4))
    theirs = PoissonRegressor(alpha=1 / 40, solver="newton-cholesky", **exact)
    ours = regressor(solver="uniform", family="poisson").fit(X, counts).predict(X)
    np.testing.assert_allclose(ours, theirs.fit(means(X), counts).predict(means(X)), rtol=1e-6)
    labels = np.digitize(y, [0.0, 1.5])
    ours = classifier(solver="uniform").fit(X, labels).predict_proba(X)
    theirs = LogisticRegression(C=1.0, **exact).fit(means(X), labels)
    np.testing.assert_allclose(ours, theirs.predict_proba(means(X)), atol=1e-6)
