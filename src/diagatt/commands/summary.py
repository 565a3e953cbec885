"""``diagatt summary``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from diagatt.commands import options
from diagatt.commands.messages import said


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
) -> None:
    """Print what a paper reports: coefficients with intervals, tests, criteria.

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
    found = replace(found, facts={name: said(str(fact)) for name, fact in found.facts.items()})
    if form is Form.csv:
        lines = [[line[name] for name in COLUMNS] for line in found.coefficients]
        typer.echo(csv_table(COLUMNS, lines), nl=False)
    else:
        write = {Form.text: str, Form.html: type(found).to_html, Form.latex: type(found).to_latex}
        typer.echo(write[form](found))
