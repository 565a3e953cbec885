"""Bags summed up in one line each, then scikit-learn: the strongest simple rivals."""

from typing import ClassVar

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from diagatt.validation import bag_statistics

ALL = ("mean", "min", "max", "std")


class _OnStatistics:
    """A model of scikit-learn on bag statistics."""

    statistics = ALL

    def __init__(self, task, seed):
        self.classifies = task != "regression"
        self.model = self.make(seed)

    def fit(self, X, y):
        self.model.fit(bag_statistics(X, self.statistics), y)

    def predict(self, X):
        return self.model.predict(bag_statistics(X, self.statistics))

    def predict_proba(self, X):
        return self.model.predict_proba(bag_statistics(X, self.statistics))


class Trees(_OnStatistics):
    """ExtraTrees, 300 trees, on mean, min, max and std."""

    name = "trees"
    settings: ClassVar = {"n_estimators": 300}

    def make(self, seed):
        kind = ExtraTreesClassifier if self.classifies else ExtraTreesRegressor
        return kind(**self.settings, random_state=seed)


class Boosting(_OnStatistics):
    """HistGradientBoosting, defaults, on mean, min, max and std."""

    name = "boosting"

    def make(self, seed):
        kind = HistGradientBoostingClassifier if self.classifies else HistGradientBoostingRegressor
        return kind(random_state=seed)


class Linear(_OnStatistics):
    """Logistic or ridge regression on mean, min, max and std; penalty by 5 folds."""

    name = "linear"

    def make(self, seed):
        if not self.classifies:
            return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
        model = LogisticRegressionCV(Cs=8, cv=5, scoring="neg_log_loss", max_iter=500)
        return make_pipeline(StandardScaler(), model)


class MeanLinear(Linear):
    """Logistic or ridge regression on mean rows; penalty by 5 folds."""

    name = "mean-linear"
    statistics = ("mean",)


class MaxLinear(Linear):
    """Logistic or ridge regression on maxima; penalty by 5 folds."""

    name = "max-linear"
    statistics = ("max",)
