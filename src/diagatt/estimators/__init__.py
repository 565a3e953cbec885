"""Estimators with scikit-learn's face."""

from diagatt.estimators.blended import BlendedClassifier, BlendedRegressor
from diagatt.estimators.cox import GatedAttentionSurvival, PooledSurvival
from diagatt.estimators.diagonal import DiagAttClassifier, DiagAttRegressor
from diagatt.estimators.gated import GatedAttentionClassifier, GatedAttentionRegressor
from diagatt.estimators.pooled import PooledClassifier, PooledRegressor
from diagatt.estimators.survival import DiagAttSurvival

__all__ = [
    "BlendedClassifier",
    "BlendedRegressor",
    "DiagAttClassifier",
    "DiagAttRegressor",
    "DiagAttSurvival",
    "GatedAttentionClassifier",
    "GatedAttentionRegressor",
    "GatedAttentionSurvival",
    "PooledClassifier",
    "PooledRegressor",
    "PooledSurvival",
]
