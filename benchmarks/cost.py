"""What an iteration of the likelihood solver costs: arithmetic, bytes read, bytes on the wire.

``python -m benchmarks.cost`` measures CPU seconds of iterations in memory (one thread) beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["IterationCost"]


@dataclass(frozen=True)
class IterationCost:
    r"""Cost of one EM iteration (one pass over all rows) of the likelihood solver.

    With N rows of d features, R heads, context of q (0, 1 or d + 1 for quadratic, affine and
    contextual scores), m − 1 covariates, K outputs and k processes:

    .. math::
       \text{flops} &= N (2Rd² + 3Rd + 2dK), \qquad \text{bytes read} = 4Nd \text{ (float32)}, \\
       S &= 8 \bigl(3 + Rd² + Rdq + (Rd + m)K + (Rd + m)²\bigr), \qquad
       \text{bytes sent a process} = 2 \tfrac{k - 1}{k} S .

    Flops are those of scoring every row; rows that carry weight cost about as much again, but are
    few. S is the size of the sums, which does not depend on N; an all-reduce in a ring sends each
    of them nearly twice.

    Parameters
    ----------
    n_rows, n_features, n_heads : int
        N, d, R.
    score_form : {"quadratic", "affine", "contextual"}
    n_covariates, n_outputs, processes : int
        m − 1, K, k.
    bytes_a_number : int
        4 for float32, 8 for float64.

    Examples
    --------
    A billion samples of 100 rows with 70 features on 100 machines:

    >>> cost = IterationCost(n_rows=100 * 10**9, n_features=70, processes=100)
    >>> f"{cost.flops:.1e} flops, {cost.bytes_read / 1e12:.0f} TB read"
    '1.0e+15 flops, 28 TB read'
    >>> f"{cost.bytes_sent / 1e3:.0f} kB sent by each"
    '160 kB sent by each'
    """

    n_rows: int
    n_features: int
    n_heads: int = 1
    score_form: str = "affine"
    n_covariates: int = 0
    n_outputs: int = 1
    processes: int = 1
    bytes_a_number: int = 4

    @property
    def flops(self) -> int:
        """Multiplications and additions that score all rows."""
        d, R = self.n_features, self.n_heads
        return self.n_rows * (2 * R * d * d + 3 * R * d + 2 * d * self.n_outputs)

    @property
    def bytes_read(self) -> int:
        """Bytes of all rows."""
        return self.n_rows * self.n_features * self.bytes_a_number

    @property
    def bytes_of_sums(self) -> int:
        """What is added up over shards and processes, S."""
        d, R, K = self.n_features, self.n_heads, self.n_outputs
        q = {"quadratic": 0, "affine": 1, "contextual": d + 1}[self.score_form]
        size = R * d + 1 + self.n_covariates
        return 8 * (4 + R * d * d + R * d * q + size * K + size * size)

    @property
    def bytes_sent(self) -> float:
        """Bytes that each process sends, in a ring."""
        return 2 * (self.processes - 1) / self.processes * self.bytes_of_sums


# ---------------------------------------------------------------------- measured

POINTS: list[dict[str, Any]] = [
    *({"n": n} for n in (1000, 2000, 4000)),
    *({"p": p} for p in (50, 200)),
    *({"d": d} for d in (10, 35, 140, 280)),
    {"heads": 2},
    *({"family": family} for family in ("bernoulli", "poisson", "gamma")),
]


def measured() -> Iterator[str]:
    """Time iterations at points around n = 2000, p = 100, d = 70, one head, gaussian."""
    yield "| n | p | d | heads | family | CPU ms | ns per row | Gflop/s of the model |"
    yield "|---|---|---|---|---|---|---|---|"
    for point in POINTS:
        at = {"n": 2000, "p": 100, "d": 70, "heads": 1, "family": "gaussian", **point}
        seconds, rows = _seconds(**at), at["n"] * at["p"]
        flops = IterationCost(rows, at["d"], at["heads"]).flops
        cells = [*at.values(), f"{1e3 * seconds:.0f}", f"{1e9 * seconds / rows:.0f}"]
        yield "| " + " | ".join(map(str, [*cells, f"{flops / seconds / 1e9:.0f}"])) + " |"


def _seconds(n: int, p: int, d: int, heads: int, family: str) -> float:
    """Return CPU seconds of an EM iteration, at a model that was fitted to some of the samples."""
    import torch

    from benchmarks.measure import best_in_turn
    from benchmarks.speed import Iteration
    from diagatt import simulate
    from diagatt.families import get_family
    from diagatt.solvers import Likelihood, Model
    from diagatt.solvers.problem import Samples

    data = simulate.regression(n, p=p, d=d, mu=(2.0,) * heads, sigma2=(2.0,) * heads, seed=0)
    values, offsets = data.X.to_torch()
    z = torch.as_tensor(data.y).to(values)
    z = (z - z.mean()) / z.std()
    responses = {"gaussian": z, "bernoulli": (z > 0).to(z), "gamma": z.exp()}
    y = responses[family] if family in responses else z.exp().floor()
    ones = torch.ones(n)
    problem = Samples(get_family(family), values, offsets, y, ones, torch.zeros(n, 0))
    part = problem.take(torch.arange(min(n, 300)))
    state = Likelihood(max_iterations=5).fit(part, Model(n_heads=heads), seed=0).state
    return best_in_turn([Iteration(problem, state)], 5)[0]


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    for line in measured():
        print(line, flush=True)
