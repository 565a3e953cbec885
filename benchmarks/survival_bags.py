"""Survival of real patients: our fits against pooled Cox, last-row Cox and a survival forest.

Run ``python -m benchmarks.survival_bags`` (an hour on two cores; a killed run resumes). Patients
are bags of visits up to a landmark (`diagatt.datasets`: icu_nutrition, cirrhosis); all methods get
the same covariates, and folds keep hospitals together. ``R_LIBS`` may name the folder of the R
packages; scikit-survival comes with the extra ``survival``. ``--table`` only writes what is stored
into ``results/survival_bags.md``.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from benchmarks.store import FOLDER, recall, remember
from diagatt import DiagAttSurvival, RaggedRows
from diagatt.datasets import Bags, load_bags
from diagatt.metrics import concordance
from diagatt.solvers import Gradient, Likelihood, Mixture, Uniform

NAME = "survival_bags"
SETS = ("cirrhosis", "icu_nutrition")
FOLDS, REPEATS = 5, 5
Risk = Callable[[Bags, np.ndarray, np.ndarray, int], np.ndarray]


def ours(solver: Any, bags: Bags, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Fit attention with a solver; return the risks of the test samples."""
    Z = bags.covariates
    assert Z is not None
    Z = (Z - Z[train].mean(axis=0)) / _spread(Z[train])
    rows = bags.X.with_values(_scaled(bags.X, train))
    model = DiagAttSurvival(solver=solver, random_state=seed)
    model.fit(rows[train], bags.y[train], covariates=Z[train])
    return model.predict(rows[test], covariates=Z[test])


def last_row(bags: Bags, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Fit a Cox model to the last visit."""
    rows = _scaled(bags.X, train)[bags.X.offsets[1:] - 1]
    return _cox(np.column_stack([rows, bags.covariates]), bags, train, test)


def pooled(bags: Bags, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Fit a Cox model to the mean visit."""
    means = np.add.reduceat(_scaled(bags.X, train), bags.X.offsets[:-1]) / bags.X.lengths[:, None]
    return _cox(np.column_stack([means, bags.covariates]), bags, train, test)


def forest(bags: Bags, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Fit scikit-survival's forest to statistics of the visits."""
    from sksurv.ensemble import RandomSurvivalForest

    parts = np.split(bags.X.values, bags.X.offsets[1:-1])
    table = [np.r_[len(p), p.mean(0), p.min(0), p.max(0), p.std(0), p[-1]] for p in parts]
    features = np.column_stack([table, bags.covariates])
    model = RandomSurvivalForest(300, min_samples_leaf=10, random_state=seed)
    return model.fit(features[train], bags.y[train]).predict(features[test])


def _cox(features: np.ndarray, bags: Bags, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    scaled = (features - features[train].mean(axis=0)) / _spread(features[train])
    model = DiagAttSurvival(solver=Uniform()).fit(scaled[train], bags.y[train])
    return model.predict(scaled[test])


def _scaled(X: RaggedRows, train: np.ndarray) -> np.ndarray:
    own = X[train].values
    return (X.values - own.mean(axis=0)) / _spread(own)


def _spread(values: np.ndarray) -> np.ndarray:
    found = values.std(axis=0)
    return np.where(found > 0, found, 1.0)  # the last of five days is always the fifth


METHODS: dict[str, Risk] = {
    "last-row Cox": last_row,
    "pooled Cox": pooled,
    "survival forest": forest,
    "likelihood": partial(ours, Likelihood()),
    "mixture": partial(ours, Mixture()),
    "gradient": partial(ours, Gradient()),
    "default": partial(ours, "auto"),
}


def measure(name: str, method: str, repeat: int) -> dict:
    """Return the mean concordance over folds that keep groups together."""
    bags = load_bags(name)
    groups = np.arange(len(bags)) if bags.groups is None else bags.groups
    folds = GroupKFold(FOLDS, shuffle=True, random_state=repeat)
    found, began = [], time.process_time()
    for train, test in folds.split(np.zeros(len(bags)), groups=groups):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            risk = METHODS[method](bags, train, test, repeat)
        found.append(concordance(bags.y["event"][test], bags.y["time"][test], risk))
    return {"concordance": found, "seconds": time.process_time() - began}


def write_table() -> None:
    """Write what is stored as a table."""
    lines = ["# Concordance on real patients", ""]
    lines += [f"{REPEATS} × {FOLDS} folds; written by `python -m benchmarks.survival_bags`.", ""]
    lines += [
        "| set | method | concordance | s.e. over folds | CPU seconds |",
        "|---|---|---|---|---|",
    ]
    known = recall(NAME)
    for name in SETS:
        for method in METHODS:
            keys = [f"{name}/{method}/{repeat}" for repeat in range(REPEATS)]
            stored = [known[key] for key in keys if key in known]
            if stored:
                each = np.concatenate([line["concordance"] for line in stored])
                error = each.std(ddof=1) / len(each) ** 0.5
                seconds = np.mean([line["seconds"] for line in stored])
                row = f"{each.mean():.3f} | {error:.3f} | {seconds:.0f}"
                lines.append(f"| {name} | {method} | {row} |")
    (FOLDER / f"{NAME}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure what is not stored yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        for repeat in range(REPEATS):
            for name in SETS:
                for method in METHODS:
                    key = f"{name}/{method}/{repeat}"
                    found = remember(NAME, key, partial(measure, name, method, repeat))
                    print(key, np.mean(found["concordance"]), flush=True)
    write_table()


if __name__ == "__main__":
    main()
