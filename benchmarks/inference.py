"""Measure what inference promises: sizes, powers, coverages, error rates.

``python -m benchmarks.inference`` runs all sections, ``python -m benchmarks.inference coverage``
some, with ``--seeds 20`` replications per cell; a killed run goes on where it stopped. ``--table``
prints what is stored, with the count of replications of every cell. Run it with
``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.stats import chi2

from benchmarks.inference_coverage import (
    SOLVERS,
    coverage,
    coverage_of_groups,
    coverage_of_stores,
    coverage_of_two_heads,
    model_of,
    wrongly_linked,
)
from benchmarks.inference_designs import (
    COEFFICIENTS,
    FEATURES,
    SHIFT,
    SIZES,
    STRETCH,
    Draw,
    active,
    nothing,
    some_without,
)
from benchmarks.store import FOLDER, append, recall
from diagatt.families import get_family
from diagatt.solvers.auto.contest import Contest
from diagatt.solvers.auto.contestants import attention_contestants, uniform_contestants
from diagatt.solvers.auto.units import ResponseUnits
from diagatt.solvers.auto.witnesses import contest_existence
from diagatt.solvers.base import Model
from diagatt.solvers.folds import content_folds
from diagatt.solvers.glm import fit_linear
from diagatt.solvers.outlying_rows import outlying_row_test
from diagatt.tables import markdown_table

RUN = "inference"
FAMILIES = ("gaussian", "bernoulli", "poisson", "gamma")
COUNTS = "negative_binomial"
SHAPES = ("well", "t5", "skew", "correlated")
N_NEW = 1500
EFFECTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
# Where the likelihood-ratio oracle has a power of about .9, and around it.
NEAR_THE_GOAL = {
    "gaussian": (0.02, 0.03, 0.05, 0.1),
    "bernoulli": (0.15, 0.2, 0.25, 0.3),
    "poisson": (0.2, 0.25, 0.3, 0.4),
    "gamma": (0.15, 0.2, 0.25, 0.3),
}


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


def existence_by_looks(family: str, draw: Callable[[int], Draw], seed: int) -> dict[str, float]:
    """Run the part of the test alone whose rows are found without responses."""
    X, y, _ = draw(seed)
    problem = model_of(family, "auto", seed)._problem(X, y, None, None)
    found, _ = outlying_row_test(ResponseUnits.of(problem).scaled(problem), None, seed)
    assert found is not None
    return {"statistic": found.statistic, "found": float(found.is_found)}


def existence_by(solver: str, family: str, draw: Callable[[int], Draw], seed: int) -> dict:
    """Run `existence_test` of one solver."""
    X, y, _ = draw(seed)
    found = model_of(family, SOLVERS[solver](), seed).existence_test(X, y)
    return {"statistic": found.statistic, "found": float(found.is_found)}


def power(family: str, effect: float, seed: int) -> dict[str, float]:
    """Compare the default's test with one that knows everything but whether rows matter.

    The oracle knows the distributions of rows and the coefficients; its statistic is the likelihood
    of the responses, compared with that of 199 permutations of them. "known rows" knows which rows
    decide, but not the coefficients: a likelihood ratio test of their GLM.
    """
    X, y, place = active("well", family, 300, seed, effect=effect)
    z = effect * SIZES[family] * (X @ COEFFICIENTS)  # (n, 10)
    score = ((X**2).sum(axis=2) - (((X - SHIFT) / STRETCH) ** 2).sum(axis=2)) / 2
    log_kappa = torch.from_numpy(score).log_softmax(dim=1)
    law, n = get_family(family), len(y)
    phi = {"gaussian": 0.25, "gamma": 0.5}.get(family, 1.0)
    repeated = torch.from_numpy(np.repeat(y.astype(float), z.size))
    tiled = torch.from_numpy(np.tile(z.ravel(), n))[:, None]
    density = law.log_density(repeated, tiled, phi).reshape(n, n, -1)
    table = (log_kappa + density).logsumexp(dim=2).numpy()  # response by sample
    rng, line = np.random.default_rng((seed, 17)), np.arange(n)
    drawn = [table[rng.permutation(n), line].sum() for _ in range(199)]
    rank = np.sum(np.array(drawn) >= table[line, line].sum())
    found = existence(family, partial(active, "well", family, 300, effect=effect), seed)
    known = _known_rows_found(family, X, y, place)
    return {"oracle": float(rank < 10), "known rows": known, "found": found["found"]}


def _known_rows_found(family: str, X: np.ndarray, y: np.ndarray, place: np.ndarray) -> float:
    """Return whether a GLM of the active and the mean rows beats that of mean rows, at 5 %."""
    law, n, losses, phi = get_family(family), len(y), [], 1.0
    response, weights = torch.from_numpy(y.astype(float)), torch.ones(n, dtype=torch.float64)
    both = np.concatenate([X.mean(axis=1), X[np.arange(n), place]], axis=1)  # (n, 2d)
    for count in (FEATURES, 2 * FEATURES):
        columns = torch.from_numpy(both[:, :count])
        beta, shift = fit_linear(law, columns, response, weights, ridge=0.0)[:2]
        z = columns @ beta + shift
        losses.append(float(law.loss(response, z).sum()))
        if law.has_dispersion:
            phi = float(law.unit_dispersion(response, z).sum()) / (n - count - 1)
    return float(chi2.sf(2 * (losses[0] - losses[1]) / phi, FEATURES) < 0.05)


def certainty(shape: str, family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return what new samples say about intervals, sets and discoveries."""
    X, y, _ = active(shape, family, 400, seed)
    new = active(shape, family, N_NEW, seed + 100_000)
    model = model_of(family, SOLVERS[solver](), seed).fit(X, y).calibrate(X, y)
    found = model.certainty(new.X)
    entropy = found.entropy[:, 0]
    unsure = entropy > np.quantile(entropy, 2 / 3)
    size = {}
    if family == "bernoulli":
        sets = model.predict_set(new.X)
        size = {"classes per set": float(np.mean([len(labels) for labels in sets]))}
        held = np.array([label in labels for label, labels in zip(new.y, sets, strict=True)])
    else:
        low, high = model.predict_interval(new.X).T
        held = (low <= new.y) & (new.y <= high)
    result = {
        "temperature": model.row_temperature_,
        "responses": float(held.mean()),
        "responses, unsure third": float(held[unsure].mean()),
        **size,
        "row sets": _covered(found.row_sets, new.place),
        "rows per set": float(np.mean([len(s) for s in found.row_sets])),
    }
    model.calibrate_rows(new.X[:50], new.place[:50])
    labelled = model.certainty(new.X[100:]).row_sets
    result["row sets, 50 labels"] = _covered(labelled, new.place[100:])
    model.calibrate_rows(new.X[:100], new.place[:100])
    named = model.discoveries(new.X[100:])
    result["FDR, 100 labels"] = _wrong(named, new.place[100:])
    result["named, 100 labels"] = len(named) / (N_NEW - 100)
    return result


