"""The competitors of the paper's tables; nothing else in the library imports them."""

from diagatt.competitors.group_lasso import GroupLassoClassifier, GroupLassoRegressor
from diagatt.competitors.mdsp import MDSPClassifier, MDSPRegressor
from diagatt.competitors.standard import StdAttClassifier, StdAttRegressor
from diagatt.competitors.two_step import TwoStepClassifier, TwoStepRegressor

__all__ = [
    "GroupLassoClassifier",
    "GroupLassoRegressor",
    "MDSPClassifier",
    "MDSPRegressor",
    "StdAttClassifier",
    "StdAttRegressor",
    "TwoStepClassifier",
    "TwoStepRegressor",
]
