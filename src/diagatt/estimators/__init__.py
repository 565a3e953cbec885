"""Estimators with scikit-learn's face."""

from diagatt.estimators.diagonal import DiagAttClassifier, DiagAttRegressor
from diagatt.estimators.diagonal_base import NoRowOfInterestWarning

__all__ = ["DiagAttClassifier", "DiagAttRegressor", "NoRowOfInterestWarning"]
