"""The text around a table of results: how many cells match, why others do not, what ran."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from diagatt.studies.comparison import RULES, STANDS_FOR, Cell, matching
from diagatt.studies.methods import PAPER_METHODS
from diagatt.studies.published import PAPER_REPS

Lines = Sequence[dict[str, Any]]  # of a result store


def summary(cells: Sequence[Cell]) -> str:
    """Return the counts of verdicts, and the matches of the paper's methods by both rules."""
    judged = Counter(cell.verdict for cell in cells if cell.verdict)
    if not judged:
        return (
            "The paper prints no numbers here, or the sample size is not the paper's: no verdicts."
        )
    counts = ", ".join(f"{judged[v]} {v}" for v in ("matches", "better", "worse", "not run"))
    theirs = [c for c in cells if c.method not in STANDS_FOR]
    rules = [f"{share(theirs, rule)} {rule}" for rule in RULES if matching(theirs, rule)[1]]
    if not rules:
        return f"{counts}."
    said = f"{counts}. Of the paper's own cells, those that match: {', '.join(rules)}."
    if not any(cell.paper_sd for cell in theirs):
        return f"{said} The paper prints no SDs here."
    return (
        f"{said} Replications: {replications(theirs)} here, {PAPER_REPS} in the paper.\n\n"
        "The difference is our mean less the paper's, with its standard error from both sides' "
        "replications (with one replication, the paper's SD stands in for ours), then in the "
        "paper's SDs."
    )


def share(cells: Sequence[Cell], rule: str) -> str:
    """Return the matching cells of the paper's methods as ``12 of 28 (43 %)``."""
    matched, judged = matching(cells, rule)
    return f"{matched} of {judged} ({100 * matched / judged:.0f} %)" if judged else "–"


def replications(cells: Sequence[Cell]) -> str:
    """Return the counts of replications of cells that were run, as ``1 to 3``."""
    counts = [cell.reps for cell in cells if cell.reps]
    if not counts:
        return "–"
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def reasons_of_misses(cells: Sequence[Cell], reasons: Mapping[tuple[str, ...], str]) -> str:
    """Return why cells of the paper's methods are more than 3 SDs off, or do not match.

    Cells with the same reason share a line, which lists their differences.
    """
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        missed = cell.is_within_sds is False or cell.verdict in ("better", "worse")
        if cell.method not in PAPER_METHODS or not missed:
            continue
        side = _side(cell)
        general = reasons.get((cell.method, cell.metric), "not explained")
        text = reasons.get((cell.method, cell.metric, side), general)
        apart = "" if cell.sds is None else f" {cell.sds:+.1f} SD"
        wide = "" if cell.verdict == "matches" else f", {cell.verdict}"
        place = f"{cell.scenario}{apart}{wide}"
        grouped.setdefault((cell.method, cell.metric, text), []).append(place)
    if not grouped:
        return ""
    said = [
        f"- **{method}, {metric}**: {text} ({'; '.join(places)})."
        for (method, metric, text), places in grouped.items()
    ]
    head = (
        "Cells more than 3 SDs off; those marked better or worse are also more than 10 % off:"
        if any(cell.paper_sd for cell in cells)
        else "Cells more than 10 % off:"
    )
    return "\n".join([head, "", *said])


def _side(cell: Cell) -> str:
    """Return "better" or "worse" of a cell that differs, also if it matches by the wide rule."""
    if cell.verdict in ("better", "worse"):
        return cell.verdict
    smaller = (cell.difference or 0.0) < 0
    return "better" if smaller == (cell.metric == "rmse") else "worse"


def provenance(lines: Lines) -> str:
    """Say when, with how many replications and on what the results were computed."""
    if not lines:
        return "Nothing was run yet."
    dates = sorted({line["date"] for line in lines})
    machines = sorted({line["machine"] for line in lines})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    texts = [", ".join(f"{k} {v}" for k, v in json.loads(m).items()) for m in machines]
    return f"Run {when}, {len(lines)} tasks, on: " + "; ".join(texts) + "."
