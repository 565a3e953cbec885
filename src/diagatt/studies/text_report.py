"""What the studies of texts show beside their tables: Figure 2, Table 3, paired differences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from diagatt.studies.catalogue import Study
from diagatt.studies.comparison import Cell

__all__ = ["draw_uci", "paired_table", "split_table", "top_located", "uci_tables", "word_table"]

_COLOUR = "#4c78a8"
CLASSES = {"1": "positive", "0": "negative"}


def draw_uci(study: Study, cells: Sequence[Cell]) -> Figure:
    """Figure 2: (a) how many words the comments have, (b) accuracy of the methods, mean ± SD."""
    from diagatt.studies.text_scenarios import uci_comments

    lengths = uci_comments()[0].rows.lengths
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(lengths, bins=range(int(lengths.max()) + 2), color=_COLOUR)
    left.set(xlabel="words a comment", ylabel="comments", title="(a)")
    tail = left.inset_axes((0.52, 0.42, 0.45, 0.5))
    long = lengths[lengths > 40]
    tail.hist(long, bins=range(40, int(lengths.max()) + 2), color=_COLOUR)
    tail.set_title("more than 40 words", fontsize=8)
    run = {c.method: c for c in cells if c.metric == "accuracy" and c.mean is not None}
    shown = [m for m in study.methods if m in run]
    means, spreads = [run[m].mean for m in shown], [run[m].sd or 0.0 for m in shown]
    right.bar(range(len(shown)), means, yerr=spreads, capsize=3, color=_COLOUR)
    right.set_xticks(range(len(shown)), shown, rotation=40, ha="right")
    right.set(ylabel="accuracy, %", title="(b)", ylim=(40, 100))
    for ax in (left, tail, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def uci_tables(study: Study, lines: Sequence[dict[str, Any]]) -> str:
    """Paired differences and Table 3."""
    return "\n\n".join(filter(None, [paired_table(study, lines), word_table(study, lines)]))


def paired_table(study: Study, lines: Iterable[dict[str, Any]], ours: str = "diagatt") -> str:
    """Accuracy of every method, and how far ours is ahead of it on the same splits.

    The interval is Student's t over splits. Splits share comments, so that it is somewhat too
    narrow.
    """
    found: dict[str, dict[int, float]] = {}
    for line in lines:
        found.setdefault(line["method"], {})[line["replication"]] = line["metrics"]["accuracy"]
    if ours not in found:
        return ""
    head = ["method", "splits", "accuracy, %", f"{ours} ahead by, points (95 %)", "paired splits"]
    rows = [head, ["---"] * len(head)]
    for method in (m for m in study.methods if m in found):
        own = found[method]
        both = [found[ours][k] - own[k] for k in own if k in found[ours]]
        ahead = ["–", "–"] if method == ours else [_interval(both), str(len(both))]
        rows.append([method, str(len(own)), f"{np.mean(list(own.values())):.2f}", *ahead])
    return _markdown(f"{ours} against the others, split by split", rows)


def _interval(differences: Sequence[float]) -> str:
    """Mean and its 95 % interval; the mean alone of one difference."""
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
    """Words located most often over all replications, by method and class."""
    counts: dict[str, dict[str, Counter]] = {}
    for line in lines:
        for label, found in json.loads(line["details"]).get("words", {}).items():
            own = counts.setdefault(line["method"], {}).setdefault(label, Counter())
            own.update(dict(found))
    return {
        method: {label: counter.most_common(k) for label, counter in own.items()}
        for method, own in counts.items()
    }


def word_table(study: Study, lines: Iterable[dict[str, Any]], k: int = 10) -> str:
    """Table 3: the words located most often in comments of each class, over all replications."""
    top = top_located(lines, k)
    methods = [m for m in study.methods if m in top]
    rows = [["class", "rank", *methods], ["---"] * (2 + len(methods))]
    for label, name in CLASSES.items():
        words = {m: [word for word, _ in top[m].get(label, [])] for m in methods}
        for rank in range(k):
            cells = [words[m][rank] if rank < len(words[m]) else "" for m in methods]
            rows.append([name, str(rank + 1), *cells])
    return _markdown("Words located most often", rows) if methods else ""


def split_table(lines: Iterable[dict[str, Any]]) -> str:
    """Accuracy / CRLR of every test split of the keyword comments, means over replications."""
    found: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for line in lines:
        for split, rates in json.loads(line["details"]).get("splits", {}).items():
            own = found.setdefault((line["scenario"], line["method"]), {})
            own.setdefault(split, []).append((rates["accuracy"], rates["crlr"]))
    splits = sorted({split for own in found.values() for split in own})
    rows = [["scenario", "method", *splits], ["---"] * (2 + len(splits))]
    for (scenario, method), own in sorted(found.items()):
        means = [[sum(v) / len(v) for v in zip(*own[s], strict=True)] for s in splits if s in own]
        rows.append([scenario, method, *(f"{a:.2f} / {c:.2f}" for a, c in means)])
    return _markdown("Accuracy / CRLR, %, split by split", rows) if found else ""


def _markdown(title: str, rows: Sequence[Sequence[str]]) -> str:
    return f"## {title}\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows)
