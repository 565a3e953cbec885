"""Estimators with the interface of scikit-learn.

A fit of `DiagAttRegressor` reads from top to bottom in ``RowsEstimator._fit``: check the
parameters, read the data as a problem, solve it, keep the result. The class is a chain, each link
of which adds one thing to those below it:

=========================  ================================================
``diagonal.py``            prediction for regression and classification
``outcomes.py``            one or several columns of y (``response.py``: y itself)
``diagonal_base.py``       parameters; solving a problem and keeping the result
``diagonal_problem.py``    the problem: samples in memory or on disk, encoder, start
``certain_rows.py``        how certain single rows are
``calibrated.py``          tests and intervals by predictions out of fold
``diagonal_reading.py``    attention, rows of interest, summary
``fitted_diagonal.py``     the fit as attributes, as a module and in a file
``incomplete.py``          missing entries
``base.py``                what all estimators share, competitors included
=========================  ================================================
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
