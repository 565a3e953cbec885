"""What a statistician asks of a fit: estimates with standard errors, likelihood, criteria."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from diagatt.tables import html_table


@dataclass(frozen=True)
class Certainty:
    """How sure the model is of each head's row, one line a sample, one column a head.

    Attributes
    ----------
    rows : array (n, R), int
        Rows of interest, as `locate`.
    posterior : array (n, R)
        Attention weight of that row.
    entropy : array (n, R)
        Entropy of the attention in nats; 0 is certainty, log p is ignorance.
    ambiguous : bool array (n, R)
        Whether the row has less than half of the weight.
    """

    rows: np.ndarray
    posterior: np.ndarray
    entropy: np.ndarray
    ambiguous: np.ndarray

    def _repr_html_(self) -> str:
        """Notebooks show the first samples as a table."""
        head = ["sample", "head", "row", "posterior", "entropy", "ambiguous"]
        shown = list(np.ndindex(self.rows.shape))[:_MOST]
        verdict = np.where(self.ambiguous, "yes", "no")
        lines = [
            [*at, self.rows[at], _cell(self.posterior[at]), _cell(self.entropy[at]), verdict[at]]
            for at in shown
        ]
        share = f"{100 * self.ambiguous.mean():.1f} % of {self.rows.size:,} rows are ambiguous"
        return html_table(f"Certainty: {share}", head, lines, left_out=self.rows.size - len(shown))


@dataclass(frozen=True)
class Summary:
    """Coefficients and criteria of a fit; print it.

    Attributes
    ----------
    title : str
    facts : dict
        Number of samples, solver, evenness of attention …
    coefficients : list of dict
        head, feature, estimate, se, z, p (NaN where no standard error is known).
    criteria : list of dict
        n_heads, log_likelihood, aic, bic for every number of heads that was fitted.
    """

    title: str
    facts: dict
    coefficients: list[dict]
    criteria: list[dict]

    def __str__(self) -> str:
        lines = [self.title, "=" * 72]
        lines += [f"{name + ':':<34}{value}" for name, value in self.facts.items()]
        lines += ["-" * 72, _CRITERIA_HEAD]
        for c in self.criteria:
            lines.append(
                f"{c['n_heads']:>5}{c['log_likelihood']:>18.2f}{c['n_parameters']:>13}"
                f"{c['aic']:>18.2f}{c['bic']:>18.2f}"
            )
        lines += ["-" * 72, _COEFFICIENT_HEAD]
        for c in self.coefficients:
            numbers = [c["estimate"], c["se"], c["z"]]
            cells = "".join(f"{_cell(x):>12}" for x in numbers)
            lines.append(f"{c['head']:<9}{c['feature'][:17]:<18}{cells}{_probability(c['p']):>9}")
        return "\n".join([*lines, "=" * 72])

    def _repr_html_(self) -> str:
        """Notebooks show facts, criteria and coefficients as tables."""
        facts = html_table(self.title, [], [[name, value] for name, value in self.facts.items()])
        criteria = html_table(
            "Criteria",
            ["heads", "log-likelihood", "parameters", "AIC", "BIC"],
            [
                [
                    c["n_heads"],
                    f"{c['log_likelihood']:.2f}",
                    c["n_parameters"],
                    f"{c['aic']:.2f}",
                    f"{c['bic']:.2f}",
                ]
                for c in self.criteria
            ],
        )
        coefficients = html_table(
            "Coefficients",
            ["head", "feature", "estimate", "s.e.", "z", "P>|z|"],
            [
                [
                    c["head"],
                    c["feature"],
                    *(_cell(c[name]) for name in ("estimate", "se", "z")),
                    _probability(c["p"]),
                ]
                for c in self.coefficients[:_MOST]
            ],
            left_out=len(self.coefficients) - _MOST,
        )
        return facts + criteria + coefficients


_CRITERIA_HEAD = f"{'heads':>5}{'log-likelihood':>18}{'parameters':>13}{'AIC':>18}{'BIC':>18}"
_COEFFICIENT_HEAD = f"{'head':<9}{'feature':<18}{'estimate':>12}{'s.e.':>12}{'z':>12}{'P>|z|':>9}"


_MOST = 40  # lines of a table in a notebook


def _cell(x: Any) -> str:
    return "–" if np.isnan(x) else format(x, ".4g")


def _probability(p: float) -> str:
    return "–" if np.isnan(p) else "<0.001" if p < 1e-3 else f"{p:.3f}"


def coefficient(head: str, feature: str, estimate: float, se: float) -> dict:
    """One line of the table with its Wald test."""
    z = estimate / se if se > 0 else np.nan
    p = 2 * norm.sf(abs(z)) if np.isfinite(z) else np.nan
    return {"head": head, "feature": feature, "estimate": estimate, "se": se, "z": z, "p": p}
