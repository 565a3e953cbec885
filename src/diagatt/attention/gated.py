r"""Gated attention pooling of Ilse, Tomczak and Welling (2018), as a torch module.

The standard of multiple-instance learning. Every row h_k of a sample gets a weight from a small
network with a gate, and the weighted mean row predicts:

.. math::

    a_k &∝ \exp\{ w^\top (\tanh(V h_k) ⊙ \mathrm{sigm}(U h_k)) \}, \quad \sum_k a_k = 1 \\
    z   &= ⟨β, \textstyle\sum_k a_k h_k⟩ + b

Against the source: rows are taken as they are (no network that embeds them first), and the link
is that of the response's family, not always a logistic one.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from diagatt.attention.module import AttentionModule
from diagatt.segments import sample_blocks, segment_softmax, segment_sum

# Hidden values (rows × hidden units) that go through at once: 64 MB per matrix in float32.
BLOCK_HIDDEN = 2**24


class GatedAttention(AttentionModule):
    """One gated attention pooling over ragged samples.

    Parameters
    ----------
    n_features : int
        Features per row, d.
    n_hidden : int
        Hidden units L: V and U are L×d, w has L entries.
    n_outputs : int
        Linear predictors K: 1, or the count of classes.

    Examples
    --------
    >>> model = GatedAttention(n_features=4, n_hidden=8)
    >>> values, offsets = torch.randn(5, 4), torch.tensor([0, 2, 5])  # samples of 2 and 3 rows
    >>> model(values, offsets).shape
    torch.Size([2, 1])
    """

    def __init__(self, n_features: int, n_hidden: int, n_outputs: int = 1) -> None:
        super().__init__()
        self.n_features, self.n_hidden, self.n_outputs = n_features, n_hidden, n_outputs
        self.content = nn.Parameter(torch.empty(n_hidden, n_features))
        self.gate = nn.Parameter(torch.empty(n_hidden, n_features))
        self.mixing = nn.Parameter(torch.empty(n_hidden))
        self.value = nn.Parameter(torch.zeros(n_features, n_outputs))
        self.intercept = nn.Parameter(torch.zeros(n_outputs))
        self.reset_parameters(1.0, torch.Generator().manual_seed(0))

    @torch.no_grad()
    def reset_parameters(self, scale: float, generator: torch.Generator) -> None:
        """Draw V, U from N(0, scale²/d) and w from N(0, scale²/L); β and b start at zero."""
        spread = {"content": self.n_features, "gate": self.n_features, "mixing": self.n_hidden}
        for name, fan_in in spread.items():
            parameter = getattr(self, name)
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(drawn * scale / fan_in**0.5)
        self.value.zero_()
        self.intercept.zero_()

    def blocks(self, offsets: Tensor) -> Iterator[tuple[slice, slice]]:
        """Cut samples into blocks whose hidden units fit `BLOCK_HIDDEN`."""
        return sample_blocks(offsets, max(1, BLOCK_HIDDEN // self.n_hidden))

    def scores(self, values: Tensor) -> Tensor:
        """Return the logarithm of the unnormalized weight of every row, (N,)."""
        content = torch.tanh(values @ self.content.T)  # (N, L)
        gate = torch.sigmoid(values @ self.gate.T)  # (N, L)
        return (content * gate) @ self.mixing

    def attention(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return weights a_k of every row, (N, 1); those of a sample sum to 1."""
        return segment_softmax(self.scores(values)[:, None], offsets)

    def features(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the weighted mean row of every sample, (n, d)."""
        return segment_sum(self.attention(values, offsets) * values, offsets)

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        covariates: Tensor | None = None,
        offset: Tensor | None = None,
    ) -> Tensor:
        """Return linear predictors z, (n, K); covariates play no part."""
        effects = values @ self.value  # (N, K): project rows first, no pooled rows needed
        z = segment_sum(self.attention(values, offsets) * effects, offsets) + self.intercept
        return z if offset is None else z + offset
