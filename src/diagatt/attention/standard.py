r"""Standard attention (paper, Section 3.1), as a torch module.

For a sample X, padded with zero rows to p of them, head r compares every row with every row:

.. math::

    A_r &= \mathrm{softmax}_{row}(X W_r X^\top / \sqrt d)      && p × p \\
    z   &= \sum_r ⟨A_r X, V_r⟩ + b                              && \text{(single1), (multi1)} \\
    C_r &= A_r^\top V_r, \quad z = ⟨X, \textstyle\sum_r C_r⟩ + b && \text{(stdatt)}

with W = W_Q W_Kᵀ and V ∈ R^{p×d}. The paper has no intercept b. Padding is not masked: zero rows
attend uniformly and are attended to with score 0, as supplement S7.1 describes the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from diagatt.attention.module import AttentionModule
from diagatt.segments import row_positions, sample_of_row

# p×p matrices per head that one gradient keeps at a time: scores, weights, and a gradient of each.
KEPT_MATRICES = 4


def attention_bytes(n_rows: int, n_features: int, n_heads: int, itemsize: int = 4) -> int:
    """Return the bytes that one sample's attention and its gradient need."""
    return KEPT_MATRICES * n_heads * n_rows * (n_rows + n_features) * itemsize


class StandardAttention(AttentionModule):
    """R heads of standard self-attention with one value matrix each.

    Parameters
    ----------
    n_features : int
        Features per row, d.
    n_rows : int
        Rows after padding, p: the longest sample.
    n_heads : int
        R.
    n_outputs : int
        Linear predictors K: 1, or the count of classes.
    memory_limit : float
        Bytes that attention matrices and their gradients may take. Samples go through in blocks
        of as many as fit; a single sample that does not fit is refused.

    Examples
    --------
    >>> model = StandardAttention(n_features=4, n_rows=3)
    >>> values, offsets = torch.randn(5, 4), torch.tensor([0, 2, 5])  # samples of 2 and 3 rows
    >>> model(values, offsets).shape
    torch.Size([2, 1])
    """

    def __init__(
        self,
        n_features: int,
        n_rows: int,
        n_heads: int = 1,
        n_outputs: int = 1,
        memory_limit: float = 2**30,
    ) -> None:
        super().__init__()
        self.n_features, self.n_rows = n_features, n_rows
        self.n_heads, self.n_outputs = n_heads, n_outputs
        self.memory_limit = memory_limit
        need = attention_bytes(n_rows, n_features, n_heads)
        if need > memory_limit:
            raise MemoryError(
                f"standard attention compares all pairs of a sample's {n_rows} rows: its "
                f"{n_rows}×{n_rows} matrices take {need / 2**30:.3g} GiB for one sample, "
                f"memory_limit allows {memory_limit / 2**30:.3g} GiB. Raise memory_limit, shorten "
                "the samples, or use diagonalized attention, whose cost grows with the rows only."
            )
        self.query = nn.Parameter(torch.empty(n_heads, n_features, n_features))
        self.key = nn.Parameter(torch.empty(n_heads, n_features, n_features))
        self.value = nn.Parameter(torch.zeros(n_heads, n_rows, n_features, n_outputs))
        self.intercept = nn.Parameter(torch.zeros(n_outputs))
        self.reset_parameters(1.0, torch.Generator().manual_seed(0))

    @classmethod
    def from_arrays(
        cls, query_key: Tensor, value: Tensor, intercept: Tensor, memory_limit: float = 2**30
    ) -> StandardAttention:
        """Make a module with given W (R, d, d), V (R, p, d, K) and b (K,)."""
        heads, n_rows, d, n_outputs = value.shape
        module = cls(d, n_rows, heads, n_outputs, memory_limit).to(value)
        parts = (query_key, torch.eye(d).expand(heads, d, d), value, intercept)  # W = W·I
        module.load_state_dict(dict(zip(module.state_dict(), parts, strict=True)))
        return module

    @torch.no_grad()
    def reset_parameters(self, scale: float, generator: torch.Generator) -> None:
        """Draw W_Q and W_K from N(0, scale²/d); values and intercept start at zero."""
        for factor in (self.query, self.key):
            drawn = torch.randn(factor.shape, generator=generator, dtype=torch.float64)
            factor.copy_(drawn * scale / self.n_features**0.5)
        self.value.zero_()
        self.intercept.zero_()

    def matrix(self) -> Tensor:
        """Return W_r = W_Q W_Kᵀ, (R, d, d)."""
        return self.query @ self.key.mT

    def blocks(self, offsets: Tensor) -> Iterator[tuple[slice, slice]]:
        """Cut samples into blocks of as many as `memory_limit` allows."""
        itemsize = self.value.element_size()
        need = attention_bytes(self.n_rows, self.n_features, self.n_heads, itemsize)
        size, n = max(1, int(self.memory_limit // need)), len(offsets) - 1
        for start in range(0, n, size):
            stop = min(start + size, n)
            yield slice(start, stop), slice(int(offsets[start]), int(offsets[stop]))

    def padded(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return samples with zero rows up to p, (b, p, d)."""
        lengths = offsets.diff()
        if bool((lengths == self.n_rows).all()):
            return values.reshape(len(lengths), self.n_rows, -1)
        sample = sample_of_row(offsets)
        result = values.new_zeros(len(lengths), self.n_rows, values.shape[1])
        result[sample, row_positions(offsets)] = values
        return result

    def attention(self, padded: Tensor) -> Tensor:
        """Return attention weights of every pair of rows, (b, R, p, p); lines sum to 1."""
        X = padded[:, None]  # (b, 1, p, d)
        scores = X @ self.matrix() @ X.mT / self.n_features**0.5  # (b, R, p, p)
        return torch.softmax(scores, dim=-1)

    def features(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return A_r X of all heads side by side, (b, R·p·d), which V multiplies."""
        X = self.padded(values, offsets)
        return (self.attention(X) @ X[:, None]).flatten(1)

    def row_effects(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return norms of the rows of C_r = A_rᵀ V_r (over features and outputs), (N, R)."""
        kappa = self.attention(self.padded(values, offsets))  # (b, R, p, p)
        effects = kappa.mT @ self.value.flatten(2)  # (b, R, p, d·K)
        norms = effects.norm(dim=-1).mT  # (b, p, R)
        position = torch.arange(self.n_rows, device=values.device)
        return norms[position < offsets.diff()[:, None]]
