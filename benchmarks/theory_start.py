"""Measure what the theory's separating matrix brings as one of the likelihood solver's starts.

Run ``python -m benchmarks.theory_start`` (a quarter of an hour on one core; a killed run goes on
where it stopped). Every data set is fitted twice by EM: from four starts ("response", "outlier",
"random", "theory") and from the first three alone. The table says how often "theory" reaches the
largest likelihood, by how many nats per sample it is ahead of the best of the other three, and what
dropping it does to the fit that comes out: its likelihood per training sample, and the share of
active rows that it locates in new samples.

The script builds the theory start itself and adds it to the solver's own, which has it no longer:
it replaces ``starting_models`` and reads ``best_start`` of `diagatt.solvers.likelihood.starts`. The
stored numbers are those of commit 5ecfe5e.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.store import FOLDER, remember
from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.metrics import crlr
from diagatt.solvers import likelihood
from diagatt.solvers.likelihood import starts
from diagatt.tables import markdown_table
from diagatt.theory import Moments, SeparationError, separating_start

N, N_TEST, SEEDS = 800, 2000, 10
AHEAD = 0.01  # nats per sample that count as ahead
TWO = {"mu": (1.0, 4.0), "sigma2": (3.0, 2.0)}
# Name → family, heads, and the arguments of `simulate.regression` or `simulate.classification`.
SETTINGS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "mean and variance": ("gaussian", 1, {"p": 20, "d": 10}),
    "variance alone": ("gaussian", 1, {"p": 20, "d": 20, "mu": 0.0, "sigma2": 4.0}),
    "the paper's Table 1": ("gaussian", 1, {"p": 100, "d": 70}),
    "rows of Student's t": ("gaussian", 1, {"p": (5, 30), "d": 10, "degrees_of_freedom": 5}),
    "two active rows": ("gaussian", 2, {"p": 20, "d": 10, **TWO}),
    "mixture": ("bernoulli", 1, {"p": 20, "d": 20}),
    "logistic": ("bernoulli", 1, {"p": 20, "d": 10}),
    "logistic, two active rows": ("bernoulli", 2, {"p": 20, "d": 10, **TWO}),
}


def draw(name: str, seed: int) -> tuple[Any, np.ndarray, Any]:
    """Draw training samples, their responses, and test samples."""
    family, _, arguments = SETTINGS[name]
    if name == "mixture":
        train = simulate.classification(N, seed=seed, **arguments)
        return train, train.y, train.draw(N_TEST, seed=(seed, 1))
    noise = 1.0 if family == "gaussian" else 0.0
    train = simulate.regression(N, noise=noise, seed=seed, **arguments)
    y = train.y
    if family == "bernoulli":  # the noiseless response is the logit
        y = (np.random.default_rng(seed).random(N) < 1 / (1 + np.exp(-y))).astype(int)
    return train, y, train.draw(N_TEST, seed=(seed, 1))


def theory_start(em: Any, response_start: Any) -> Any:
    """Return the start whose scores are the separating matrix of the rows that y points to.

    The moments of active rows are those under the responsibilities of the start "response", in
    which only the response tells rows apart. None if these rows do not stand out.
    """
    A0, C0 = response_start.rows.A[0], response_start.rows.C[0]
    A1, C1 = starts.gaussian_of(em.head_moments(em.expect(response_start))[0])
    zero = C0.new_zeros(len(C0))
    active, background = (
        Moments((A[:, 0] if A.shape[1] else zero).cpu().numpy(), C.cpu().numpy())
        for A, C in ((A1, C1), (A0, C0))
    )
    try:
        W = separating_start([active], background, divisor=1.0)[0]
    except SeparationError:
        return None
    L = torch.linalg.cholesky(C0)
    white = 2 * L.T @ torch.from_numpy(W).to(C0) @ L  # score = ½ x (C₀⁻¹ − C₁⁻¹) x
    white = 0.8 * white / max(float(torch.linalg.matrix_norm(white, 2)), 0.8)
    eye = torch.eye(len(C0), dtype=C0.dtype, device=C0.device)
    covariance = L @ torch.linalg.inv(eye - white) @ L.T
    rows = starts.RowModel(torch.stack([A0, A0]), torch.stack([C0, covariance]))
    return starts.LatentRows(rows, response_start.response)


def with_theory(own: Callable, wanted: bool) -> Callable:
    """Wrap the solver's `starting_models`: with the theory start, or without it."""

    def wrapped(em: Any, samples: Any, generator: np.random.Generator) -> dict:
        found = own(em, samples, generator)
        added = theory_start(em, found["response"][0]) if wanted else None
        return found if added is None else {**found, "theory": (added, [])}

    return wrapped


