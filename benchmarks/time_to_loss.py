"""CPU seconds until a fit of ours is as good as a rival's, on new samples.

``python -m benchmarks.time_to_loss`` fits torchmil's ABMIL and milearn's network, as the bench does
(`rivals/`, each with its own early stopping), on three sets of the bench, and our methods on the
same splits. A method of ours *reaches* a rival if its log-loss on the test part is not larger; the
ratio is that of the CPU seconds of the two fits (one thread, imports and first calls left out). All
our methods that are listed are shown, whether they reach or not: none is chosen by its test loss.
Fits are kept in ``results/time_to_loss.jsonl``.
"""

import argparse
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch

from benchmarks.store import remember
from diagatt.bench import cells, methods
from diagatt.bench.methods import get_method, load_methods
from diagatt.bench.sets import get_set, load_set, split
from diagatt.ragged import RaggedRows

SETS = ("musk1", "elephant", "digits-n300")
RIVALS = ("torchmil-abmil", "milearn")
OURS = ("pooled", "diagatt-likelihood", "diagatt-mixture", "diagatt")
GOAL = 0.1


def fitted(method: str, name: str, number: int) -> dict[str, float]:
    """Fit a method on one split; return its CPU seconds and its log-loss on the test part."""
    chosen = get_set(name)
    bags, (train, test) = load_set(chosen), split(chosen, number)
    warm_up(method)
    spent: list[float] = []

    def measured(call):
        start = time.process_time()
        result = call()
        spent.append(time.process_time() - start)
        return result, spent[-1], 0.0

    before, cells.measured = cells.measured, measured
    try:
        found = cells.answer(get_method(method), bags, train, test, seed=number)
    finally:
        cells.measured = before
    return {"seconds": spent[0], "log_loss": -found["log_score"]}


@cache
def warm_up(method: str) -> None:
    """Fit a toy, so that imports and first calls are not counted."""
    X = RaggedRows(np.random.default_rng(0).normal(size=(120, 3)), np.arange(0, 121, 3))
    get_method(method).make("binary", "auto", seed=0).fit(X, np.arange(40) % 2)


def results(splits: int, ours: list[str]) -> dict[tuple[str, str, int], dict[str, float]]:
    """Return what every method did on every split of every set."""
    return {
        (name, method, number): remember(
            "time_to_loss",
            f"{name} {method} {number}",
            lambda name=name, method=method, number=number: fitted(method, name, number),
        )
        for name in SETS
        for number in range(splits)
        for method in (*RIVALS, *ours)
    }


def report(
    found: dict[tuple[str, str, int], dict[str, float]], splits: int, ours: list[str]
) -> list[str]:
    """Return the lines of the table: means over splits, and the ratio where a rival is reached."""

    def mean(name: str, method: str, key: str) -> float:
        return float(np.mean([found[name, method, k][key] for k in range(splits)]))

    lines = ["| set | rival | its CPU s | its log-loss | " + " | ".join(ours) + " |"]
    lines.append("|---" * (4 + len(ours)) + "|")
    for name in SETS:
        for rival in RIVALS:
            theirs, loss = mean(name, rival, "seconds"), mean(name, rival, "log_loss")
            shown = []
            for method in ours:
                own_loss, seconds = mean(name, method, "log_loss"), mean(name, method, "seconds")
                verdict = f"{seconds / theirs:.2f}" if own_loss <= loss else "not reached"
                shown.append(f"{verdict} ({seconds:.1f} s, {own_loss:.3f})")
            line = [name, rival, f"{theirs:.1f}", f"{loss:.3f}", *shown]
            lines.append("| " + " | ".join(line) + " |")
    for method in ours:
        pairs = [(name, rival) for name in SETS for rival in RIVALS]
        reached = [p for p in pairs if mean(p[0], method, "log_loss") <= mean(*p, "log_loss")]
        ratios = [mean(p[0], method, "seconds") / mean(*p, "seconds") for p in reached]
        worst = f", at most {max(ratios):.2f} of the rival's time" if ratios else ""
        met = sum(ratio <= GOAL for ratio in ratios)
        said = f"{method}: reaches {len(reached)} of {len(pairs)}{worst}"
        lines.append(f"{said}; within a tenth {met} (goal {len(pairs)})")
    return lines


def main() -> None:
    """Run what has not been run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=1, help="splits of each set")
    parser.add_argument("--ours", nargs="+", default=list(OURS), help="our methods")
    options = parser.parse_args()
    splits, ours = options.splits, options.ours
    torch.set_num_threads(1)
    methods.add_own_methods()
    load_methods(Path(__file__).parent / "rivals")
    print(f"time to the log-loss of rivals, means over {splits} split(s), one thread")
    print(*report(results(splits, ours), splits, ours), sep="\n")


if __name__ == "__main__":
    main()
