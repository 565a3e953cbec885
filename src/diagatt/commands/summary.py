"""``diagatt summary``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from diagatt.commands import options
from diagatt.commands.messages import said

if TYPE_CHECKING:
    from diagatt.certainty.summary import Summary

MOST, SHOWN = 100, 40  # more coefficients than these are cut down to the largest


class Form(StrEnum):
    """How the summary is printed."""

    text = "text"
    html = "html"
    latex = "latex"
    csv = "csv"


def summary(
    model: options.Model,
    form: Annotated[Form, typer.Option("--as", help="Format of the output.")] = Form.text,
    level: Annotated[float, typer.Option(help="Level of the intervals.", metavar="LEVEL")] = 0.95,
    all: Annotated[bool, typer.Option("--all", help="Print all coefficients as text.")] = False,
) -> None:
    """Print what a paper reports: coefficients with intervals, tests, criteria.

    As text, it prints the largest coefficients if there are many; other formats hold all of them.

    Example: `diagatt summary m.safetensors --as latex`
    """
    from diagatt.certainty.summary import COLUMNS
    from diagatt.kinds.files import load_model
    from diagatt.tables import csv_table

    fitted, _ = load_model(model)
    inner = getattr(fitted, "estimator_", fitted)
    if not hasattr(inner, "summary"):
        raise ValueError(f"a {type(inner).__name__} has no summary: it estimates no coefficients.")
    found = inner.summary(level)
    facts = {name: said(str(fact)) for name, fact in found.facts.items()}
    found = replace(found, facts=facts)
    if form is Form.csv:
        lines = [[line[name] for name in COLUMNS] for line in found.coefficients]
        typer.echo(csv_table(COLUMNS, lines), nl=False)
    else:
        left_out = 0
        if form is Form.text and not all:
            found, left_out = _largest(found)
        write = {Form.text: str, Form.html: type(found).to_html, Form.latex: type(found).to_latex}
        typer.echo(write[form](found))
        if left_out:
            typer.echo(f"{left_out:,} smaller coefficients are not shown: pass --all.")


def _largest(found: Summary) -> tuple[Summary, int]:
    """Return the summary with its largest coefficients, in their order, and how many are gone."""
    lines = found.coefficients
    if len(lines) <= MOST:
        return found, 0
    largest = sorted(range(len(lines)), key=lambda k: -abs(lines[k]["estimate"]))[:SHOWN]
    kept = [line for k, line in enumerate(lines) if k in set(largest)]
    return replace(found, coefficients=kept), len(lines) - len(kept)
