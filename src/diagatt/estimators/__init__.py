"""Estimators with the interface of scikit-learn."""

from diagatt.estimators.blended import BlendedClassifier, BlendedRegressor
from diagatt.estimators.diagonal import DiagAttClassifier, DiagAttRegressor
from diagatt.estimators.gated import (
    GatedAttentionClassifier,
    GatedAttentionRegressor,
    GatedAttentionSurvival,
)
from diagatt.estimators.pooled import PooledClassifier, PooledRegressor, PooledSurvival
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
