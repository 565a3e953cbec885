"""Individualized sparse regression with diagonalized attention."""

from diagatt import simulate
from diagatt.attention import DiagonalAttention
from diagatt.estimators import (
    DiagAttClassifier,
    DiagAttRegressor,
    GatedAttentionClassifier,
    GatedAttentionRegressor,
    GroupLassoClassifier,
    GroupLassoRegressor,
    MDSPClassifier,
    MDSPRegressor,
    NoRowOfInterestWarning,
    PooledClassifier,
    PooledRegressor,
    StdAttClassifier,
    StdAttRegressor,
    TwoStepClassifier,
    TwoStepRegressor,
)
from diagatt.modelfile import ModelFileError
from diagatt.ragged import RaggedRows

__version__ = "0.1.0"
__all__ = [
    "DiagAttClassifier",
    "DiagAttRegressor",
    "DiagonalAttention",
    "GatedAttentionClassifier",
    "GatedAttentionRegressor",
    "GroupLassoClassifier",
    "GroupLassoRegressor",
    "MDSPClassifier",
    "MDSPRegressor",
    "ModelFileError",
    "NoRowOfInterestWarning",
    "PooledClassifier",
    "PooledRegressor",
    "RaggedRows",
    "StdAttClassifier",
    "StdAttRegressor",
    "TwoStepClassifier",
    "TwoStepRegressor",
    "simulate",
]