def fit(name: str, seed: int, wanted: bool) -> tuple[list[dict], float, float]:
    """Fit with or without the theory start: what each start reached, likelihood, located share."""
    family, heads, _ = SETTINGS[name]
    train, y, test = draw(name, seed)
    report: list[dict] = []
    best_start = starts.best_start

    def watched(*arguments: Any) -> tuple[Any, list[dict]]:
        found = best_start(*arguments)
        report.extend(found[1])
        return found

    estimator = DiagAttClassifier if family == "bernoulli" else DiagAttRegressor
    model = estimator(heads, solver="likelihood", random_state=seed)
    with (
        patch.object(starts, "starting_models", with_theory(starts.starting_models, wanted)),
        patch.object(likelihood, "best_start", watched),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # scores that are nearly uniform: seen in the table
        model.fit(train.X, y)
    return report, model.log_likelihood_ / N, 100 * crlr(test.rows, model.locate(test.X))


def compare(name: str, seed: int) -> dict[str, Any]:
    """Fit both ways; the lead of "theory" over the best other start, head by head."""
    report, with_it, located_with = fit(name, seed, wanted=True)
    _, without, located_without = fit(name, seed, wanted=False)
    leads = []
    for head in range(SETTINGS[name][1]):
        reached = {r["start"]: r["log_likelihood"] / N for r in report if r["head"] == head}
        others = max(value for start, value in reached.items() if start != "theory")
        leads.append(reached["theory"] - others if "theory" in reached else None)
    return {
        "leads": leads,
        "likelihood": [with_it, without],
        "located": [located_with, located_without],
    }


HEAD = (
    *("setting", "family", "heads fitted", "start built", "best", f"ahead > {AHEAD}"),
    *("median lead", "largest lead", "Δ likelihood, mean", "least", "most"),
    *("located with", "without", "Δ least", "most"),
)


def summary(name: str, family: str, results: list[dict]) -> list[str]:
    """Return one line of the table; differences are with the theory start less without it."""
    leads = [lead for r in results for lead in r["leads"]]
    built = np.array([lead for lead in leads if lead is not None])
    gain = np.array([r["likelihood"][0] - r["likelihood"][1] for r in results])
    located = np.array([r["located"] for r in results])
    apart = located[:, 0] - located[:, 1]
    return [
        *(name, family, str(len(leads)), str(len(built)), str((built > 0).sum())),
        *(str((built > AHEAD).sum()), f"{np.median(built):+.4f}", f"{built.max():+.4f}"),
        *(f"{gain.mean():+.5f}", f"{gain.min():+.4f}", f"{gain.max():+.4f}"),
        *(f"{m:.2f} %" for m in located.mean(axis=0)),
        *(f"{apart.min():+.2f}", f"{apart.max():+.2f}"),
    ]


def main() -> None:
    """Fit what is missing, print the table and write it to results/theory_start.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    seeds = range(parser.parse_args().seeds)
    torch.set_num_threads(1)
    found: dict[str, list[dict]] = {name: [] for name in SETTINGS}
    for seed in seeds:
        for name in SETTINGS:
            key = f"{name}.{seed}"
            found[name].append(remember("theory_start", key, lambda: compare(name, seed)))  # noqa: B023
            print(key, found[name][-1], flush=True)
    rows = [summary(name, SETTINGS[name][0], results) for name, results in found.items()]
    everything = [result for results in found.values() for result in results]
    rows.append(summary("all", "both", everything))
    view = Table(*HEAD)
    for row in rows:
        view.add_row(*row)
    Console(width=200).print(view)
    title = (
        "# What the theory start brings\n\n"
        f"EM on {N} samples, {len(seeds)} seeds per setting. Likelihoods and leads are in nats per "
        "sample; a lead is over the best of the other three starts after the trial iterations, and "
        "a difference (Δ) is the final fit with the theory start less the one without it. Located: "
        f"active rows found in {N_TEST} new samples.\n\n"
    )
    text = f"{title}{markdown_table(HEAD, rows)}\n"
    (FOLDER / "theory_start.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
