"""Individualized sparse regression with diagonalized attention."""

from diagatt import simulate
from diagatt.attention import DiagonalAttention
from diagatt.estimators import DiagAttClassifier, DiagAttRegressor, NoRowOfInterestWarning
from diagatt.modelfile import ModelFileError
from diagatt.ragged import RaggedRows

__version__ = "0.1.0"
__all__ = [
    "DiagAttClassifier",
    "DiagAttRegressor",
    "DiagonalAttention",
    "ModelFileError",
    "NoRowOfInterestWarning",
    "RaggedRows",
    "simulate",
]
