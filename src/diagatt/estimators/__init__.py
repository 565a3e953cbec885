"""Estimators with scikit-learn's face."""

from diagatt.estimators.blended import BlendedClassifier, BlendedRegressor
from diagatt.estimators.diagonal import DiagAttClassifier, DiagAttRegressor
from diagatt.estimators.gated import GatedAttentionClassifier, GatedAttentionRegressor
from diagatt.estimators.pooled import PooledClassifier, PooledRegressor

__all__ = [
    "BlendedClassifier",
    "BlendedRegressor",
    "DiagAttClassifier",
    "DiagAttRegressor",
    "GatedAttentionClassifier",
    "GatedAttentionRegressor",
    "PooledClassifier",
    "PooledRegressor",
]
