"""The page of the bench: one minute on top, then ranks, pictures, a table per score, the rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diagatt.bench.comparison import (
    COSTS,
    MAIN,
    Comparison,
    assumptions,
    critical_difference,
    leaks,
    mean_ranks,
    section,
    tried_on_most,
)
from diagatt.bench.confined import Limits
from diagatt.bench.drawing import critical_difference_diagram, speed_picture
from diagatt.bench.methods import DEFAULT, METHODS
from diagatt.bench.run import Plan
from diagatt.bench.sets import N_FOLDS, load_set, n_splits
from diagatt.files import write_atomically
from diagatt.metrics.classes import FLOOR
from diagatt.plots.canvas import figure_bytes
from diagatt.resampling import paired_interval
from diagatt.studies.results import ResultStore
from diagatt.tables import markdown_table

#: Tables in their order: score, title, digits.
TABLES = (
    ("auc", "AUC (several classes: one against the rest)", 3),
    ("accuracy", "Accuracy", 3),
    ("r2", "R²", 3),
    ("log_score", "Log score (mean log-likelihood of test responses)", 3),
    ("located", "Located: share of samples with key rows whose located row is one", 2),
    (
        "ece",
        "Expected calibration error (ten bins, all folds of a repeat together; less is better)",
        3,
    ),
    ("fit_seconds", "CPU seconds of a fit (one thread)", 2),
    ("predict_seconds", "CPU seconds of predicting the test part", 3),
    ("peak_mb", "Peak memory of a fit beyond what was loaded, MB", 0),
)
BEHIND = 0.02  # a method whose main score is lower by more than this is called behind


def write_report(plan: Plan, store: ResultStore, output: Path) -> list[Path]:
    """Write the page and its pictures; return their paths."""
    stored = Comparison.of(plan, store)
    if not stored.found:
        raise ValueError(f"{store.folder} holds no results of these sets and methods: run them.")
    output.parent.mkdir(parents=True, exist_ok=True)
    pictures, ranked = _pictures(stored, output)
    parts = [
        "# Bags: which method wins where",
        one_minute(stored),
        ranked,
        differences(stored),
        *(score_table(stored, *listed) for listed in TABLES),
        assumptions(plan, store),
        leaks(plan, store),
        not_run(stored),
        the_sets(stored),
        the_methods(stored),
        rules(stored),
    ]
    write_atomically(output, ("\n\n".join(part for part in parts if part) + "\n").encode("utf-8"))
    for path, content in pictures.items():
        write_atomically(path, content)
    return [output, *pictures]


def one_minute(stored: Comparison) -> str:
    """Return what a user reads in a minute."""
    everywhere = _for_all_tasks(stored)
    binary = tried_on_most(stored, _binary(stored), stored.methods)
    lines = []
    ranks, n = mean_ranks(stored, stored.sets, everywhere, "main")
    logs, n_logs = mean_ranks(stored, stored.sets, everywhere, "log_score")
    on_binary, n_binary = mean_ranks(stored, _binary(stored), binary, "main")
    wins = _wins(stored)
    for name in sorted(
        stored.methods, key=lambda m: (ranks.get(m, np.inf), on_binary.get(m, np.inf))
    ):
        lines.append(
            [
                f"**{name}**" if name == DEFAULT else name,
                *(f"{r[name]:.1f}" if name in r else "–" for r in (ranks, logs, on_binary)),
                wins[name],
                _number(_median_seconds(stored, name), 2),
            ]
        )
    head = [
        "method",
        f"mean rank, main score ({n} sets)",
        f"mean rank, log score ({n_logs} sets)",
        f"mean rank, AUC, binary sets ({n_binary})",
        "best on sets",
        "CPU s per fit, median",
    ]
    fits = sum(len(splits) for splits in stored.found.values())
    return section(
        "In one minute",
        f"{len(stored.sets)} sets of bags, {len(stored.methods)} methods, {fits} of "
        f"{len(stored.plan.tasks())} planned fits, all on the same splits; nothing was chosen "
        "by test results. The main score is AUC (binary), accuracy "
        "(several classes) or R² (regression). Rank 1 is best. Methods for two classes only "
        "are ranked on binary sets; ranks are over sets that all ranked methods have tried, "
        "and a method that has tried fewer than half of the sets, or leaves some out for their "
        "size, is not ranked. So far "
        f"{fits / len(stored.found):.1f} splits have been run per set and method.",
        markdown_table(head, lines),
        "\n".join(_sentences(stored, ranks)),
    )


def _sentences(stored: Comparison, ranks: dict[str, float]) -> list[str]:
    said = []
    if ranks:
        best = min(ranks, key=ranks.__getitem__)
        said.append(
            f"First by main score over all tasks: **{best}** (mean rank {ranks[best]:.1f})."
        )
    if DEFAULT in stored.methods:
        behind, n = [], 0
        for name in stored.sets:
            values = stored.shared(name, MAIN[stored.task(name)], stored.methods)
            if DEFAULT in values:
                n += 1
                winner = max(values, key=values.__getitem__)
                if values[winner] - values[DEFAULT] > BEHIND:
                    behind.append(f"{name} ({values[DEFAULT]:.3f}; {winner} {values[winner]:.3f})")
        said.append(
            f"Our default, **{DEFAULT}**, is more than {BEHIND} behind the best method on "
            f"{len(behind)} of {n} sets{': ' if behind else ''}{', '.join(behind)}."
        )
    else:
        said.append(f"Our default, {DEFAULT}, has no results of its present revision yet.")
    return [f"- {sentence}" for sentence in said]


def _pictures(stored: Comparison, output: Path) -> tuple[dict[Path, bytes], str]:
    """Return pictures by path, and the part of the page that shows them."""
    contents: dict[Path, bytes] = {}
    shown = ["## Ranks", ""]
    groups = (
        ("all", "all tasks", stored.sets, _for_all_tasks(stored), "main"),
        ("log", "log score, all tasks", stored.sets, _for_all_tasks(stored), "log_score"),
        (
            "binary",
            "AUC, binary sets",
            _binary(stored),
            tried_on_most(stored, _binary(stored), stored.methods),
            "main",
        ),
    )
    for key, title, sets, methods, score in groups:
        ranks, n = mean_ranks(stored, sets, methods, score)
        if len(ranks) < 2:
            continue
        difference = critical_difference(len(ranks), n)
        figure = critical_difference_diagram(ranks, difference, f"{title}, {n} sets")
        path = output.with_name(f"{output.stem}-ranks-{key}.svg")
        contents[path] = figure_bytes(figure, "svg", dpi=150)
        shown += [f"![mean ranks, {title}]({path.name})", ""]
        if key == "all":
            seconds = {m: _median_seconds(stored, m) or np.nan for m in ranks}
            path = output.with_name(f"{output.stem}-speed.svg")
            picture = speed_picture(ranks, seconds, list(ranks))
            contents[path] = figure_bytes(picture, "svg", dpi=150)
    shown += [
        "Methods that a bar joins do not differ at the 5 % level (Nemenyi). A method that failed "
        "or ran out of time on a set has the last rank there.",
        "",
        "## Speed and accuracy",
        "",
        f"![mean rank against CPU seconds]({output.stem}-speed.svg)",
    ]
    return contents, "\n".join(shown) if contents else ""


def differences(stored: Comparison) -> str:
    """Return the default's main score minus that of others, with corrected intervals."""
    if DEFAULT not in stored.methods:
        return ""
    others = [m for m in stored.methods if m != DEFAULT]
    lines = []
    for name in stored.sets:
        score = MAIN[stored.task(name)]
        own = stored.values(name, DEFAULT, score)
        cells = []
        for method in others:
            other = stored.values(name, method, score)
            common = sorted(set(own) & set(other))
            if not common:
                cells.append("–")
                continue
            d = [own[k] - other[k] for k in common]
            if len(d) == 1:
                cells.append(f"{d[0]:+.3f}")
                continue
            mean, low, high = paired_interval(d, 1 / (N_FOLDS - 1))
            mark = "**" if low > 0 or high < 0 else ""
            cells.append(f"{mark}{mean:+.3f}{mark} [{low:+.2f}, {high:+.2f}]")
        lines.append([name, score, *cells])
    return section(
        f"{DEFAULT} minus others, main score",
        "Paired over splits; in brackets the corrected resampled 95 % t interval (Nadeau and "
        "Bengio); bold where it excludes 0; without brackets one split alone has been run.",
        markdown_table(["set", "score", *others], lines),
    )


