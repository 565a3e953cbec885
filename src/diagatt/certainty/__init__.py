"""Certainty about a fit: coefficients with standard errors, and rows with their posterior."""

from diagatt.certainty.rows import Certainty, NoRowOfInterestWarning
from diagatt.certainty.summary import Summary

__all__ = ["Certainty", "NoRowOfInterestWarning", "Summary"]
