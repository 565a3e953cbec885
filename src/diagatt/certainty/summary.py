"""What a statistician asks of a fit: estimates with standard errors, likelihood, criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from diagatt.tables import html_table

SHOWN_LINES = 40  # of a table in a notebook


@dataclass(frozen=True)
class Summary:
    """Coefficients and criteria of a fit; print it.

    Attributes
    ----------
    title : str
    facts : dict
        Count of samples, family, solver, evenness of attention.
    coefficients : list of dict
        Head, feature, estimate, se, z and p (NaN where no standard error is known).
    criteria : list of dict
        n_heads, log_likelihood, n_parameters, aic and bic for every count of heads that was fitted.
    """

    title: str
    facts: dict
    coefficients: list[dict]
    criteria: list[dict]

    def __str__(self) -> str:
        lines = [self.title, "=" * 72]
        lines += [f"{name + ':':<34}{value}" for name, value in self.facts.items()]
        lines += ["-" * 72]
        for cells in [("heads", "log-likelihood", "parameters", "AIC", "BIC"), *self._criteria()]:
            lines.append(_line(cells, (5, 18, 13, 18, 18)))
        lines += ["-" * 72]
        head = ("head", "feature", "estimate", "s.e.", "z", "P>|z|")
        for name, feature, *numbers in [head, *self._coefficients()]:
            lines.append(f"{name:<9}{feature[:17]:<18}{_line(numbers, (12, 12, 12, 9))}")
        return "\n".join([*lines, "=" * 72])

    def _criteria(self) -> list[tuple[str, ...]]:
        """Return the lines of the table of criteria."""
        return [
            (
                str(c["n_heads"]),
                f"{c['log_likelihood']:.2f}",
                str(c["n_parameters"]),
                f"{c['aic']:.2f}",
                f"{c['bic']:.2f}",
            )
            for c in self.criteria
        ]

    def _coefficients(self) -> list[tuple[str, ...]]:
        """Return the lines of the table of coefficients."""
        return [
            (
                c["head"],
                c["feature"],
                *(cell(c[name]) for name in ("estimate", "se", "z")),
                _probability(c["p"]),
            )
            for c in self.coefficients
        ]

    def _repr_html_(self) -> str:
        """Show facts, criteria and coefficients as tables in notebooks."""
        facts = html_table(self.title, [], [[name, value] for name, value in self.facts.items()])
        head = ["heads", "log-likelihood", "parameters", "AIC", "BIC"]
        criteria = html_table("Criteria", head, self._criteria())
        coefficients = html_table(
            "Coefficients",
            ["head", "feature", "estimate", "s.e.", "z", "P>|z|"],
            self._coefficients()[:SHOWN_LINES],
            left_out=len(self.coefficients) - SHOWN_LINES,
        )
        return facts + criteria + coefficients


def cell(x: Any) -> str:
    """Return a number with four digits, or a dash for NaN."""
    return "–" if np.isnan(x) else format(x, ".4g")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _probability(p: float) -> str:
    return "–" if np.isnan(p) else "<0.001" if p < 1e-3 else f"{p:.3f}"


def coefficient(head: str, feature: str, estimate: float, se: float) -> dict:
    """Return one line of the table with its Wald test."""
    z = estimate / se if se > 0 else np.nan
    p = 2 * norm.sf(abs(z)) if np.isfinite(z) else np.nan
    return {"head": head, "feature": feature, "estimate": estimate, "se": se, "z": z, "p": p}
