"""A study's comparison with the paper in a folder: Markdown, CSV, HTML, and figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from diagatt.files import write_atomically
from diagatt.plots.canvas import figure_bytes
from diagatt.studies import notes, text_scenarios
from diagatt.studies.catalogue import STUDIES, Study
from diagatt.studies.comparison import RULES, STANDS_FOR, Cell, compare, explanations
from diagatt.studies.methods import PAPER_METHODS
from diagatt.studies.overlap import draw_overlap, run_study
from diagatt.studies.published import PAPER_REPS
from diagatt.studies.results import ResultStore
from diagatt.tables import csv_table, html_table, markdown_table

CLASSES = {"1": "positive", "0": "negative"}
_HEAD = (
    *("metric", "scenario", "method", "ours (SD)", "reps", "paper (SD)", "difference (SE)"),
    *("in SDs", "oracle", *RULES),
)
_FIELDS = (
    *("metric", "scenario", "method", "mean", "sd", "reps", "paper", "paper_sd"),
    *("difference", "error", "sds", "oracle", "is_within_sds", "verdict"),
)
_DEFAULT = "diagatt"  # the method whose lead over the others is listed
_DIGITS = {"rmse": 3, "crlr": 2, "accuracy": 2}
_COLOURS = ("#4c78a8", "#e4894c")  # distinguishable for the colour-blind


def write_report(study: Study, store: ResultStore, folder: Path, scale: float = 1.0) -> list[Path]:
    """Write ``<study>.md``, ``.csv`` and ``.html``, for figures also ``.png`` and ``.svg``."""
    lines = _current(study, store.lines(), scale)
    cells = compare(study, lines, scale)
    texts = {
        "md": markdown_page(study, cells, lines, explanations()),
        "csv": cells_csv(cells),
        "html": cells_html(study, cells),
    }
    contents = {kind: text.encode("utf-8") for kind, text in texts.items()}
    figure = _figure(study, cells)
    if figure is not None:
        contents |= {kind: figure_bytes(figure, kind, dpi=150) for kind in ("png", "svg")}
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in contents.items():
        write_atomically(folder / f"{study.name}.{kind}", content)
    return [folder / f"{study.name}.{kind}" for kind in contents]


def write_index(store: ResultStore, folder: Path) -> Path:
    """Write ``README.md``: every study with its counts and a link to its table."""
    lines = store.lines()
    rows, counted, judged = [], [], []
    for study in STUDIES.values():
        own = _current(study, lines)
        counted += own
        cells = compare(study, own)
        judged += [c for c in cells if c.method in PAPER_METHODS and c.paper is not None]
        ours = [c for c in cells if c.method == "diagatt" and c.paper is not None]
        better = sum(c.verdict == "better" for c in ours)
        rows.append(
            [
                study.title,
                f"{sum(c.reps > 0 for c in cells)} of {len(cells)}",
                notes.replications([c for c in cells if c.method in PAPER_METHODS] or cells),
                *(notes.share(cells, rule) for rule in RULES),
                f"{better} of {len(ours)}" if ours else "–",
                f"[{study.name}]({study.name}.md)",
            ]
        )
    head = ["study", "cells run", "replications", *RULES, "ours better", "table"]
    total = (
        f"Of the paper's own methods {len(judged)} cells are published, "
        f"{sum(c.paper_sd is not None for c in judged)} of them with an SD; "
        f"{sum(c.reps > 0 for c in judged)} are run. Within 3 of the paper's SDs lie "
        f"{notes.share(judged, RULES[0])}; within 3 SDs or within 10 % of the paper's mean lie "
        f"{notes.share(judged, RULES[1])}. The paper has {PAPER_REPS} replications of each cell "
        "of Tables 1, 2 and S2 to S4, and most of ours have fewer: the tables give every "
        "difference with its standard error, and say why cells are more than 3 SDs off."
    )
    parts = ["# What was run", markdown_table(head, rows), total, notes.provenance(counted)]
    path = folder / "README.md"
    write_atomically(path, ("\n\n".join(parts) + "\n").encode("utf-8"))
    return path


def _current(study: Study, lines: notes.Lines, scale: float = 1.0) -> list[dict[str, Any]]:
    """Return the results of the present study, without results of other settings or revisions."""
    reps = 1 + max((line["replication"] for line in lines), default=0)
    keys = {task.key for task in study.tasks(reps, scale=scale)}
    return [line for line in lines if line["key"] in keys]


# ------------------------------------------------------------------------------ the tables


def markdown_page(
    study: Study, cells: Sequence[Cell], lines: notes.Lines, reasons: Mapping[tuple[str, ...], str]
) -> str:
    """Return the table with title, summary, explanations, provenance, and tables of texts."""
    body = markdown_table(_HEAD, map(_texts, cells))
    parts = [
        f"# {study.title}",
        notes.summary(cells),
        body,
        notes.reasons_of_misses(cells, reasons),
        notes.provenance(lines),
    ]
    if study.name == "uci":
        parts += [paired_table(study, lines), word_table(study, lines)]
    elif study.name == "keywords":
        parts.append(_split_table(lines))
    return "\n\n".join(filter(None, parts)) + "\n"


def cells_csv(cells: Sequence[Cell]) -> str:
    """Return all cells with full precision."""
    return csv_table(_FIELDS, ([getattr(cell, name) for name in _FIELDS] for cell in cells))


def cells_html(study: Study, cells: Sequence[Cell]) -> str:
    """Return the table in HTML; verdicts are classes for a style sheet."""
    verdicts = [cell.verdict.replace(" ", "-") for cell in cells]
    return html_table(study.title, _HEAD, map(_texts, cells), classes=verdicts)


def _texts(cell: Cell) -> tuple[str, ...]:
    digits = _DIGITS.get(cell.metric, 4)

    def number(value: float | None, sd: float | None = None) -> str:
        spread = "" if value is None or sd is None else f" ({sd:.{digits}f})"
        return "–" if value is None else f"{value:.{digits}f}{spread}"

    apart = number(cell.difference, cell.error)
    apart = apart if cell.difference is None or cell.difference < 0 else f"+{apart}"
    numbers = (number(cell.mean, cell.sd), str(cell.reps), number(cell.paper, cell.paper_sd))
    place = (cell.metric, cell.scenario, cell.method)
    in_sds = "–" if cell.sds is None else f"{cell.sds:+.1f}"
    narrow = {None: "–", True: "matches", False: "no"}[cell.is_within_sds]
    if not cell.verdict or cell.method in STANDS_FOR:  # ours is not meant to match
        narrow = ""
    return (*place, *numbers, apart, in_sds, number(cell.oracle), narrow, cell.verdict)


# ----------------------------------------------------------------- tables of the studies of texts


def paired_table(study: Study, lines: notes.Lines) -> str:
    """Return the accuracy of every method, and how far ours is ahead of it on the same splits.

    The interval is Student's t over splits. Splits share comments, so that it is somewhat too
    narrow.
    """
    found: dict[str, dict[int, float]] = {}
    for line in lines:
        found.setdefault(line["method"], {})[line["replication"]] = line["metrics"]["accuracy"]
    if _DEFAULT not in found:
        return ""
    rows = []
    for method in (m for m in study.methods if m in found):
        own = found[method]
        both = [found[_DEFAULT][k] - own[k] for k in own if k in found[_DEFAULT]]
        ahead = ["–", "–"] if method == _DEFAULT else [_interval(both), str(len(both))]
        rows.append([method, str(len(own)), f"{np.mean(list(own.values())):.2f}", *ahead])
    head = [
        "method",
        "splits",
        "accuracy, %",
        f"{_DEFAULT} ahead by, points (95 %)",
        "paired splits",
    ]
    return f"## {_DEFAULT} against the others, split by split\n\n{markdown_table(head, rows)}"


def _interval(differences: Sequence[float]) -> str:
    """Return the mean and its 95 % interval; one difference has no interval."""
    if not differences:
        return "–"
    mean, n = float(np.mean(differences)), len(differences)
    if n == 1:
        return f"{mean:+.2f}"
    half = float(student.ppf(0.975, n - 1) * np.std(differences, ddof=1) / n**0.5)
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"


def top_located(
    lines: Iterable[dict[str, Any]], k: int = 10
) -> dict[str, dict[str, list[tuple[str, int]]]]:
    """Return the words located most often over all replications, by method and class."""
    counts: dict[str, dict[str, Counter]] = {}
    for line in lines:
        for label, found in json.loads(line["details"]).get("words", {}).items():
            own = counts.setdefault(line["method"], {}).setdefault(label, Counter())
            own.update(dict(found))
    return {
        method: {label: counter.most_common(k) for label, counter in own.items()}
        for method, own in counts.items()
    }


def word_table(study: Study, lines: notes.Lines, k: int = 10) -> str:
    """Return Table 3: the words located most often in comments of each class."""
    top = top_located(lines, k)
    methods = [m for m in study.methods if m in top]
    rows = []
    for label, name in CLASSES.items():
        words = {m: [word for word, _ in top[m].get(label, [])] for m in methods}
        for rank in range(k):
            cells = [words[m][rank] if rank < len(words[m]) else "" for m in methods]
            rows.append([name, rank + 1, *cells])
    table = markdown_table(["class", "rank", *methods], rows)
    return f"## Words located most often\n\n{table}" if methods else ""


def _split_table(lines: notes.Lines) -> str:
    """Return mean accuracy / CRLR of every test split of the keyword comments."""
    found: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for line in lines:
        for split, rates in json.loads(line["details"]).get("splits", {}).items():
            own = found.setdefault((line["scenario"], line["method"]), {})
            own.setdefault(split, []).append((rates["accuracy"], rates["crlr"]))
    splits = sorted({split for own in found.values() for split in own})
    rows = []
    for (scenario, method), own in sorted(found.items()):
        means = [[sum(v) / len(v) for v in zip(*own[s], strict=True)] for s in splits if s in own]
        rows.append([scenario, method, *(f"{a:.2f} / {c:.2f}" for a, c in means)])
    table = markdown_table(["scenario", "method", *splits], rows)
    return f"## Accuracy / CRLR, %, split by split\n\n{table}" if found else ""


# ------------------------------------------------------------------------------ the figures


def _figure(study: Study, cells: Sequence[Cell]) -> Figure | None:
    """Draw the study's figure, if it has one."""
    if study.name == "overlap":
        return draw_overlap(run_study())
    if not any(cell.reps for cell in cells):
        return None
    if study.name == "uci":
        return _draw_uci(study, cells)
    return draw_bars(study, cells) if study.name.startswith("figure") else None


