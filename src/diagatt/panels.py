r"""Quadratic forms of many rows with little more than half of the work of a product with W.

x W xᵀ depends on the symmetric part S = (W + Wᵀ)/2 only, and of that one triangle is enough. With
columns cut at 0 = c₀ < c₁ < … < c_m = d, the panel P_k holds rows 0 to c_{k+1} of the columns c_k
to c_{k+1} of S, those above the diagonal block doubled, and

.. math:: x W x^\top = \sum_k ⟨x_{0:c_{k+1}} P_k,\; x_{c_k:c_{k+1}}⟩.

Panels of equal width do (1 + 1/m)/2 of the multiplications. They are cut at multiples of 16, and
the last one is filled up to a multiple of 8 with the columns of a linear map, whose products come
along: matrix products of other widths are slower, by a sixth at 70.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

# Below this many features or rows, cutting W costs more than it saves.
LEAST_FEATURES, LEAST_ROWS = 65, 1024
# About this many columns per panel, and this many panels: narrower products are less efficient.
PANEL_COLUMNS, MOST_PANELS = 48, 8


def is_worth_it(values: Tensor) -> bool:
    """Whether `PanelForms` of these rows take less time than products with W."""
    return values.shape[1] >= LEAST_FEATURES and len(values) >= LEAST_ROWS


def panel_cuts(d: int) -> list[int]:
    """Return where the columns are cut.

    Examples
    --------
    >>> panel_cuts(70), panel_cuts(256)
    ([0, 32, 70], [0, 48, 96, 160, 208, 256])
    """
    count = min(max(d // PANEL_COLUMNS, 2), MOST_PANELS)
    return sorted({0, d, *(round(d * k / count / 16) * 16 for k in range(1, count))})


class PanelForms:
    """Forms x W_r xᵀ and products x U of blocks of rows.

    Parameters
    ----------
    query_key : tensor of shape (R, d, d)
    linear : tensor of shape (d, L)
        U.
    scratch : callable
        Returns memory of a given shape, whose content does not matter, like a given tensor.
    """

    def __init__(
        self,
        query_key: Tensor,
        linear: Tensor,
        scratch: Callable[[Tensor, tuple[int, ...]], Tensor],
    ) -> None:
        self.d, self.n_linear = linear.shape
        self.width = -(-(self.d + self.n_linear) // 8) * 8
        fill = linear.new_zeros(self.d, self.width - self.d - self.n_linear)
        self.heads = [
            _panels(W, torch.cat([linear, fill], dim=1) if r == 0 else linear[:, :0])
            for r, W in enumerate(query_key)
        ]
        self.ones, self.scratch = linear.new_ones(self.d), scratch

    def __call__(self, block: Tensor, quadratic: Tensor, effects: Tensor) -> None:
        """Write the forms, (B, R), and the products, (L, B), of a block of rows, (B, d)."""
        d, rows = self.d, len(block)
        memory = self.scratch(block, (rows * (self.width + d),))
        product = memory[: rows * self.width].view(rows, self.width)
        terms = memory[rows * self.width :].view(rows, d)
        for r, panels in enumerate(self.heads):
            for start, height, panel in panels:
                stop = start + panel.shape[1]
                torch.mm(block[:, :height], panel, out=product[:, start:stop])
            torch.mul(product[:, :d], block, out=terms)
            torch.mv(terms, self.ones, out=quadratic[:, r])
            if r == 0:
                effects.copy_(product[:, d : d + self.n_linear].T)


def _panels(W: Tensor, beside: Tensor) -> list[tuple[int, int, Tensor]]:
    """Return first column, count of rows, and entries of every panel; the last has more columns."""
    d, symmetric, panels = len(W), (W + W.T) / 2, []
    for start, stop in pairwise(panel_cuts(d)):
        panel = symmetric[:stop, start:stop].clone()
        panel[:start] *= 2
        if stop == d:
            panel = torch.cat([panel, beside], dim=1)
        panels.append((start, stop, panel))
    return panels
