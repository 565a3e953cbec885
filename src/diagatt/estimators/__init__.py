"""Estimators with the interface of scikit-learn.

A fit of `DiagAttRegressor` reads from top to bottom in `RowsEstimator._fit` (``base.py``): check
the parameters, read the data as a problem, solve it, keep the result. ``diagonal_problem.py`` adds
to the second step what diagonalized attention needs, and ``diagonal_base.py`` has the last two. A
prediction starts in ``diagonal.py`` and is computed in ``diagonal_reading.py``.
"""

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
