"""Measure what inference promises: sizes, powers, coverages, error rates.

``python -m benchmarks.inference`` runs all sections, ``python -m benchmarks.inference coverage``
some, with ``--seeds 20`` replications per cell; a killed run goes on where it stopped. ``--table``
prints what is stored, with the count of replications of every cell. Run it with
``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.inference_designs import COEFFICIENTS, SIZES, Draw, active, nothing
from benchmarks.store import FOLDER, recall, remember
from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.solvers import Likelihood, Mixture
from diagatt.solvers.auto.contest import Contest
from diagatt.solvers.auto.contestants import attention_contestants, uniform_contestants
from diagatt.solvers.auto.units import ResponseUnits
from diagatt.solvers.auto.witnesses import contest_existence
from diagatt.solvers.base import Model
from diagatt.solvers.folds import content_folds
from diagatt.tables import markdown_table

RUN = "inference"
FAMILIES = ("gaussian", "bernoulli", "poisson", "gamma")
SHAPES = ("well", "t5", "skew", "correlated")
SOLVERS = {"mixture": Mixture, "likelihood": Likelihood}
N_NEW = 1500


def model_of(family: str, solver: Any, seed: int) -> Any:
    """Return an estimator of the family."""
    if family == "bernoulli":
        return DiagAttClassifier(solver=solver, random_state=seed)
    return DiagAttRegressor(solver=solver, family=family, random_state=seed)


def existence(family: str, draw: Callable[[int], Draw], seed: int) -> dict[str, float]:
    """Run the default's test of any row of interest: its witnesses and fits without attention."""
    X, y, _ = draw(seed)
    problem = model_of(family, "auto", seed)._problem(X, y, None, None)
    part = ResponseUnits.of(problem).scaled(problem)
    contest = Contest(part, content_folds(part, 5, seed), Model(), seed, torch.float64)
    contest.enter(uniform_contestants("unit"))
    contest.enter(c for c in attention_contestants("unit", part.family) if c.is_witness)
    found = contest_existence(contest, contest.entries)
    assert found is not None
    return {"statistic": found.statistic, "found": float(found.is_found)}


def existence_by(solver: str, family: str, draw: Callable[[int], Draw], seed: int) -> dict:
    """Run `existence_test` of one solver."""
    X, y, _ = draw(seed)
    found = model_of(family, SOLVERS[solver](), seed).existence_test(X, y)
    return {"statistic": found.statistic, "found": float(found.is_found)}


