"""Certainty about a fit: coefficients with standard errors, rows with their posterior, contests."""

from diagatt.certainty.contest import ContestReport
from diagatt.certainty.rows import Certainty, NoRowOfInterestWarning
from diagatt.certainty.summary import Summary

__all__ = ["Certainty", "ContestReport", "NoRowOfInterestWarning", "Summary"]
