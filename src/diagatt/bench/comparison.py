"""Comparison of stored results: means, ranks and paired differences, and two checks of methods.

The checks are whether a method uses test labels, and whether it follows the assumption of bags.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata, studentized_range

from diagatt.bench.run import Plan, failure
from diagatt.bench.sets import ASSUMPTIONS, N_FOLDS, BagSet, load_set, n_splits, split
from diagatt.metrics import calibration_error
from diagatt.studies.results import ResultStore
from diagatt.tables import markdown_table

#: The score by which a task is judged first.
MAIN = {"binary": "auc", "multiclass": "accuracy", "regression": "r2"}
#: Scores that are better if they are smaller.
COSTS = ("ece", "rmse", "mae", "fit_seconds", "predict_seconds", "peak_mb")
LEAK = 0.05
LEAST_FOR_LEAKS = 200  # samples; smaller sets leave too much to chance
PERMUTATIONS = 60  # at most, per set
BEYOND_TWO = 0.023  # share of a normal distribution above two standard deviations
FOLLOWS = 0.9  # AUC from which on a method follows the assumption


@dataclass
class Comparison:
    """Stored results of a plan.

    Attributes
    ----------
    found : dict
        Metrics by (set, method), then by split.
    reasons : dict
        Why a (set, method) has no result: not for the task, not installed, out of time.
    predictions : dict
        Predictions by (set, method), then by split.
    """

    plan: Plan
    found: dict[tuple[str, str], dict[int, dict[str, float]]] = field(default_factory=dict)
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    predictions: dict[tuple[str, str], dict[int, Any]] = field(default_factory=dict)
    machines: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, plan: Plan, store: ResultStore) -> Comparison:
        """Collect the results of the plan's tasks; results of other revisions are left out."""
        stored = {line["key"]: line for line in store.lines()}
        comparison = cls(plan, reasons=dict(plan.skipped))
        for task in plan.tasks():
            line = stored.get(task.key)
            if line is None:
                continue
            where = (task.scenario.name, task.method)
            if reason := failure(line):
                comparison.reasons[where] = reason
                continue
            comparison.found.setdefault(where, {})[task.replication] = line["metrics"]
            details = json.loads(line["details"])
            comparison.predictions.setdefault(where, {})[task.replication] = details["prediction"]
            comparison.machines.append(line["machine"])
            comparison.dates.append(line["date"])
        for where in list(comparison.found):
            if where in comparison.reasons:  # a failure on one split discards the others
                del comparison.found[where]
        return comparison

    @property
    def sets(self) -> list[str]:
        """Names of sets with results, in the order of the plan."""
        return [
            p.name for p in self.plan.sets if any((p.name, m) in self.found for m in self.methods)
        ]

    @property
    def methods(self) -> list[str]:
        """Names of methods with results."""
        having = {method for _, method in self.found}
        return [method for method in self.plan.methods if method in having]

    def task(self, name: str) -> str:
        """Return the task of a set."""
        return load_set(self._chosen(name)).task

    def _chosen(self, name: str) -> BagSet:
        """Return the set of this name."""
        return next(place.chosen for place in self.plan.sets if place.name == name)

    def values(self, name: str, method: str, score: str) -> dict[int, float]:
        """Return a score by split; empty where there is none."""
        if score == "ece":
            return self._calibration(name, method)
        by_split = self.found.get((name, method), {})
        return {k: m[score] for k, m in sorted(by_split.items()) if score in m}

    def mean(self, name: str, method: str, score: str) -> float | None:
        """Return a score's mean over splits, or None."""
        values = self.values(name, method, score)
        return float(np.mean(list(values.values()))) if values else None

    def shared(self, name: str, score: str, methods: Sequence[str]) -> dict[str, float]:
        """Return means of methods over those splits that all of them have."""
        by_method = {m: self.values(name, m, score) for m in methods}
        by_method = {m: values for m, values in by_method.items() if values}
        common = set.intersection(*(set(v) for v in by_method.values())) if by_method else set()
        if not common:
            return {}
        return {m: float(np.mean([v[k] for k in sorted(common)])) for m, v in by_method.items()}

    def hours(self) -> tuple[float, int]:
        """Return CPU hours of all splits of what was run, and of how many (set, method) that is.

        A fit's seconds are the mean over its splits; what failed is tried once and not counted.
        """
        planned = {place.name: n_splits(place.chosen) for place in self.plan.sets}
        seconds = 0.0
        for name, method in self.found:
            for part in ("fit_seconds", "predict_seconds"):
                seconds += planned[name] * (self.mean(name, method, part) or 0.0)
        return seconds / 3600, len(self.found)

    def _calibration(self, name: str, method: str) -> dict[int, float]:
        """Return the calibration error of all folds of a repeat together, by repeat."""
        chosen = self._chosen(name)
        bags = load_set(chosen)
        predictions = self.predictions.get((name, method), {})
        if not bags.classifies or (name, method) not in self.found:
            return {}
        index = np.unique(bags.y, return_inverse=True)[1]
        errors = {}
        for repeat in range(max(n_splits(chosen) // N_FOLDS, 1)):
            numbers = [k for k in predictions if k // N_FOLDS == repeat]
            if not numbers:
                continue
            y = np.concatenate([index[split(chosen, k)[1]] for k in numbers])
            p = np.concatenate([np.asarray(predictions[k]) for k in numbers])
            p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
            errors[repeat] = calibration_error(y, p)
        return errors


def tried_on_most(held: Comparison, sets: Sequence[str], methods: Sequence[str]) -> list[str]:
    """Return the methods that were tried on at least half of the sets and leave none out.

    Ranks need sets on which all have been tried; a method that has only begun would leave too few.
    One that is not run on some of the sets, for their size or because it is not installed, must
    not have the last rank there: it did not fail.
    """
    tried = {m: sum((s, m) in held.found or (s, m) in held.reasons for s in sets) for m in methods}
    left_out = {m for s, m in held.plan.skipped if s in sets}
    return [m for m in methods if 2 * tried[m] >= len(sets) and m not in left_out]


def mean_ranks(
    comparison: Comparison, sets: Sequence[str], methods: Sequence[str], score: str
) -> tuple[dict[str, float], int]:
    """Return mean ranks (1 is best) over sets, and the count of sets.

    A method that failed on a set has the last rank there, which it shares with others that failed.
    Sets on which some method was not run at all are left out for all methods, so that ranks are
    comparable. "main" stands for the main score of each task.
    """
    ranks = []
    for name in sets:
        chosen = MAIN[comparison.task(name)] if score == "main" else score
        values = comparison.shared(name, chosen, methods)
        failed = [m for m in methods if m not in values]
        if not values or any((name, m) not in comparison.reasons for m in failed):
            continue
        sign = 1 if chosen in COSTS else -1
        ranks.append(rankdata([sign * values[m] if m in values else np.inf for m in methods]))
    if not ranks:
        return {}, 0
    return dict(zip(methods, np.mean(ranks, axis=0).tolist(), strict=True)), len(ranks)


def critical_difference(n_methods: int, n_sets: int) -> float:
    r"""Return Nemenyi's critical difference at 5 %, :math:`q_{.05}\sqrt{k(k+1)/(6N)}`.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)  # Demšar (2006): q = 2.569
    1.25
    """
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def assumptions(plan: Plan, store: ResultStore) -> str:
    """Return how methods did in the unit tests of the multiple-instance assumption."""
    stored = Comparison.of(Plan(ASSUMPTIONS.values(), plan.methods), store)
    if not stored.found:
        return ""
    lines = []
    for method in stored.methods:
        values = {name: stored.mean(name, method, "auc") for name in ASSUMPTIONS}
        lines.append([method, *(_judged(value) for value in values.values())])
    return section(
        "Unit tests of the multiple-instance assumption: AUC",
        "The three algorithms of Raff and Holt (2310.17867). Training bags offer a shortcut "
        "that the assumption forbids, test bags turn it round: near 1 the method follows the "
        f"assumption (bold from {FOLLOWS} on), below 0.5 it takes the shortcut (in italics). "
        "That is no fault where bags of both kinds may have rows of their own; it is one where "
        "only positive bags may.",
        markdown_table(["method", *ASSUMPTIONS], lines),
        "\n".join(f"- {p.name}: {load_set(p.chosen).description}" for p in stored.plan.sets),
    )


def section(title: str, *paragraphs: str) -> str:
    """Return a section of a page in Markdown."""
    return "\n\n".join([f"## {title}", *paragraphs])


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
            error, spread = np.inf, ""  # one fit says nothing about its error
            if len(values) > 1:
                error = np.std(values, ddof=1) / np.sqrt(len(values))
                spread = f" ± {error:.2f}"
            cells.append(f"{np.mean(values):.2f}{spread} ({len(values)})")
            n += 1
            clear += int(np.mean(values) - 0.5 > max(LEAK, 2 * error))
            if abs(np.mean(values) - 0.5) > LEAK:
                far.append(f"{method} on {name.partition('~')[0]} ({cells[-1]})")
        lines.append([name, *cells])
    if not lines:
        return ""
    return section(
        "Leak test: AUC after training on permuted labels",
        "Labels are permuted within training parts and within test parts, anew for each fit; "
        "in brackets the count of fits. A method that uses no test label has 0.5, up to the "
        "standard error. "
        f"{n - len(far)} of {n} cells are within {LEAK}{'; not: ' if far else ''}"
        f"{', '.join(far)}. {clear} are above it by more than {LEAK} and two standard errors; "
        f"chance alone puts about {BEYOND_TWO * n:.0f} cells two standard errors above.",
        markdown_table(["set", *stored.methods], lines),
    )
