"""Time and extra memory of one training epoch, with packed rows and with a padded tensor.

Run ``python -m benchmarks.packed_vs_padded``. Sample lengths resemble those of real text: median
13, mean 15, maximum 98. Both have the same model, parameters, batches and optimizer, and are
measured in one run.
"""

from multiprocessing import get_context

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.measure import best_seconds, peak_extra_bytes
from benchmarks.rivals.padded import PaddedDiagAtt, train_epoch
from diagatt import DiagonalAttention, RaggedRows
from diagatt.families import get_family
from diagatt.solvers import Gradient, Model
from diagatt.solvers.gradient.adam import AdamRun
from diagatt.solvers.problem import Samples

N, D, BATCH = 3000, 384, 32


def text_like_lengths(rng: np.random.Generator) -> np.ndarray:
    """Draw log-normal lengths with median 13, mean 15 and maximum 98."""
    lengths = np.clip(np.round(rng.lognormal(np.log(13), 0.53, N)), 1, 98).astype(int)
    lengths[0] = 98
    return lengths


def make_data() -> tuple[RaggedRows, torch.Tensor]:
    """Draw samples of random rows with random responses."""
    rng = np.random.default_rng(0)
    lengths = text_like_lengths(rng)
    X = RaggedRows.from_samples([rng.standard_normal((p, D), dtype=np.float32) for p in lengths])
    return X, torch.from_numpy(rng.standard_normal(N).astype(np.float32))


def packed(X: RaggedRows, y: torch.Tensor) -> None:
    """Train our module for one epoch."""
    values, offsets = X.to_torch()
    module = DiagonalAttention(D, parameterization="factored", temperature=100.0)
    problem = Samples(get_family("gaussian"), values, offsets, y, torch.ones(N), torch.zeros(N, 0))
    solver = Gradient(batch_size=BATCH, max_epochs=1, learning_rate=1e-3, score_ridge=0.0)
    settings = solver.training(Model(ridge=0.0))
    AdamRun(module, problem, settings, seed=0).run()


def padded(X: RaggedRows, y: torch.Tensor) -> None:
    """Train the padded rival for one epoch."""
    torch.manual_seed(0)
    array, mask = (torch.from_numpy(a) for a in X.to_padded())
    rival = PaddedDiagAtt(D, scale=0.1)
    train_epoch(rival, torch.optim.Adam(rival.parameters()), array, y, BATCH, mask)


def measure(name: str) -> tuple[float, float]:
    """Return seconds and MiB of one epoch, in a new process so that no memory is reused."""
    epoch, (X, y) = {"packed": packed, "padded": padded}[name], make_data()
    memory = peak_extra_bytes(lambda: epoch(X, y)) / 2**20
    return best_seconds(lambda: epoch(X, y), 3), memory


def main() -> None:
    """Measure, print, and say whether the promise is kept."""
    results = {}
    for name in ("padded", "packed"):
        with get_context("spawn").Pool(1) as pool:
            results[name] = pool.apply(measure, (name,))
    lengths = make_data()[0].lengths
    title = f"median {np.median(lengths):.0f}, mean {lengths.mean():.1f}, max {lengths.max()} rows"
    table = Table(title=f"One epoch, {N} samples, d = {D}; {title}")
    for column in ("", "seconds", "peak extra MiB"):
        table.add_column(column, justify="right")
    for name, (seconds, memory) in results.items():
        table.add_row(name, f"{seconds:.2f}", f"{memory:.0f}")
    faster, leaner = (a / b for a, b in zip(results["padded"], results["packed"], strict=True))
    table.add_row("ratio", f"{faster:.1f}×", f"{leaner:.1f}×", style="bold")
    Console().print(table)
    print(
        f"3× faster: {'yes' if faster >= 3 else 'NO'}; 4× leaner: {'yes' if leaner >= 4 else 'NO'}"
    )


if __name__ == "__main__":
    main()