def coverage(shape: str, family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return which 95 % intervals of coefficients hold the truth."""
    X, y, _ = active(shape, family, 400, seed)
    model = model_of(family, SOLVERS[solver](), seed).fit(X, y)
    if model.value_se_ is None:
        return {"covered": None, "note": model.errors_note_}
    truth = SIZES[family] * COEFFICIENTS
    error = np.abs(model.value_[0] - truth) / model.value_se_[: len(truth)]
    covered = (error < 1.959964).astype(float).tolist()
    return {"covered": covered, "se": float(np.mean(model.value_se_[: len(truth)]))}


def certainty(shape: str, family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return what new samples say about intervals, sets and discoveries."""
    X, y, _ = active(shape, family, 400, seed)
    new = active(shape, family, N_NEW, seed + 100_000)
    model = model_of(family, SOLVERS[solver](), seed).fit(X, y).calibrate(X, y)
    found = model.certainty(new.X)
    entropy = found.entropy[:, 0]
    unsure = entropy > np.quantile(entropy, 2 / 3)
    if family == "bernoulli":
        sets = model.predict_set(new.X)
        held = np.array([label in labels for label, labels in zip(new.y, sets, strict=True)])
    else:
        low, high = model.predict_interval(new.X).T
        held = (low <= new.y) & (new.y <= high)
    result = {
        "temperature": model.row_temperature_,
        "responses": float(held.mean()),
        "responses, unsure third": float(held[unsure].mean()),
        "row sets": _covered(found.row_sets, new.place),
        "rows per set": float(np.mean([len(s) for s in found.row_sets])),
        "FDR": _wrong(model.discoveries(new.X), new.place),
    }
    model.calibrate_rows(new.X[:50], new.place[:50])
    labelled = model.certainty(new.X[100:]).row_sets
    result["row sets, 50 labels"] = _covered(labelled, new.place[100:])
    model.calibrate_rows(new.X[:100], new.place[:100])
    named = model.discoveries(new.X[100:])
    result["FDR, 100 labels"] = _wrong(named, new.place[100:])
    result["named, 100 labels"] = len(named) / (N_NEW - 100)
    return result


def default_on_noise(family: str, kind: str, seed: int) -> dict[str, float]:
    """Return whether the default says that there is no row."""
    X, y, _ = nothing(kind, family, 150, 6, seed)
    model = model_of(family, "auto", seed).fit(X, y)
    return {"none": float(not model.has_row_of_interest_)}


def _covered(sets: list[np.ndarray], place: np.ndarray) -> float:
    return float(np.mean([p in rows for p, rows in zip(place, sets, strict=True)]))


def _wrong(named: Any, place: np.ndarray) -> float:
    """Return the share of wrong rows among those that are named; 0 if none is."""
    return float(np.mean([place[line.sample] != line.row for line in named])) if named else 0.0


Cells = dict[str, Callable[[int], dict[str, Any]]]
NULLS = ("iid", "scales", "outliers", "pooled")
SECTIONS: dict[str, Cells] = {
    "existence": {
        f"{family}, {kind}": partial(existence, family, partial(nothing, kind, family, 150, 6))
        for kind in NULLS
        for family in FAMILIES
    }
    | {
        f"{family}, effect {effect}": partial(
            existence, family, partial(active, "well", family, 300, effect=effect)
        )
        for family in FAMILIES
        for effect in (0.25, 0.5)
    },
    "existence by solver": {
        f"{solver}, {family}, {kind}": partial(
            existence_by, solver, family, partial(nothing, kind, family, 150, 6)
        )
        for solver in SOLVERS
        for family in ("gaussian", "bernoulli")
        for kind in NULLS
    },
    "coverage": {
        f"{solver}, {family}, {shape}": partial(coverage, shape, family, solver)
        for solver in SOLVERS
        for family in FAMILIES
        for shape in SHAPES
    },
    "certainty": {
        f"{solver}, {family}, {shape}": partial(certainty, shape, family, solver)
        for solver in SOLVERS
        for family in ("gaussian", "bernoulli")
        for shape in SHAPES
    },
    "noise": {
        f"{family}, {kind}": partial(default_on_noise, family, kind)
        for kind in NULLS
        for family in ("gaussian", "bernoulli")
    },
}


def _means(results: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield names and means of everything that was measured."""
    for name in results[0]:
        values = [r[name] for r in results if r.get(name) is not None and name != "note"]
        if values and not isinstance(values[0], str):
            yield name, f"{np.mean(values):.3f}"


def table(section: str) -> str:
    """Return the stored results of a section as a table."""
    stored = recall(RUN)
    lines: list[list[str]] = []
    head: list[str] = []
    for cell in SECTIONS[section]:
        results = [r for key, r in stored.items() if key.startswith(f"{section}; {cell}; ")]
        if results:
            measured = dict(_means(results))
            head = head or list(measured)
            numbers = [measured.get(name, "–") for name in head]
            lines.append([cell, str(len(results)), *numbers])
    return f"## {section}\n\n" + markdown_table(["cell", "replications", *head], lines) + "\n"


def main() -> None:
    """Run cells seed by seed, so that every cell has some replications early."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for seed in range(0 if given.table else given.seeds):
        for section in given.sections or SECTIONS:
            for cell, measure in SECTIONS[section].items():
                if given.only in cell:
                    remember(RUN, f"{section}; {cell}; {seed}", partial(measure, seed))
    text = "\n".join(table(section) for section in SECTIONS)
    (FOLDER / f"{RUN}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
