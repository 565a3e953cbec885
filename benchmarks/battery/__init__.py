"""Hostile input to every estimator, solver, container, method and command, with known answers.

``python -m benchmarks.battery`` runs all cases and prints how many were answered silently wrong,
ended in somebody else's error, hung, were refused in a sentence, or were right. A new estimator or
solver is covered by being registered. The test suite runs a seeded part of the cases.
"""

from benchmarks.battery.judge import VERDICTS, Case, Finding, judge

__all__ = ["VERDICTS", "Case", "Finding", "judge"]
