"""Tune, refit, test and time every competitor at n = 9000, (p, d) = (100, 70), s = 1.

Run ``python -m benchmarks.competitors`` (takes minutes). Each method runs in its own process, so
that peak memory is measured per method. Results are kept in ``results/competitors.jsonl``, and a
killed run resumes where it stopped. ``--seeds 0 1 2`` runs more replications, ``--only stdatt-1``
only some methods. Times are printed, none is asserted.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.store import remember

SETTING = "table1-p100-d70"
# Table 1 of the paper: RMSE, and CRLR in percent.
PAPER = {
    "grouplasso": (15.181, 9.97),
    "mdsp-stopped": (8.707, 31.00),
    "two-step": (15.483, 24.72),
    "stdatt-1": (14.913, 68.64),
    "stdatt-auto": (15.360, 69.76),
}


def make(name: str, seed: int) -> Any:
    """Return the estimator for one line of the table."""
    from diagatt.competitors.group_lasso import GroupLassoRegressor
    from diagatt.competitors.mdsp import MDSPRegressor
    from diagatt.competitors.standard import StdAttRegressor
    from diagatt.competitors.two_step import TwoStepRegressor
    from diagatt.estimators.gated import GatedAttentionRegressor
    from diagatt.estimators.pooled import PooledRegressor

    # The paper trains StdAtt without penalties.
    unpenalized = {"ridge": 0.0, "score_ridge": 0.0}
    methods: dict[str, Callable[[], Any]] = {
        "pooled": lambda: PooledRegressor(ridge="auto"),
        "pooled-mean+max": lambda: PooledRegressor("mean+max", ridge="auto"),
        "grouplasso": lambda: GroupLassoRegressor("auto"),
        "mdsp-stopped": lambda: MDSPRegressor.stopped(alpha="auto"),
        "mdsp-converged": lambda: MDSPRegressor("auto", max_steps=100),
        "two-step": lambda: TwoStepRegressor("auto"),
        "stdatt-1": lambda: StdAttRegressor(1, **unpenalized),
        "stdatt-1-epochs": lambda: StdAttRegressor(1, max_epochs="auto", **unpenalized),
        "stdatt-auto": lambda: StdAttRegressor("auto", **unpenalized),
        "gated": lambda: GatedAttentionRegressor(max_epochs="auto"),
    }
    if name not in methods:
        raise ValueError(f"unknown method {name!r}: choose among {list(methods)}.")
    return methods[name]().set_params(random_state=seed)


METHODS = (
    *("pooled", "pooled-mean+max", "grouplasso", "two-step", "mdsp-stopped", "mdsp-converged"),
    *("stdatt-1", "stdatt-1-epochs", "stdatt-auto", "gated"),
)


def measure(name: str, seed: int) -> dict[str, Any]:
    """Tune, refit on all training samples and test, in this process."""
    from diagatt import simulate
    from diagatt.metrics import crlr, rmse

    setting = simulate.paper_setting(SETTING)
    train, test = setting.draw(seed=(seed, 0)), setting.draw(setting.n_test, seed=(seed, 1))
    shown = (test.y,) if name.startswith("mdsp") else ()  # MDSP needs test responses
    start = time.perf_counter()
    model = make(name, seed).fit(train.X, train.y)
    fitted = time.perf_counter()
    result = {
        "rmse": rmse(test.y, model.predict(test.X, *shown)),
        "crlr": 100 * crlr(test.rows, model.locate(test.X, *shown)),
    }
    chosen = {f"{key}_": getattr(model, f"{key}_") for key in model._grids}
    return result | {
        "seconds": time.perf_counter() - start,
        "fit_seconds": fitted - start,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "chosen": chosen,
        "tried": [{k: v for k, v in r.items() if k != "folds"} for r in model.selection_],
    }


def stored(name: str, seed: int) -> dict[str, Any]:
    """Return the stored result of a method and seed, or measure it in a new process."""

    def compute() -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks.competitors", "--measure", name, str(seed)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    return remember("competitors", f"{SETTING}.{name}.{seed}", compute)


def table(results: dict[str, list[dict[str, Any]]], seeds: list[int]) -> Table:
    """Return one line per method: means over seeds next to the paper's figures."""
    lines = Table(title=f"{SETTING}, n = 9000, seeds {seeds}: tuned, refitted, tested")
    for column in ("method", "RMSE", "paper", "CRLR %", "paper", "seconds", "peak GB", "chosen"):
        lines.add_column(column, justify="left" if column in ("method", "chosen") else "right")
    for name, runs in results.items():
        mean = {k: sum(r[k] for r in runs) / len(runs) for k in ("rmse", "crlr", "seconds")}
        rmse, crlr = (f"{v:.2f}" for v in PAPER[name]) if name in PAPER else ("–", "–")
        cells = (f"{mean['rmse']:.3f}", rmse, f"{mean['crlr']:.1f}", crlr, f"{mean['seconds']:.0f}")
        chosen = "; ".join(", ".join(f"{k}={v}" for k, v in r["chosen"].items()) for r in runs)
        lines.add_row(name, *cells, f"{max(r['peak_gb'] for r in runs):.2f}", chosen)
    return lines


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--measure", nargs=2, metavar=("METHOD", "SEED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, seed = arguments.measure
        print(json.dumps(measure(name, int(seed))))
        return
    console, results = Console(width=150), {}
    for name in arguments.only:
        results[name] = [stored(name, seed) for seed in arguments.seeds]
        run = results[name][-1]
        console.print(f"{name}: RMSE {run['rmse']:.3f}, CRLR {run['crlr']:.1f} %")
    console.print(table(results, arguments.seeds))


if __name__ == "__main__":
    main()
