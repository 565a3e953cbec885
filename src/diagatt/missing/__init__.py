r"""Missing entries of rows: which there are, and what a Gaussian says about them.

A row has observed entries o and missing entries m. Under N(μ, C) with the precision K = C⁻¹,
missing entries given observed ones are Gaussian with

.. math:: \hat x_m = μ_m - K_{mm}^{-1} K_{mo} (x_o - μ_o), \qquad
          \mathrm{Cov}(x_m \mid x_o) = K_{mm}^{-1},

so that only the block of missing entries of a precision matrix needs to be inverted.
"""

from diagatt.missing.patterns import Conditional, Patterns, active_rows
from diagatt.missing.row_gaussian import (
    CompletedRows,
    RowGaussian,
    completed,
    filled_in,
    fit_row_gaussian,
)

__all__ = [
    "CompletedRows",
    "Conditional",
    "Patterns",
    "RowGaussian",
    "active_rows",
    "completed",
    "filled_in",
    "fit_row_gaussian",
]
