"""A comparison as Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from diagatt.studies.catalogue import Study
from diagatt.studies.comparison import Cell, matching_share
from diagatt.studies.methods import PAPER_METHODS

__all__ = ["csv_table", "html_table", "markdown_table", "provenance"]

HEAD = ("metric", "scenario", "method", "ours (SD)", "reps", "paper (SD)", "difference", "oracle")
_DIGITS = {"rmse": 3, "crlr": 2, "accuracy": 2}


def markdown_table(
    study: Study,
    cells: Sequence[Cell],
    lines: Iterable[dict[str, Any]],
    explanations: Mapping[tuple[str, ...], str],
) -> str:
    """The table with title, summary, explanations and where it was run."""
    head = [*HEAD, "verdict"]
    rows = [head, ["---"] * len(head), *([*_texts(c), c.verdict] for c in cells)]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    parts = [f"# {study.title}", _summary(cells), body, *_notes(cells, explanations)]
    return "\n\n".join([*parts, provenance(lines)]) + "\n"


def csv_table(cells: Sequence[Cell]) -> str:
    """All cells with full precision."""
    names = ("metric", "scenario", "method", "mean", "sd", "reps", "paper", "paper_sd")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, "difference", "oracle", "verdict"])
    for cell in cells:
        values = [getattr(cell, name) for name in (*names, "difference", "oracle", "verdict")]
        writer.writerow(["" if v is None else v for v in values])
    return out.getvalue()


def html_table(study: Study, cells: Sequence[Cell]) -> str:
    """A plain HTML table; verdicts are classes for a style sheet."""
    head = "".join(f"<th>{escape(name)}</th>" for name in (*HEAD, "verdict"))
    rows = "\n".join(
        f'<tr class="{escape(c.verdict.replace(" ", "-"))}">'
        + "".join(f"<td>{escape(text)}</td>" for text in (*_texts(c), c.verdict))
        + "</tr>"
        for c in cells
    )
    caption = f"<caption>{escape(study.title)}</caption>"
    return f"<table>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n"


def provenance(lines: Iterable[dict[str, Any]]) -> str:
    """When, with how many replications and on what the results were computed."""
    found = list(lines)
    if not found:
        return "Nothing was run yet."
    dates = sorted({line["date"] for line in found})
    machines = sorted({line["machine"] for line in found})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    texts = [", ".join(f"{k} {v}" for k, v in json.loads(m).items()) for m in machines]
    return f"Run {when}, {len(found)} tasks, on: " + "; ".join(texts) + "."


def _texts(cell: Cell) -> tuple[str, ...]:
    digits = _DIGITS.get(cell.metric, 4)

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    def with_sd(mean: float | None, sd: float | None) -> str:
        return number(mean) if mean is None or sd is None else f"{number(mean)} ({number(sd)})"

    apart = "–" if cell.difference is None else f"{cell.difference:+.1f} SD"
    ours, paper = with_sd(cell.mean, cell.sd), with_sd(cell.paper, cell.paper_sd)
    place = (cell.metric, cell.scenario, cell.method)
    return (*place, ours, str(cell.reps), paper, apart, number(cell.oracle))


def _summary(cells: Sequence[Cell]) -> str:
    judged = Counter(cell.verdict for cell in cells if cell.verdict)
    if not judged:
        return (
            "The paper prints no numbers here, or the sample size is not the paper's: no verdicts."
        )
    counts = ", ".join(f"{judged[v]} {v}" for v in ("matches", "better", "worse", "not run"))
    share = matching_share(cells)
    matched = "" if share != share else f" Of the paper's own methods {100 * share:.0f} % match."
    return f"{counts}.{matched}"


def _notes(cells: Sequence[Cell], explanations: Mapping[tuple[str, ...], str]) -> list[str]:
    """A line for every cell of the paper's methods that does not match."""
    said = []
    for cell in cells:
        if cell.method in PAPER_METHODS and cell.verdict in ("better", "worse"):
            general = explanations.get((cell.method, cell.metric), "not explained")
            text = explanations.get((cell.method, cell.metric, cell.verdict), general)
            said.append(f"- {cell.scenario}, {cell.method}, {cell.metric}, {cell.verdict}: {text}.")
    return ["\n".join(["Cells that do not match:", "", *said])] if said else []