def discoveries(shape: str, family: str, solver: str, seed: int) -> dict[str, Any]:
    """Return the rows that are named without labels: share of wrong ones, and of named samples."""
    X, y, _ = active(shape, family, 400, seed)
    new = active(shape, family, N_NEW, seed + 100_000)
    model = model_of(family, SOLVERS[solver](), seed).fit(X, y).calibrate(X, y)
    named = model.discoveries(new.X)
    return {
        "FDR": _wrong(named, new.place),
        "named": len(named) / N_NEW,
        "fits that name none": float(not named),
    }


def without_a_row(solver: str, family: str, shape: str, share: float, seed: int) -> dict:
    """Return the estimated share of samples with a row, and how well "none" is told."""
    X, y, _ = some_without(shape, family, 400, share, seed)
    model = model_of(family, SOLVERS[solver](none=True), seed).fit(X, y)
    new = some_without(shape, family, N_NEW, share, seed + 100_000)
    located = model.locate(new.X, none=True)[:, 0]
    return {
        "share": share,
        "estimate": model.prevalence_,
        "off": abs(model.prevalence_ - share),
        "none told": float(((located == -1) == (new.place == -1)).mean()),
        "rows found": float((located == new.place)[new.place >= 0].mean()),
    }


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
    },
    "existence by looks": {
        f"{family}, {kind}": partial(
            existence_by_looks, family, partial(nothing, kind, family, 150, 6)
        )
        for kind in NULLS
        for family in FAMILIES
    }
    | {
        f"{family}, effect {effect}": partial(
            existence_by_looks, family, partial(active, "well", family, 300, effect=effect)
        )
        for family in FAMILIES
        for effect in EFFECTS
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
        for family in (*FAMILIES, COUNTS)
        for shape in SHAPES
    },
    "coverage of groups, heads and stores": {
        f"{name}, {solver}, {family}": partial(measure, family, solver)
        for name, measure in (
            ("groups", coverage_of_groups),
            ("two heads", coverage_of_two_heads),
            ("store", coverage_of_stores),
        )
        for solver in SOLVERS
        for family in ("gaussian", "bernoulli")
    },
    "certainty": {
        f"{solver}, {family}, {shape}": partial(certainty, shape, family, solver)
        for solver in SOLVERS
        for family in ("gaussian", "bernoulli")
        for shape in SHAPES
    },
    "discoveries without labels": {
        f"{solver}, {family}, {shape}": partial(discoveries, shape, family, solver)
        for solver in SOLVERS
        for family in ("gaussian", "bernoulli")
        for shape in SHAPES
    },
    "none": {
        f"{solver}, {family}, {shape}, {share}": partial(
            without_a_row, solver, family, shape, share
        )
        for solver, family, shape in (
            ("likelihood", "gaussian", "well"),
            *(("mixture", "gaussian", shape) for shape in SHAPES),
            *(("likelihood", family, "well") for family in FAMILIES[1:]),
            *(("mixture", family, "well") for family in FAMILIES[1:]),
        )
        for share in (0.4, 0.7, 1.0)
    },
    "power": {
        f"{family}, effect {effect}": partial(power, family, effect)
        for family, effects in NEAR_THE_GOAL.items()
        for effect in effects
    },
    "wrong link": {
        f"{solver}, {family}": partial(wrongly_linked, family, solver)
        for solver in SOLVERS
        for family in FAMILIES
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
    measured: dict[str, dict[str, str]] = {}
    for cell in SECTIONS[section]:
        results = [r for key, r in stored.items() if key.startswith(f"{section}; {cell}; ")]
        if results:
            measured[cell] = {"replications": str(len(results))} | dict(_means(results))
    head = max(measured.values(), key=len, default={})  # some cells measure more than others
    lines = [[cell, *(found.get(name, "–") for name in head)] for cell, found in measured.items()]
    return f"## {section}\n\n" + markdown_table(["cell", *head], lines) + "\n"


def main() -> None:
    """Run cells seed by seed, so that every cell has some replications early."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", default="", help="cells whose name matches this expression")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    stored = recall(RUN)
    for seed in range(0 if given.table else given.seeds):
        for section in given.sections or SECTIONS:
            for cell, measure in SECTIONS[section].items():
                key = f"{section}; {cell}; {seed}"
                if re.search(given.only, cell) and key not in stored:
                    append(RUN, key, measure(seed))
    text = "\n".join(table(section) for section in SECTIONS)
    (FOLDER / f"{RUN}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
