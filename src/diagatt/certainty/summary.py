"""What a statistician asks of a fit: estimates with intervals, tests, likelihood, criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
from scipy.stats import norm

from diagatt.tables import html_table, latex_table

SHOWN_LINES = 40  # of a table in a notebook
COLUMNS = ("head", "feature", "estimate", "se", "low", "high", "p_value")
LABELS = 30  # columns for head and feature, of 79
CRITERIA = ("heads", "log-likelihood", "parameters", "AIC", "BIC")


@dataclass(frozen=True)
class Summary:
    """Coefficients, tests and criteria of a fit, ready to be printed or put into a paper.

    Attributes
    ----------
    title : str
    facts : dict
        Counts of samples and rows, family, solver, the test of whether there is any row of
        interest, the temperature of row weights, and how uneven attention is.
    coefficients : list of dict
        Head, feature, estimate, se, low, high and p_value (NaN where no standard error is known).
    criteria : list of dict
        n_heads, log_likelihood, n_parameters, aic and bic for every count of heads that was fitted.
    level : float
        Level of the intervals from low to high.
    """

    title: str
    facts: dict
    coefficients: list[dict]
    criteria: list[dict]
    level: float = 0.95

    def __str__(self) -> str:
        lines = [self.title, "=" * 79]
        for name, value in self.facts.items():
            lines += wrap(f"{name + ':':<34}{value}", 79, subsequent_indent=" " * 34) or [name]
        lines += ["-" * 79]
        for cells in [CRITERIA, *self._criteria()]:
            lines.append(_line(cells, (5, 18, 13, 18, 18)))
        lines += ["-" * 79]
        return "\n".join([*lines, *self._table(), "=" * 79])

    def _table(self) -> list[str]:
        """Return the coefficients as lines; names that are too long have a line of their own."""
        found, cells = [], [self._head(), *self._coefficients()]
        longest = max(len(feature) for _, feature, *_ in cells)
        heads = 14 if longest < 16 else 2 + max(len(name) for name, *_ in cells)
        for name, feature, *numbers in cells:
            label = f"{name:<{heads}}{feature}" if len(name) < heads else f"{name}  {feature}"
            if len(label) >= LABELS:
                found.append(label)
                label = ""
            found.append(f"{label:<{LABELS}}{_line(numbers, (10, 10, 10, 10, 9))}")
        return found

    def to_frame(self) -> Any:
        """Return the coefficients as a pandas data frame.

        Its columns are head, feature, estimate, se, low, high and p_value.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame(self.coefficients, columns=list(COLUMNS))

    def to_html(self) -> str:
        """Return facts, criteria and all coefficients as tables in HTML."""
        return self._html(len(self.coefficients))

    def to_latex(self) -> str:
        """Return the coefficients as a table in LaTeX (booktabs), with the facts as its caption."""
        facts = "; ".join(f"{name}: {value}" for name, value in self.facts.items())
        return latex_table(f"{self.title}. {facts}.", self._head(), self._coefficients())

    def _head(self) -> tuple[str, ...]:
        percent = f"{100 * self.level:g} %"
        return ("head", "feature", "estimate", "s.e.", f"{percent} low", "high", "P>|z|")

    def _criteria(self) -> list[tuple[str, ...]]:
        """Return the lines of the table of criteria.

        AIC and BIC say nothing about responses that have no more samples than parameters.
        """
        of_responses = self.facts.get("log-likelihood of") == "responses"
        most = int(self.facts["samples"]) if of_responses else np.inf

        def criterion(line: dict, name: str) -> str:
            return f"{line[name]:.2f}" if line["n_parameters"] < most else "–"

        return [
            (
                str(c["n_heads"]),
                f"{c['log_likelihood']:.2f}",
                str(c["n_parameters"]),
                criterion(c, "aic"),
                criterion(c, "bic"),
            )
            for c in self.criteria
        ]

    def _coefficients(self) -> list[tuple[str, ...]]:
        """Return the lines of the table of coefficients."""
        return [
            (
                c["head"],
                c["feature"],
                *(cell(c[name]) for name in COLUMNS[2:6]),
                _probability(c["p_value"]),
            )
            for c in self.coefficients
        ]

    def _html(self, shown: int) -> str:
        facts = html_table(self.title, [], [[name, value] for name, value in self.facts.items()])
        criteria = html_table("Criteria", CRITERIA, self._criteria())
        coefficients = html_table(
            "Coefficients",
            self._head(),
            self._coefficients()[:shown],
            left_out=len(self.coefficients) - shown,
        )
        return facts + criteria + coefficients

    def _repr_html_(self) -> str:
        """Show facts, criteria and coefficients as tables in notebooks."""
        return self._html(SHOWN_LINES)


def cell(x: Any) -> str:
    """Return a number with four digits, or a dash for NaN."""
    return "–" if np.isnan(x) else format(x, ".4g")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _probability(p: float) -> str:
    return "–" if np.isnan(p) else "<0.001" if p < 1e-3 else f"{p:.3f}"


def coefficient(
    head: str, feature: str, estimate: float, se: float, level: float = 0.95
) -> dict[str, Any]:
    """Return one line of the table with its Wald interval and test.

    Examples
    --------
    >>> line = coefficient("head 0", "x0", 2.0, 1.0)
    >>> round(line["low"], 2), round(line["p_value"], 3)
    (0.04, 0.046)
    """
    known = bool(np.isfinite(se) and se > 0)
    half = norm.ppf(0.5 + level / 2) * se if known else np.nan
    p = 2 * norm.sf(abs(estimate / se)) if known else np.nan
    numbers = (estimate, se, estimate - half, estimate + half, p)
    words = {"head": head, "feature": feature}
    return {**words, **dict(zip(COLUMNS[2:], map(float, numbers), strict=True))}
