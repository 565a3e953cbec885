"""What the study of the UCI comments shows beside its table: Figure 2 and Table 3."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from diagatt.studies.catalogue import Study
from diagatt.studies.comparison import Cell

__all__ = ["draw_uci", "split_table", "word_table"]

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


def word_table(study: Study, lines: Iterable[dict[str, Any]], k: int = 10) -> str:
    """Table 3: the words located most often in comments of each class, over all replications."""
    counts: dict[str, dict[str, Counter]] = {}
    for line in lines:
        words = json.loads(line["details"]).get("words", {})
        for label, found in words.items():
            own = counts.setdefault(line["method"], {}).setdefault(label, Counter())
            own.update(dict(found))
    methods = [m for m in study.methods if m in counts]
    rows = [["class", "rank", *methods], ["---"] * (2 + len(methods))]
    for label, name in CLASSES.items():
        top = {m: [w for w, _ in counts[m].get(label, Counter()).most_common(k)] for m in methods}
        for rank in range(k):
            cells = [top[m][rank] if rank < len(top[m]) else "" for m in methods]
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
