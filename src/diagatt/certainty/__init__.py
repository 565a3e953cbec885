"""Certainty about a fit: coefficients with standard errors, rows with their posterior, contests."""

from diagatt.certainty.discoveries import Discoveries
from diagatt.certainty.rows import Certainty, NoRowOfInterestWarning, NotAPosteriorWarning
from diagatt.certainty.summary import ContestReport, Summary
from diagatt.solvers.existence import Existence

__all__ = [
    "Certainty",
    "ContestReport",
    "Discoveries",
    "Existence",
    "NoRowOfInterestWarning",
    "NotAPosteriorWarning",
    "Summary",
]
