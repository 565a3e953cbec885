"""Estimators with scikit-learn's face."""

from diagatt.estimators.diagonal import DiagAttClassifier, DiagAttRegressor

__all__ = ["DiagAttClassifier", "DiagAttRegressor"]
