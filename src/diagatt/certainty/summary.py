"""Tables of a fit: estimates with intervals, tests and criteria, and the contest of solvers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
from scipy.stats import norm

from diagatt.tables import html_table, latex_table

SHOWN_LINES = 40  # of a table in a notebook
COLUMNS = ("head", "feature", "estimate", "se", "low", "high", "p_value")
# Errors between which numbers are written with the same decimals, not by powers of ten.
LEAST_SE, MOST_SE = 1e-4, 1e5
LABELS = 30  # columns for head and feature, of 79
COLUMN = 10  # those of a number
CRITERIA = ("heads", "log-likelihood", "parameters", "AIC", "BIC")
_SCORES = {"auc": "AUC", "accuracy": "accuracy", "r2": "R²", "concordance": "concordance"}
# How many contestants are printed; those with weight are always among them.
_PRINTED = 10


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
            found.append(f"{label:<{LABELS}}{_line(numbers, (*[COLUMN] * 4, 9))}")
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
        """Return the coefficients as a table in LaTeX (booktabs); facts and criteria are notes."""
        said = [*self.facts.items()]
        for line in self._criteria():
            said += zip(CRITERIA, line, strict=True)
        notes = " ".join(f"{name[0].upper()}{name[1:]}: {value}." for name, value in said)
        caption = f"Coefficients of {self.title} with {100 * self.level:g} % intervals."
        return latex_table(caption, self._head(), self._coefficients(), notes)

    def _head(self) -> tuple[str, ...]:
        percent = f"{100 * self.level:g} %"
        return ("head", "feature", "estimate", "s.e.", f"{percent} low", f"{percent} high", "P>|z|")

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
                *rounded(*(c[name] for name in COLUMNS[2:6])),
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
    """Return a number with four digits, or with three if it would fill a column; NaN is a dash.

    Examples
    --------
    >>> cell(0.14), cell(1234.56), cell(-0.00012094)
    ('0.1400', '1235', '-1.21e-04')
    """
    if np.isnan(x):
        return "–"
    number = format(x, "#.4g").rstrip(".")
    return number if len(number) < COLUMN else format(x, ".2e")


def rounded(estimate: float, se: float, low: float, high: float) -> list[str]:
    """Return an estimate, its error and interval with the decimals that show three digits of se.

    Examples
    --------
    >>> rounded(-0.0934, 0.2639, -0.611, 0.424)
    ['-0.093', '0.264', '-0.611', '0.424']
    >>> rounded(12345.6, 310.0, 11738.0, 12953.2)
    ['12346', '310', '11738', '12953']
    """
    numbers = (estimate, se, low, high)
    if not (np.isfinite(numbers).all() and LEAST_SE < se < MOST_SE):
        return [cell(x) for x in numbers]
    decimals = max(0, 2 - math.floor(math.log10(se)))
    return [f"{x:.{decimals}f}" for x in numbers]


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
    if not se > 0:  # of a feature that the fit left out, because it is constant
        se = np.nan
    half = norm.ppf(0.5 + level / 2) * se
    p = 2 * norm.sf(abs(estimate / se))
    numbers = (estimate, se, estimate - half, estimate + half, p)
    words = {"head": head, "feature": feature}
    return {**words, **dict(zip(COLUMNS[2:], map(float, numbers), strict=True))}


class ContestReport(Sequence[dict[str, Any]]):
    """Contestants with their mean log score out of fold, best first.

    Each line is a dictionary of solver, what (rows, ridges, features), log_score, se (standard
    error of the gap to the best), AUC, accuracy, R² or concordance, weight, vote and seconds.
    Contestants that were dropped after the first folds have no scores. Printing shows the best
    contestants and all that have weight; iterating yields every line.
    """

    def __init__(self, lines: Sequence[dict[str, Any]]) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index):
        return self._lines[index]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        scores = [name for name in _SCORES if self._lines and name in self._lines[0]]
        names = (_SCORES[score] for score in scores)
        head = ["solver", "what", "log score", "± gap", *names, "weight", "seconds"]
        lines = []
        for place, line in enumerate(self._judged()):
            if place < _PRINTED or line["weight"] > 0:
                numbers = [line["log_score"], line["se"], *(line[score] for score in scores)]
                cells = [f"{number:.4f}" for number in numbers]
                last = [f"{line['weight']:.2f}", f"{line['seconds']:.1f}"]
                lines.append([line["solver"], line["what"], *cells, *last])
        return head, lines

    def _judged(self) -> list[dict[str, Any]]:
        """Return the lines of contestants that were fitted in all folds."""
        return [line for line in self._lines if line["log_score"] is not None]

    def _rest(self, shown: int) -> str:
        """Return a sentence about the contestants that a table of so many lines leaves out."""
        judged = len(self._judged())
        worse, dropped = judged - shown, len(self) - judged
        left_out = [f"{worse} more had lower scores"] if worse else []
        left_out += [f"{dropped} were dropped after the first folds"] if dropped else []
        return "; ".join(left_out) + "." if left_out else ""

    def __str__(self) -> str:
        head, lines = self._table()
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        text = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            for cells in (head, *lines)
        ]
        return "\n".join([*text, *filter(None, [self._rest(len(lines))])])

    def _repr_html_(self) -> str:
        head, lines = self._table()
        return html_table("Contest out of fold", head, lines, len(self) - len(lines))
