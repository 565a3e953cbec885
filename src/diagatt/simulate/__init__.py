"""The paper's data-generating processes, with the true parameters and the exact Bayes oracle.

>>> from diagatt import simulate
>>> train = simulate.regression(100, p=10, d=5, seed=1)
>>> test = train.draw(25, seed=2)  # new samples from the same population
>>> test.oracle().rows.shape
(25, 1)
"""

from diagatt.arguments import check_arguments
from diagatt.simulate.oracle import Oracle
from diagatt.simulate.paper import PAPER_SETTINGS, PaperSetting, paper_setting, paper_settings
from diagatt.simulate.parameters import (
    ClassificationParameters,
    Parameters,
    RegressionParameters,
    SurvivalParameters,
    ar1,
)
from diagatt.simulate.processes import Simulation, classification, draw, regression, survival

__all__ = [
    "PAPER_SETTINGS",
    "ClassificationParameters",
    "Oracle",
    "PaperSetting",
    "Parameters",
    "RegressionParameters",
    "Simulation",
    "SurvivalParameters",
    "ar1",
    "classification",
    "draw",
    "paper_setting",
    "paper_settings",
    "regression",
    "survival",
]

check_arguments(globals())
