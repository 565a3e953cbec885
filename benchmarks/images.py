"""Digits on canvases: diagonalized attention, StdAtt and pooled baselines; speed of making rows.

``python -m benchmarks.images`` (tens of minutes on one core) runs the fits that are missing in
`results/images.jsonl` and prints the table and the speed of making rows. There are two or ten
classes, 8×8 patches on 64×64 canvases, 4,000 training and 1,000 test images, which share no
handwritten digit. ``--speed`` prints only the speed.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import best_seconds
from benchmarks.store import recall, remember
from diagatt import PooledClassifier, StdAttClassifier
from diagatt.datasets.canvas import digit_canvas
from diagatt.images import ImageClassifier, PatchRows, columns_as_rows
from diagatt.metrics import accuracy, crlr

BACKGROUNDS = {
    "noise": {},
    "texture": {"background": "texture"},
    "twice the noise": {"noise": 0.4},
}
RUNS = [("noise", 0), ("noise", 1), ("twice the noise", 0), ("texture", 0), ("noise", 2)]
TASKS = {"4 or 9": (4, 9), "3 or 8": (3, 8), "ten": tuple(range(10))}
METHODS = {
    "DiagAtt (default)": lambda seed: None,
    "StdAtt": lambda seed: StdAttClassifier(max_epochs="auto", n_located=1, random_state=seed),
    "pooled, mean": lambda seed: PooledClassifier(ridge="auto", n_located=1, random_state=seed),
    "pooled, mean+max": lambda seed: PooledClassifier(
        "mean+max", ridge="auto", n_located=1, random_state=seed
    ),
}


def measure(task: str, background: str, method: str, seed: int) -> dict:
    """Return accuracy and CRLR on test images in percent, and the seconds of the fit."""
    train, test = digit_canvas(digits=TASKS[task], seed=seed, **BACKGROUNDS[background])
    model = ImageClassifier((8, 8), estimator=METHODS[method](seed), random_state=seed)
    start = time.perf_counter()
    model.fit(train.images, train.y)
    seconds = time.perf_counter() - start
    return {
        "accuracy": 100 * accuracy(test.y, model.predict(test.images)),
        "crlr": 100 * crlr(test.true_rows(model.patches_), model.locate(test.images)),
        "seconds": round(seconds, 1),
    }


def key(task: str, background: str, method: str, seed: int) -> str:
    """Return the key of a result in the store."""
    return f"{task}|{background}|{method}|{seed}"


def run_all() -> None:
    """Run the fits that are missing, canvas by canvas, so that an interrupted run is useful."""
    for (background, seed), task, method in product(RUNS, TASKS, METHODS):
        work = partial(measure, task, background, method, seed)
        remember("images", key(task, background, method, seed), work)


def main_table() -> Table:
    """Return the means over the stored seeds, with the minimum in parentheses."""
    stored = recall("images")
    table = Table(title="accuracy % / CRLR %: mean over seeds (lowest)")
    for column in ("classes, background", *METHODS):
        table.add_column(column, justify="right")
    for background, task in product(BACKGROUNDS, TASKS):
        cells = []
        for method in METHODS:
            keys = [key(task, background, method, s) for b, s in RUNS if b == background]
            found = [stored[k] for k in keys if k in stored]
            names = ("accuracy", "crlr") if found else ()
            cells.append(" / ".join(_cell([r[name] for r in found]) for name in names))
        table.add_row(f"{task}, {background}", *cells)
    return table


def _cell(values: list[float]) -> str:
    return f"{np.mean(values):.1f} ({min(values):.1f})"


def speed_table() -> Table:
    """Time 10,000 float32 images of 256×256, in ten batches so that 1 GB of memory suffices."""
    images = np.random.default_rng(0).random((1000, 256, 256), dtype=np.float32)
    table = Table(title="10,000 images of 256×256, seconds")
    for column in ("patch", "bare NumPy", "PatchRows", "speed", "copy"):
        table.add_column(column, justify="right")
    for d in (8, 16, 32):
        patches = PatchRows(d).fit(images)
        pair = (partial(_bare, images, d), partial(patches.transform, images))
        table.add_row(f"{d}×{d}", *_race(*pair), "yes")
    upright = np.ascontiguousarray(images.swapaxes(1, 2)).swapaxes(1, 2)  # column after column
    shared = np.shares_memory(columns_as_rows(upright).values, upright)
    race = _race(partial(np.array, images), partial(columns_as_rows, upright))
    table.add_row("columns (against a copy)", *race, "no" if shared else "yes")
    return table


def _bare(images: np.ndarray, d: int) -> np.ndarray:
    n, height, width = images.shape
    blocks = images.reshape(n, height // d, d, width // d, d).transpose(0, 3, 1, 4, 2)
    return blocks.reshape(-1, d * d)


def _race(bare: Callable[[], object], ours: Callable[[], object]) -> list[str]:
    """Alternate both for ten rounds, so that other work on the machine disturbs them equally."""
    rounds = [(best_seconds(bare, 1), best_seconds(ours, 1)) for _ in range(10)]
    first, second = (10 * min(times) for times in zip(*rounds, strict=True))
    return [f"{first:.2f}", f"{second:.2f}", f"{100 * first / second:.0f} %"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", action="store_true", help="print only the speed")
    console = Console()
    if not parser.parse_args().speed:
        run_all()
        console.print(main_table())
    console.print(speed_table())
