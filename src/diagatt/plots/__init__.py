"""Figures of what a model saw: each takes `ax`, draws, and returns it; none shows or saves.

>>> import numpy as np
>>> from diagatt import plots
>>> ax = plots.attention(np.array([[0.1], [0.9]]))
>>> ax.get_xlabel()
'row'
"""

from diagatt.plots.attention import attention, top_rows
from diagatt.plots.coefficients import coefficients
from diagatt.plots.heads import heads
from diagatt.plots.history import history
from diagatt.plots.patches import patches
from diagatt.plots.responses import calibration, observed_predicted
from diagatt.plots.scores import scores
from diagatt.plots.words import words

__all__ = [
    "attention",
    "calibration",
    "coefficients",
    "heads",
    "history",
    "observed_predicted",
    "patches",
    "scores",
    "top_rows",
    "words",
]
