"""Two checks of methods: whether they see test labels, and follow the assumption of bags."""

from __future__ import annotations

import numpy as np

from diagatt.bench.comparison import Comparison
from diagatt.bench.run import Plan
from diagatt.bench.sets import ASSUMPTIONS, load_set
from diagatt.studies.results import ResultStore
from diagatt.tables import markdown_table

LEAK = 0.05
LEAST_FOR_LEAKS = 200  # samples; smaller sets say too little
PERMUTATIONS = 60  # at most, per set
FOLLOWS = 0.9  # AUC from which a method is said to follow the assumption


def assumptions(plan: Plan, store: ResultStore) -> str:
    """Return how methods did in the unit tests of the multiple-instance assumption."""
    stored = Comparison.of(Plan(ASSUMPTIONS.values(), plan.methods), store)
    if not stored.found:
        return ""
    lines = []
    for method in stored.methods:
        values = {name: stored.mean(name, method, "auc") for name in ASSUMPTIONS}
        lines.append([method, *(_judged(value) for value in values.values())])
    return "\n".join(
        [
            "## Unit tests of the multiple-instance assumption: AUC",
            "",
            "The three algorithms of Raff and Holt (2310.17867). Training bags offer a shortcut "
            "that the assumption forbids, test bags turn it round: near 1 the method follows the "
            f"assumption (bold from {FOLLOWS} on), below 0.5 it takes the shortcut (in italics). "
            "That is no fault where bags of both kinds may have rows of their own; it is one where "
            "only positive bags may.",
            "",
            markdown_table(["method", *ASSUMPTIONS], lines),
            "",
            *(f"- {p.name}: {load_set(p.chosen).description}" for p in stored.plan.sets),
        ]
    )


def _judged(auc: float | None) -> str:
    if auc is None:
        return "–"
    return f"**{auc:.2f}**" if auc >= FOLLOWS else f"*{auc:.2f}*" if auc < 0.5 else f"{auc:.2f}"


def leaks(plan: Plan, store: ResultStore) -> str:
    """Return AUCs after training on permuted labels, with their standard errors."""
    places = [p for p in plan.sets if load_set(p.chosen).classifies and not p.shuffled]
    chosen = [p.chosen for p in places if len(load_set(p.chosen)) >= LEAST_FOR_LEAKS]
    permuted = Plan(chosen, plan.methods, shuffled=True, splits=PERMUTATIONS)
    stored = Comparison.of(permuted, store)
    lines, far, n, clear = [], [], 0, 0
    for name in stored.sets:
        cells = []
        for method in stored.methods:
            values = list(stored.values(name, method, "auc").values())
            if not values:
                cells.append("")
                continue
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            cells.append(f"{np.mean(values):.2f} ± {error:.2f} ({len(values)})")
            n += 1
            clear += int(np.mean(values) - 0.5 > max(LEAK, 2 * error))
            if abs(np.mean(values) - 0.5) > LEAK:
                far.append(f"{method} on {name.partition('~')[0]} ({cells[-1]})")
        lines.append([name, *cells])
    if not lines:
        return ""
    return "\n".join(
        [
            "## Leak test: AUC after training on permuted labels",
            "",
            "Labels are permuted within training parts and within test parts, anew for each fit; "
            "in brackets how many fits. Whoever has seen no test label is at 0.5, up to the "
            "standard error. "
            f"{n - len(far)} of {n} cells are within {LEAK}{'; not: ' if far else ''}"
            f"{', '.join(far)}. {clear} are above it by more than two standard errors.",
            "",
            markdown_table(["set", *stored.methods], lines),
        ]
    )