def draw_bars(study: Study, cells: Sequence[Cell]) -> Figure:
    """Draw Figures 1 and S2: one panel per scenario, two metrics of every method, mean ± SD.

    The study's first metric goes to the left axis, the second to the right.
    """
    panels = len(study.scenarios)
    columns = min(2, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(6.2 * columns, 3.4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, scenario in zip(axes, study.scenarios, strict=False):
        twin = ax.twinx()
        for side, (metric, axis) in enumerate(zip(study.metrics, (ax, twin), strict=True)):
            found = {
                c.method: c for c in cells if (c.scenario, c.metric) == (scenario.name, metric)
            }
            shown = [m for m in study.methods if m in found and found[m].mean is not None]
            places = [study.methods.index(m) + (side - 0.5) * 0.38 for m in shown]
            heights = [found[m].mean for m in shown]
            spreads = [nan if (sd := found[m].sd) is None else sd for m in shown]  # nan: no bar
            axis.bar(places, heights, 0.36, yerr=spreads, capsize=2, color=_COLOURS[side])
            axis.set_ylabel(metric.upper() if metric == "crlr" else metric, color=_COLOURS[side])
            axis.set_ylim(0, 100 if metric != "rmse" else None)
            axis.spines["top"].set_visible(False)
        ax.set_xticks(range(len(study.methods)), study.methods, rotation=40, ha="right")
        ax.set_title(scenario.name, fontsize=10)
    for ax in axes[panels:]:
        ax.set_visible(False)
    return figure


def _draw_uci(study: Study, cells: Sequence[Cell]) -> Figure:
    """Draw Figure 2: (a) how many words the comments have, (b) accuracy of the methods."""
    lengths = text_scenarios.uci_comments()[0].rows.lengths
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(lengths, bins=range(int(lengths.max()) + 2), color=_COLOURS[0])
    left.set(xlabel="words per comment", ylabel="comments", title="(a)")
    tail = left.inset_axes((0.52, 0.42, 0.45, 0.5))
    long = lengths[lengths > 40]
    tail.hist(long, bins=range(40, int(lengths.max()) + 2), color=_COLOURS[0])
    tail.set_title("more than 40 words", fontsize=8)
    run = {c.method: c for c in cells if c.metric == "accuracy" and c.mean is not None}
    shown = [m for m in study.methods if m in run]
    means, spreads = [run[m].mean for m in shown], [run[m].sd or 0.0 for m in shown]
    right.bar(range(len(shown)), means, yerr=spreads, capsize=3, color=_COLOURS[0])
    right.set_xticks(range(len(shown)), shown, rotation=40, ha="right")
    right.set(ylabel="accuracy, %", title="(b)", ylim=(40, 100))
    for ax in (left, tail, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure
