"""Speed relative to the limit of the hardware: ratios of times measured in one run.

Run ``python -m benchmarks.speed`` on a quiet machine (``kernels``, ``startup`` and ``paper`` name
parts of it). The limit is the fastest blocked matrix product of the same shapes,
(900000 × 70)·(70 × 70) in float32 into a reused block. A pass that scores all rows (2Nd²) and sums
their weighted Gram matrix (2Nd²) counts as 4Nd² operations; so does scoring all rows twice. With
one thread, the default, seconds are those of the processor, and the functions take turns.
"""

import argparse
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.measure import best_in_turn, child_seconds, peak_extra_bytes
from benchmarks.rivals.padded import PaddedDiagAtt, train_epoch
from diagatt import DiagAttRegressor, simulate
from diagatt.families import get_family
from diagatt.metrics import rmse
from diagatt.scores import get_score_form
from diagatt.solvers import Likelihood, Model
from diagatt.solvers.likelihood.em import EM, Expectation
from diagatt.solvers.problem import Samples

PAPER_RMSE = 7.294


def problem_of(data) -> Samples:
    """Return the simulation as a problem for the solvers."""
    values, offsets = data.X.to_torch()
    y, ones = torch.as_tensor(data.y).to(values), torch.ones(len(data.y))
    return Samples(get_family("gaussian"), values, offsets, y, ones, torch.zeros(len(ones), 0))


def blocked_product(values: torch.Tensor, rows: int):
    """Return a function that multiplies all rows with a square matrix, block by block."""
    d, W = values.shape[1], torch.randn(values.shape[1], values.shape[1])
    out = torch.empty(rows, d)

    def run() -> None:
        for start in range(0, len(values), rows):
            block = values[start : start + rows]
            torch.mm(block, W, out=out[: len(block)])

    return run


class Iteration:
    """One EM iteration at the optimum of a problem."""

    def __init__(self, problem: Samples, model=None) -> None:
        self.model = model or Likelihood().fit(problem, Model(), seed=0).state
        self.em = EM(Expectation(problem, get_score_form("affine")), Likelihood().settings(Model()))

    def __call__(self) -> None:
        """Run E-step and M-step."""
        self.em.maximize(self.em.expect(self.model), self.model.response)


def extra_memory() -> float:
    """Return the peak extra memory of an EM iteration, as a fraction of the data's size."""
    train = simulate.paper_setting("table1-p100-d70").draw(seed=(0, 0))
    problem = problem_of(train)
    model = Likelihood().fit(problem.take(torch.arange(500)), Model(), seed=0).state
    return peak_extra_bytes(lambda: Iteration(problem, model)()) / train.X.nbytes


def exponents(model, clock) -> tuple[float, float]:
    """Fit the exponents of an iteration's cost in n and in p."""
    found = []
    for name, sizes in [("n", (2000, 4000, 8000)), ("p", (50, 100, 200))]:
        seconds = []
        for size in sizes:
            options = {"n": 4000, "p": 100, "d": 70, name: size}
            problem = problem_of(simulate.regression(**options, seed=0))
            seconds += best_in_turn([Iteration(problem, model)], 7, clock)
        found.append(float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]))
    return found[0], found[1]


def time_to_paper(train, test, clock) -> tuple[float, float, float, float]:
    """Time padded PyTorch and our likelihood solver until they reach the paper's test RMSE."""
    torch.manual_seed(0)
    X = torch.from_numpy(np.array(train.X.values)).reshape(len(train.X), -1, train.X.n_features)
    X_test = torch.from_numpy(np.array(test.X.values)).reshape(len(test.X), -1, X.shape[2])
    y = torch.as_tensor(train.y).float()
    rival = PaddedDiagAtt(X.shape[2])
    optimizer = torch.optim.Adam(rival.parameters())
    theirs, error = 0.0, np.inf
    for _ in range(60):
        start = clock()
        train_epoch(rival, optimizer, X, y, batch=32)
        theirs += clock() - start
        with torch.no_grad():
            error = rmse(test.y, rival(X_test).numpy())
        if error <= PAPER_RMSE:
            break
    start = clock()
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(train.X, train.y)
    ours = clock() - start
    return theirs, error, ours, rmse(test.y, model.predict(test.X))


def kernels(add, clock) -> None:
    """Measure EM iterations and predictions against the limit, and what an iteration needs."""
    train = simulate.paper_setting("table1-p100-d70").draw(seed=(0, 0))
    problem = problem_of(train)
    N, d = problem.values.shape
    iteration = Iteration(problem)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(train.X, train.y)
    products = [blocked_product(problem.values, rows) for rows in (2048, 4096, 8192, 12000)]
    both = lambda: (model.predict(train.X), model.locate(train.X))  # noqa: E731
    *limits, em, read = best_in_turn([*products, iteration, both], 7, clock)
    best = 2 * N * d * d / min(limits) / 1e9
    add("limit, GFLOP/s", f"{best:.0f}", "")
    for name, seconds in (("EM iteration", em), ("predict + locate", read)):
        share = 4 * N * d * d / seconds / 1e9 / best
        add(f"{name}, of the limit", f"{100 * share:.0f} %", "≥ 75 %")
    with get_context("spawn").Pool(1) as pool:  # a new process, with no memory to reuse
        extra = pool.apply(extra_memory)
    add("peak extra memory of an iteration / data", f"{100 * extra:.0f} %", "≤ 30 %")
    in_n, in_p = exponents(iteration.model, clock)
    add("cost exponent in n", f"{in_n:.2f}", "0.9–1.1")
    add("cost exponent in p", f"{in_p:.2f}", "0.9–1.1")


def startup(add, clock) -> None:
    """Measure imports and `diagatt info`, in CPU seconds of new processes."""
    python = [sys.executable, "-c"]
    estimator = child_seconds([*python, "from diagatt import DiagAttClassifier"])
    others = child_seconds([*python, "import torch, sklearn.base"])
    add("import of an estimator, CPU s", f"{estimator:.2f}", "≤ 2")
    add("  of which torch and sklearn.base", f"{others:.2f}", "")
    data = simulate.regression(60, p=4, d=3, seed=0)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/m.safetensors")
        command = [sys.executable, "-m", "diagatt"]
        info = child_seconds([*command, "info", f"{folder}/m.safetensors"])
        Path(folder, "t.csv").write_text("sample,a,y\n0,1,2\n1,2,3\n", encoding="utf-8")
        wrong = [*command, "fit", f"{folder}/t.csv", "--sample", "sample", "--target", "none"]
        refused = child_seconds([*wrong, "-o", f"{folder}/new"], fails=True)
    add("diagatt info, CPU s", f"{info:.2f}", "≤ 1")
    add("diagatt fit with a wrong column, CPU s", f"{refused:.2f}", "≤ 1")


def paper(add, clock) -> None:
    """Measure the time to the paper's accuracy."""
    setting = simulate.paper_setting("table1-p100-d70")
    train, test = setting.draw(seed=(0, 0)), setting.draw(setting.n_test, seed=(0, 1))
    theirs, their_error, ours, our_error = time_to_paper(train, test, clock)
    add("padded PyTorch to RMSE 7.294, s", f"{theirs:.1f} (RMSE {their_error:.2f})", "")
    add("likelihood fit, s", f"{ours:.1f} (RMSE {our_error:.2f})", "")
    add("  times faster", f"{theirs / ours:.1f}×", "≥ 10×")


def main() -> None:
    """Measure, and print each number next to the promised one."""
    parts = {"kernels": kernels, "startup": startup, "paper": paper}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=list(parts))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    table = Table(title=f"n = 9000, (p, d) = (100, 70), float32, {options.threads} thread(s)")
    for column in ("", "measured", "promised"):
        table.add_column(column, justify="left" if not column else "right")
    for name in options.what:
        parts[name](table.add_row, clock)
    Console().print(table)


if __name__ == "__main__":
    main()
