"""What an iteration of the likelihood solver costs: arithmetic, bytes read, bytes on the wire."""

from __future__ import annotations

from dataclasses import dataclass

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
