"""Survival: distance to the Bayes oracle, and what the partial likelihood costs.

Run ``python -m benchmarks.survival`` (minutes; a killed run resumes where it stopped). Samples have
10 rows of 6 features, one of which decides the hazard; n = 2000, and 30 or 60 % are censored. Then
one pass with its gradient over 100,000 samples, gaussian and Cox, in one run.
``--table`` only writes what is stored into ``results/survival.md``.
"""

import argparse
import time
import warnings
from functools import partial

import numpy as np
import torch

from benchmarks.store import FOLDER, recall, remember
from diagatt import DiagAttSurvival, simulate
from diagatt.families import get_family
from diagatt.metrics import concordance, crlr
from diagatt.solvers import Gradient, Likelihood, Mixture, Model
from diagatt.solvers.gradient.train import backward
from diagatt.solvers.problem import Samples

NAME = "survival"
METHODS = {
    "cox, likelihood": {"family": "cox", "solver": Likelihood()},
    "cox, mixture": {"family": "cox", "solver": Mixture()},
    "cox, gradient": {"family": "cox", "solver": Gradient()},
    "weibull, likelihood": {"family": "weibull", "solver": Likelihood()},
    "lognormal, likelihood": {"family": "lognormal", "solver": Likelihood()},
    "cox, default": {"family": "cox"},
}
CENSORING, SEEDS, N = (0.3, 0.6), (0, 1, 2), 2000


def draw(censoring: float, seed: int):
    """Draw training and test samples."""
    train = simulate.survival(
        N, p=10, d=6, mu=(2,), sigma2=(4,), beta=[0.5, -0.5, 0.4, 0.3, 0.2, 0.0],
        shape=1.5, censoring=censoring, seed=(seed, 0), dtype=np.float64,
    )  # fmt: skip
    return train, train.draw(N, seed=(seed, 1))


def measure(method: str, censoring: float, seed: int) -> dict:
    """Fit one method and compare it with the oracle on new samples."""
    train, test = draw(censoring, seed)
    oracle = test.oracle()
    event, times = test.y["event"], test.y["time"]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DiagAttSurvival(random_state=seed, **METHODS[method]).fit(train.X, train.y)
    seconds = time.process_time() - began
    return {
        "concordance": concordance(event, times, model.predict(test.X)),
        "oracle_concordance": concordance(event, times, oracle.prediction),
        "crlr": crlr(test.rows, model.locate(test.X)),
        "oracle_crlr": crlr(test.rows, oracle.rows),
        "censored": 1 - float(event.mean()),
        "seconds": seconds,
    }


def cost(n: int = 100_000, repeats: int = 7) -> dict:
    """Time a pass with its gradient, gaussian and Cox in turns; return the medians."""
    data = simulate.survival(n, p=10, d=6, mu=(2,), sigma2=(4,), seed=0)
    values, offsets = data.X.to_torch("cpu", torch.float32)
    times = torch.from_numpy(data.y["time"].copy()).float()
    event = torch.from_numpy(data.y["event"].copy())
    three = torch.stack([torch.zeros(n), times, torch.where(event, times, torch.inf)], dim=1)
    none, weights = torch.empty(n, 0), torch.ones(n)
    problems = {
        "gaussian": Samples(get_family("gaussian"), values, offsets, times, weights, none),
        "cox": Samples(get_family("cox"), values, offsets, three, weights, none),
    }
    module, how = Model().module(problems["gaussian"]), Gradient().training(Model())
    found: dict[str, list[float]] = {name: [] for name in problems}
    for _ in range(repeats):
        for name, problem in problems.items():
            module.zero_grad()
            began = time.perf_counter()
            backward(module, problem, how, float(n))
            found[name].append(time.perf_counter() - began)
    seconds = {name: float(np.median(all_of)) for name, all_of in found.items()}
    return {**seconds, "ratio": seconds["cox"] / seconds["gaussian"]}


def write_table() -> None:
    """Write what is stored as a table."""
    lines = [
        "# Survival against the Bayes oracle",
        "",
        f"n = {N}, 10 rows of 6 features, {len(SEEDS)} seeds; written by "
        "`python -m benchmarks.survival`.",
        "",
        "| censored | method | concordance | oracle | rows located | oracle | CPU seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    known = recall(NAME)
    for censoring in CENSORING:
        for method in METHODS:
            keys = [f"{method}/{censoring}/{seed}" for seed in SEEDS]
            stored = [known[key] for key in keys if key in known]
            if not stored:
                continue
            mean = {name: np.mean([line[name] for line in stored]) for name in stored[0]}
            lines.append(
                f"| {mean['censored']:.0%} | {method} | {mean['concordance']:.3f} | "
                f"{mean['oracle_concordance']:.3f} | {mean['crlr']:.1%} | "
                f"{mean['oracle_crlr']:.1%} | {mean['seconds']:.1f} |"
            )
    if (found := known.get("cost")) is not None:
        lines += [
            "",
            f"One pass with its gradient over 100,000 samples: gaussian {found['gaussian']:.2f} s, "
            f"Cox {found['cox']:.2f} s, {found['ratio']:.2f} times as long.",
        ]
    (FOLDER / f"{NAME}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure what is not stored yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        remember(NAME, "cost", cost)
        for seed in SEEDS:
            for censoring in CENSORING:
                for method in METHODS:
                    key = f"{method}/{censoring}/{seed}"
                    task = partial(measure, method, censoring, seed)
                    print(key, remember(NAME, key, task), flush=True)
    write_table()


if __name__ == "__main__":
    main()
