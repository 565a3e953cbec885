"""Ordered classes against nominal ones, and outcomes that share their rows against separate fits.

Run ``python -m benchmarks.outcomes`` (minutes; a killed run resumes where it stopped). Samples have
6 rows of 4 features, one of which decides; there are 300 of them, and 2000 new ones are scored.
Grades follow proportional odds with five classes; numbers and labels are four weak outcomes of the
same row. ``--table`` only writes what is stored into ``results/outcomes.md``.
"""

import argparse
import warnings
from functools import partial

import numpy as np
from scipy.stats import t
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

from benchmarks.store import FOLDER, recall, remember
from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.metrics import class_scores, crlr, log_density, ranked_probability_score
from diagatt.solvers import Gradient, Likelihood, Mixture

NAME = "outcomes"
SOLVERS = {
    "likelihood": Likelihood(),
    "likelihood, mixture": Likelihood(readout="mixture"),  # of nominal classes and labels, too
    "mixture": Mixture(),
    "gradient": Gradient(),
    "auto": "auto",
}
SEEDS, N, NEW, COUNT = range(10), 300, 2000, 4
THRESHOLDS = [-2.0, -0.7, 0.7, 2.0]
# What is better where data are so, and what it is compared with.
DESIGNS = {
    "ordered classes": ("ordinal", "nominal"),
    "several numbers": ("shared", "separate"),
    "several labels": ("shared", "separate"),
}


def draw(design: str, seed: int):
    """Draw training and new samples: rows, responses, and the rows that decide."""
    rng = np.random.default_rng((seed, 7))
    beta = rng.normal(size=(4, COUNT)) / 2
    both = []
    for part, count in enumerate((N, NEW)):
        data = simulate.regression(
            count, p=6, d=4, mu=(2,), sigma2=(3,), noise=0, seed=(seed, part), dtype=np.float64
        )
        active = np.array([x[row[0]] for x, row in zip(data.X, data.rows, strict=True)])
        eta = active @ beta
        noise = rng.logistic(size=eta.shape)
        if design == "ordered classes":
            y = np.digitize(2 * eta[:, 0] + noise[:, 0], THRESHOLDS)
        elif design == "several labels":
            y = (eta + noise > 0).astype(int)
        else:
            y = eta + 2 * rng.normal(size=eta.shape)
        both.append((data.X, y, data.rows))
    return both


def measure(design: str, method: str, solver: str, seed: int) -> dict:
    """Fit one method and score it on new samples."""
    (X, y, _), (new, truth, rows) = draw(design, seed)
    how = {"solver": SOLVERS[solver], "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if design == "ordered classes":
            family = "ordinal" if method == "ordinal" else "multinomial"
            model = DiagAttClassifier(family=family, **how).fit(X, y)
            p = model.predict_proba(new)
            found = {
                "log_score": class_scores(truth, p)["log_score"],
                "rps": ranked_probability_score(truth, p),
            }
            return found | {"crlr": crlr(rows, model.locate(new))}
        classifies = design == "several labels"
        one = (DiagAttClassifier if classifies else DiagAttRegressor)(**how)
        if method == "separate":
            one = (MultiOutputClassifier if classifies else MultiOutputRegressor)(one)
        model = one.fit(X, y)
    fits = model.estimators_ if method == "separate" else [model]
    located = float(np.mean([crlr(rows, fit.locate(new)) for fit in fits]))
    return {"log_score": _log_score(model, new, truth, classifies), "crlr": located}


def _log_score(model, X, y: np.ndarray, classifies: bool) -> float:
    """Return the mean log density of an outcome."""
    if not classifies:
        mean = model.predict(X)
        return float(np.mean([log_density(y[:, k], mean[:, k], "gaussian") for k in range(COUNT)]))
    p = model.predict_proba(X)
    p = np.column_stack([own[:, 1] for own in p]) if isinstance(p, list) else p
    each = [np.column_stack([1 - own, own]) for own in p.T]
    return float(np.mean([class_scores(a, b)["log_score"] for a, b in zip(y.T, each, strict=True)]))


def write_table() -> None:
    """Write what is stored as a table."""
    lines = [
        "# Ordered classes and several outcomes",
        "",
        f"n = {N}, 6 rows of 4 features, scores of {NEW} new samples; written "
        "by `python -m benchmarks.outcomes`. Differences have 95 % intervals (paired t).",
        "",
        "| responses | solver | seeds | compared | log score | | difference | rows located | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    known = recall(NAME)
    for design, (ours, other) in DESIGNS.items():
        for solver in SOLVERS:
            pairs = [
                [known.get(f"{design}/{method}/{solver}/{seed}") for method in (ours, other)]
                for seed in SEEDS
            ]
            both = [pair for pair in pairs if None not in pair]
            if len(both) < 2:
                continue
            a, b = (np.array([pair[k]["log_score"] for pair in both]) for k in (0, 1))
            gap, error = (a - b).mean(), (a - b).std(ddof=1) / len(both) ** 0.5
            half = t.ppf(0.975, len(both) - 1) * error
            found = [np.mean([pair[k]["crlr"] for pair in both]) for k in (0, 1)]
            lines.append(
                f"| {design} | {solver} | {len(both)} | {ours}, {other} | "
                f"{a.mean():.3f} | {b.mean():.3f} | "
                f"{gap:+.3f} ± {half:.3f} | {found[0]:.1%} | {found[1]:.1%} |"
            )
    (FOLDER / f"{NAME}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure what is not stored yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        for seed in SEEDS:
            for design, methods in DESIGNS.items():
                for solver in SOLVERS:
                    for method in methods:
                        key = f"{design}/{method}/{solver}/{seed}"
                        task = partial(measure, design, method, solver, seed)
                        print(key, remember(NAME, key, task), flush=True)
    write_table()


if __name__ == "__main__":
    main()
