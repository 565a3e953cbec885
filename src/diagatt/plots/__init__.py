"""Figures of what a model saw: each function draws on `ax` and returns it; none shows or saves.

>>> import numpy as np
>>> from diagatt import plots
>>> ax = plots.attention(np.array([[0.1], [0.9]]))
>>> ax.get_xlabel()
'row'
"""

from diagatt.arguments import check_arguments
from diagatt.plots.attention import attention, heads, scores, top_rows
from diagatt.plots.classes import confusion, roc
from diagatt.plots.fit import (
    calibration,
    coefficients,
    contest,
    history,
    observed_predicted,
    row_reliability,
)
from diagatt.plots.heat_maps import slide
from diagatt.plots.patches import patches
from diagatt.plots.survival import baseline_hazard, hazard_ratios, survival_by_risk
from diagatt.plots.words import words

__all__ = [
    "attention",
    "baseline_hazard",
    "calibration",
    "coefficients",
    "confusion",
    "contest",
    "hazard_ratios",
    "heads",
    "history",
    "observed_predicted",
    "patches",
    "roc",
    "row_reliability",
    "scores",
    "slide",
    "survival_by_risk",
    "top_rows",
    "words",
]

check_arguments(globals())
