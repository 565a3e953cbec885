"""The transcribed numbers against the paper's own LaTeX, cell by cell."""

from __future__ import annotations

import csv
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from diagatt.simulate import PAPER_SETTINGS
from diagatt.studies.published import published

PAPER = Path(__file__).resolve().parents[2].parent / "shared" / "paper"
METHODS = {
    "GroupLasso": "grouplasso",
    "MDSP": "mdsp",
    "Two-Step": "two-step",
    "1-head StdAtt": "stdatt-1",
    "$R$-head StdAtt": "stdatt-r",
    "1-head DiagAtt": "diagatt-1",
    "$R$-head DiagAtt": "diagatt-r",
}
OVERLAP_METRICS = {
    "analytic": ["cutoff"],
    "numerical": ["bracket_low", "bracket_high"],
    "shared": ["median", "q05", "q95", "satisfied", "realizations"],
    "class-specific": ["median", "q05", "q95", "satisfied", "realizations"],
}
LABELS = {
    "table1": "tab:simu-reg",
    "table2": "tab:simu-cardinality",
    "tableS1": "app:tab:tail-overlap",
    "tableS2": "supp_tab:simu-reg",
    "tableS3": "supp_tab:simu-correlation",
    "tableS4": "supp_tab:distribution_gap",
    "tableS5": "supp_tab:performance-synthetic",
}
COUNTS = {"table1": 56, "table2": 28, "tableS2": 56, "tableS3": 28, "tableS4": 56, "tableS5": 14}

# --- structure ---------------------------------------------------------------------------------


def test_counts():
    counts = Counter(cell.table for cell in published())
    assert counts == COUNTS | {"tableS1": 39}
    assert sum(COUNTS.values()) == 238  # the cells of methods, Table S1 apart


def test_no_cell_twice():
    keys = [(c.table, c.setting, c.method, c.metric) for c in published()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("table", ["table1", "table2", "tableS2", "tableS3", "tableS4"])
def test_every_setting_method_and_metric_of_a_simulation(table):
    settings = [name for name, setting in PAPER_SETTINGS.items() if setting.table == table]
    keys = {(c.setting, c.method, c.metric) for c in published(table)}
    assert keys == {
        (s, m, metric) for s in settings for m in METHODS.values() for metric in ("rmse", "crlr")
    }
    assert all(c.sd is not None and c.sd > 0 for c in published(table))


def test_every_method_and_metric_of_the_keywords():
    keys = {(c.setting, c.method, c.metric) for c in published("tableS5")}
    assert keys == {("keywords", m, k) for m in METHODS.values() for k in ("accuracy", "crlr")}
    assert all(c.sd is None for c in published("tableS5"))


def test_every_metric_of_the_overlap_table():
    keys = {(c.setting, c.method, c.metric) for c in published("tableS1")}
    assert keys == {
        (f"tableS1-s{s}", method, metric)
        for s in (3, 5, 10)
        for method, metrics in OVERLAP_METRICS.items()
        for metric in metrics
    }
    assert all(c.sd is None for c in published("tableS1"))


def test_rates_are_per_cent():
    rates = [c for c in published() if c.metric in ("crlr", "accuracy")]
    assert all(1 < c.mean < 100 for c in rates)


def test_unknown_table():
    with pytest.raises(ValueError, match="unknown table 'table9': choose one of"):
        published("table9")


# --- against the paper -------------------------------------------------------------------------


def tabular(label):
    """Cells of the tabular behind a label: one list of strings a line, LaTeX dress taken off."""
    paper = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PAPER.glob("*.txt")))
    assert paper.count(f"\\label{{{label}}}") == 1
    behind = paper.split(f"\\label{{{label}}}")[1]
    body = re.search(r"\\begin\{tabular\}\{.*?\}\n(.*?)\\end\{tabular\}", behind, re.S).group(1)
    body = re.sub(r"\\shortstack\{(.*)\}", lambda m: m[0].replace("\\\\", " "), body)
    lines = re.split(r"\\\\", re.sub(r"\\(hline|cline\{.*?\}|(top|mid|bottom)rule)", "", body))
    return [[undress(cell) for cell in line.split("&")] for line in lines if line.strip()]


def undress(cell):
    cell = re.sub(r"\\multi(row|column)\{\d+\}\{.*?\}", "", cell)
    cell = re.sub(r"\\(textbf|ul|shortstack)\b|\\[()]|\\(?=%)", "", cell)
    return cell.replace("{", "").replace("}", "").strip()


def number(cell):
    """``79.13% (0.96%)`` or ``7.294 (0.259)`` or ``85.72%``: (mean, sd, is it in per cent)."""
    match = re.fullmatch(r"([\d.]+)(%?)(?: \(([\d.]+)\2\))?", cell)
    assert match, f"no number: {cell!r}"
    return match[1], match[3] or "", match[2] == "%"


def setting_name(table, header):
    """Name of the setting of a column header, with the numbers in the header."""
    numbers = re.findall(r"\d+(?:\.\d+)?", header.split("=")[-1])
    pattern = {
        "table2": "table2-s{}",
        "tableS3": "tableS3-rho{}",
        "tableS4": "tableS4-mu{}-sigma2-{}",
    }
    return pattern.get(table, table + "-p{}-d{}").format(*numbers)


def read_blocks(table):
    """Tables 1, S2 and S4: a block of lines a metric, a setting a column."""
    (_, _, *headers), *lines = tabular(LABELS[table])
    metric = ""
    for first, method, *cells in lines:
        metric = first.lower() or metric  # named on a block's first line only
        for header, cell in zip(headers, cells, strict=True):
            mean, sd, per_cent = number(cell)
            assert per_cent == (metric == "crlr")
            yield table, setting_name(table, header), METHODS[method], metric, mean, sd


def read_pairs(table):
    """Tables 2 and S3: two metrics under each setting."""
    (_, *headers), (_, *metrics), *lines = tabular(LABELS[table])
    columns = list(zip((h for h in headers for _ in range(2)), metrics, strict=True))
    for method, *cells in lines:
        for (header, metric), cell in zip(columns, cells, strict=True):
            mean, sd, per_cent = number(cell)
            assert per_cent == (metric == "CRLR")
            yield table, setting_name(table, header), METHODS[method], metric.lower(), mean, sd


def read_keywords(table):
    (_, *metrics), *lines = tabular(LABELS[table])
    for method, *cells in lines:
        for metric, cell in zip(metrics, cells, strict=True):
            mean, sd, per_cent = number(cell)
            assert per_cent
            yield table, "keywords", METHODS[method], metric.lower(), mean, sd


def read_overlap(table):
    _, *lines = tabular(LABELS[table])
    for s, *cells in lines:
        for (method, metrics), cell in zip(OVERLAP_METRICS.items(), cells, strict=True):
            for metric, value in zip(metrics, re.findall(r"[\d.]+", cell), strict=True):
                yield table, f"tableS1-s{s}", method, metric, value, ""


READERS = {"table2": read_pairs, "tableS3": read_pairs}
READERS |= {"tableS1": read_overlap, "tableS5": read_keywords}


@pytest.mark.skipif(not PAPER.is_dir(), reason="the paper's text is not beside the repository")
@pytest.mark.parametrize("table", LABELS)
def test_every_digit_is_the_papers(table):
    text = files("diagatt.studies").joinpath("published.csv").read_text(encoding="utf-8")
    ours = [tuple(row) for row in csv.reader(text.splitlines()) if row[0] == table]
    assert ours == list(READERS.get(table, read_blocks)(table))
