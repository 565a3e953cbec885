"""Write a study's comparison into a folder: Markdown, CSV, HTML, and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diagatt.files import write_atomically
from diagatt.plots.canvas import figure_bytes
from diagatt.studies.catalogue import STUDIES, Study
from diagatt.studies.comparison import Cell, compare, matching_share
from diagatt.studies.explanations import EXPLANATIONS
from diagatt.studies.figures import draw_bars
from diagatt.studies.methods import PAPER_METHODS
from diagatt.studies.store import ResultStore
from diagatt.studies.tables import csv_table, html_table, markdown_table, provenance
from diagatt.studies.text_report import draw_uci, split_table, uci_tables

__all__ = ["write_index", "write_report"]


def write_report(study: Study, store: ResultStore, folder: Path, scale: float = 1.0) -> list[Path]:
    """Write ``<study>.md``, ``.csv`` and ``.html``, for figures also ``.png`` and ``.svg``."""
    lines = _current(study, store.lines(), scale)
    cells = compare(study, lines, scale)
    more = {"uci": lambda: uci_tables(study, lines), "keywords": lambda: split_table(lines)}
    extra = more[study.name]() if study.name in more else ""
    texts = {
        "md": markdown_table(study, cells, lines, EXPLANATIONS) + (extra and f"\n{extra}\n"),
        "csv": csv_table(cells),
        "html": html_table(study, cells),
    }
    files = {kind: text.encode("utf-8") for kind, text in texts.items()}
    files |= _figure(study, cells)
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in files.items():
        write_atomically(folder / f"{study.name}.{kind}", content)
    return [folder / f"{study.name}.{kind}" for kind in files]


def write_index(store: ResultStore, folder: Path) -> Path:
    """Write ``README.md``: every study with its counts and a link to its table."""
    lines = store.lines()
    rows = [
        "| study | cells run | match, of the paper's methods | ours better | table |",
        "|---|---|---|---|---|",
    ]
    counted, judged = [], []
    for study in STUDIES.values():
        own = _current(study, lines)
        counted += own
        cells = compare(study, own)
        judged += [c for c in cells if c.method in PAPER_METHODS and c.paper is not None]
        share = matching_share(cells)
        ours = [c for c in cells if c.method == "diagatt" and c.paper is not None]
        better = sum(c.verdict == "better" for c in ours)
        rows.append(
            f"| {study.title} | {sum(c.reps > 0 for c in cells)} of {len(cells)} "
            f"| {'–' if share != share else f'{100 * share:.0f} %'} "
            f"| {f'{better} of {len(ours)}' if ours else '–'} "
            f"| [{study.name}]({study.name}.md) |"
        )
    matching = sum(c.verdict == "matches" for c in judged)
    total = (
        f"Of the paper's own methods {len(judged)} cells are published; "
        f"{sum(c.reps > 0 for c in judged)} are run, and {matching} match "
        f"({100 * matching / len(judged):.1f} %)."
    )
    text = "\n".join(["# What was run", "", *rows, "", total, "", provenance(counted)]) + "\n"
    path = folder / "README.md"
    write_atomically(path, text.encode("utf-8"))
    return path


def _current(study: Study, lines: list[dict[str, Any]], scale: float = 1.0) -> list[dict[str, Any]]:
    """Results of the study as it is now; those of other parameters or versions do not count."""
    reps = 1 + max((line["replication"] for line in lines), default=0)
    keys = {task.key for task in study.tasks(reps, scale=scale)}
    return [line for line in lines if line["key"] in keys]


def _figure(study: Study, cells: list[Cell]) -> dict[str, bytes]:
    """The study's figure as PNG and SVG."""
    if study.name == "overlap":
        from diagatt.theory.overlap_figure import draw_overlap
        from diagatt.theory.overlap_paths import run_study

        figure = draw_overlap(run_study())
    elif not any(cell.reps for cell in cells):
        return {}
    elif study.name == "uci":
        figure = draw_uci(study, cells)
    elif study.name.startswith("figure"):
        figure = draw_bars(study, cells)
    else:
        return {}
    return {kind: figure_bytes(figure, kind, dpi=150) for kind in ("png", "svg")}