def score_table(stored: Comparison, score: str, title: str, digits: int) -> str:
    """Return a table of means over splits, the best of each set in bold."""
    lines = []
    for name in stored.sets:
        values = {m: stored.mean(name, m, score) for m in stored.methods}
        known = [v for v in values.values() if v is not None]
        if not known:
            continue
        best = min(known) if score in COSTS else max(known)
        cells = []
        for method, value in values.items():
            if value is None:
                cells.append("time" if "CPU time" in stored.reasons.get((name, method), "") else "")
            else:
                text = _number(value, digits)
                cells.append(f"**{text}**" if text == _number(best, digits) else text)
        lines.append([name, *cells])
    if not lines:
        return ""
    return section(title, markdown_table(["set", *stored.methods], lines))


def not_run(stored: Comparison) -> str:
    """Return what has no result, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for (name, method), reason in stored.reasons.items():
        if not reason.startswith("not for"):
            reasons.setdefault((method or "every method", reason), []).append(name)
    missing: dict[str, list[str]] = {}
    for task in stored.plan.tasks():
        where = (task.scenario.name, task.method)
        names = missing.setdefault(task.method, [])
        if where not in stored.found and where not in stored.reasons and where[0] not in names:
            names.append(where[0])
    lines = [[m, reason, ", ".join(names)] for (m, reason), names in sorted(reasons.items())]
    lines += [[m, "not run yet", ", ".join(names)] for m, names in missing.items() if names]
    if not lines:
        return ""
    return section("Without a result", markdown_table(["method", "why", "sets"], lines))


def the_sets(stored: Comparison) -> str:
    """Return what the sets are."""
    lines = []
    for place in stored.plan.sets:
        bags = load_set(place.chosen)
        facts = (len(bags), bags.X.n_rows, bags.X.n_features, bags.task, n_splits(place.chosen))
        grouped = "yes" if bags.groups is not None else ""
        known = "yes" if bags.row_labels is not None else ""
        lines.append([place.name, *facts, grouped, known, bags.description, bags.source])
    head = ["set", "samples", "rows", "features", "task", "splits", "grouped", "key rows known"]
    return section("The sets", markdown_table([*head, "what", "from"], lines))


def the_methods(stored: Comparison) -> str:
    """Return what the methods are."""
    lines = [
        [m, METHODS[m].description, "standardized" if METHODS[m].standardizes else "as given"]
        for m in stored.plan.methods
    ]
    return section("The methods", markdown_table(["method", "what", "rows"], lines))


def rules(stored: Comparison) -> str:
    """Return how all of this was done."""
    machines = Counter(stored.machines).most_common(1)
    machine = json.loads(machines[0][0]) if machines else {}
    versions = ", ".join(f"{name} {value}" for name, value in sorted(machine.items()))
    hours, n_cells = stored.hours()
    facts = [
        "- Outer splits are fixed and stored with the library: five folds, three times over "
        "below 300 samples; classes are stratified; groups (pools of source rows, scaffolds, "
        "equal sentences) stay together.",
        "- Every fitted step happens inside the training part: scaling, tuning, choosing, "
        "stopping. Rows are standardized by means and standard deviations of the training "
        f"rows for every method but {DEFAULT}, which prepares rows itself.",
        "- Rivals run with their documented defaults; what is tuned or stopped inside is stated "
        "in the table above.",
        f"- Log score: probabilities are kept from 0 by {FLOOR}; regressions get the "
        "dispersion that the other half of the test samples shows.",
        "- One thread per fit, in a process of its own; a fit that uses up "
        f"{Limits().seconds:g} CPU seconds (or the limit that --limit sets) is recorded as “time”, "
        "whatever it would have scored. A method that fails on the first split of a set is not "
        "tried on the others.",
        f"- By the seconds that are stored, all splits of the {n_cells} pairs of a set and a "
        f"method that have results take {hours:.1f} hours of CPU time, on two cores half of "
        "it. Nothing is left out but for its size: " + _left_out_by_size() + ".",
        f"- Run {min(stored.dates)} to {max(stored.dates)} on: {versions}.",
        "- Repeat one set: `diagatt bench run --sets musk1`; add your own bags and method: "
        "`diagatt bench run --sets mine.npz --rivals my_model.py`.",
    ]
    return section("Rules", "\n".join(facts))


def _left_out_by_size() -> str:
    limits = [
        f"{m.name} has sets of at most {m.most_rows} rows" for m in METHODS.values() if m.most_rows
    ]
    return ", ".join(limits) or "no method has a limit"


def _for_all_tasks(stored: Comparison) -> list[str]:
    tasks = {stored.task(name) for name in stored.sets}
    able = [m for m in stored.methods if tasks <= set(METHODS[m].tasks)]
    return tried_on_most(stored, stored.sets, able)


def _binary(stored: Comparison) -> list[str]:
    return [name for name in stored.sets if stored.task(name) == "binary"]


def _wins(stored: Comparison) -> Counter[str]:
    """Count sets on which a method has the highest main score; equals all win."""
    wins: Counter[str] = Counter()
    for name in stored.sets:
        values = stored.shared(name, MAIN[stored.task(name)], stored.methods)
        wins.update(m for m, value in values.items() if value == max(values.values()))
    return wins


def _median_seconds(stored: Comparison, method: str) -> float | None:
    seconds: Sequence[float | None] = [
        stored.mean(name, method, "fit_seconds") for name in stored.sets
    ]
    known = [s for s in seconds if s is not None]
    return float(np.median(known)) if known else None


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
