"""Ragged samples in the tools of scikit-learn: splits, pipelines and grid searches."""

import numpy as np
import pytest
from hypothesis import settings
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline

from diagatt import RaggedRows

quick = settings(max_examples=25)


class MeanRow(TransformerMixin, BaseEstimator):
    """Scale all rows: RaggedRows in, RaggedRows out."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y=None):
        assert isinstance(X, RaggedRows)
        self.seen_ = len(X)
        return self

    def transform(self, X):
        return X.with_values(self.scale * X.values)


class SumOfRows(RegressorMixin, BaseEstimator):
    """Predict the sum of all entries, times a factor: exact for factor 1."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        assert isinstance(X, RaggedRows)
        assert len(X) == len(y)
        self.fitted_ = True
        return self

    def predict(self, X):
        return self.factor * np.add.reduceat(X.values.sum(axis=1), X.offsets[:-1])


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(p, 3)).astype(np.float32) for p in rng.integers(1, 6, size=24)]
    return RaggedRows.from_samples(samples), np.array([float(m.sum()) for m in samples])


def test_train_test_split(study):
    X, y = study
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=6, random_state=0)
    assert (len(X_train), len(X_test)) == (18, 6)
    for part, response in ((X_train, y_train), (X_test, y_test)):
        assert part.dtype == np.float32
        np.testing.assert_allclose([m.sum() for m in part], response, rtol=1e-4, atol=1e-5)


def test_cross_validation(study):
    X, y = study
    assert cross_val_score(SumOfRows(), X, y, cv=KFold(4)).min() > 0.9999
    np.testing.assert_allclose(cross_val_predict(SumOfRows(), X, y, cv=3), y, atol=1e-4)
    for train, test in StratifiedKFold(3).split(X, y > 0):
        assert len(X[train]) + len(X[test]) == len(X)


def test_grid_search_over_a_pipeline(study):
    X, y = study
    search = GridSearchCV(
        make_pipeline(MeanRow(), SumOfRows()),
        {"meanrow__scale": [0.5, 2.0], "sumofrows__factor": [0.5, 1.0]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_ == {"meanrow__scale": 2.0, "sumofrows__factor": 0.5}
    assert search.best_estimator_[0].seen_ == len(X)
