"""Estimators with scikit-learn's face."""

from diagatt.estimators.blended import BlendedClassifier, BlendedRegressor
from diagatt.estimators.diagonal import DiagAttClassifier, DiagAttRegressor
from diagatt.estimators.gated import GatedAttentionClassifier, GatedAttentionRegressor
from diagatt.estimators.group_lasso import GroupLassoClassifier, GroupLassoRegressor
from diagatt.estimators.mdsp import MDSPClassifier, MDSPRegressor
from diagatt.estimators.pooled import PooledClassifier, PooledRegressor
from diagatt.estimators.standard import StdAttClassifier, StdAttRegressor
from diagatt.estimators.two_step import TwoStepClassifier, TwoStepRegressor

__all__ = [
    "BlendedClassifier",
    "BlendedRegressor",
    "DiagAttClassifier",
    "DiagAttRegressor",
    "GatedAttentionClassifier",
    "GatedAttentionRegressor",
    "GroupLassoClassifier",
    "GroupLassoRegressor",
    "MDSPClassifier",
    "MDSPRegressor",
    "PooledClassifier",
    "PooledRegressor",
    "StdAttClassifier",
    "StdAttRegressor",
    "TwoStepClassifier",
    "TwoStepRegressor",
]
