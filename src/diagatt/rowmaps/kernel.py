r"""Row maps of a Gaussian kernel: scores and values may be any smooth function of a row.

With scaled rows u of k features, :math:`K(u, u') = e^{-‖u - u'‖²/k}`. A few training rows, the
landmarks :math:`u_1 … u_m`, span the functions that the map offers; mapped rows are the leading
principal components of the kernel on their span,

.. math:: m(x) = \bigl(K(u, u_1), …, K(u, u_m)\bigr)\, K_{mm}^{-1/2} V ,

centred. The mean of mapped rows is the mean embedding of a sample's rows: a regression on it sees
how rows are distributed, not only their mean.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from diagatt.rowmaps.base import RowMap, positive, proportional, row_blocks, settled, signed
from diagatt.rowmaps.extents import extents

# Landmarks at most, and rows per landmark at least: rows that are landmarks themselves are better
# described than new ones.
MOST_LANDMARKS, ROWS_PER_LANDMARK = 128, 4
# Rows at most that landmarks are chosen from.
MOST_CANDIDATES = 2000
# What landmarks leave of the kernel of a row below which it needs no landmark of its own.
LEAST_RESIDUAL = 1e-3
# Share of the kernel's variance that mapped rows keep, and eigenvalues of K that are rounding.
KEPT_OF_KERNEL, LEAST_EIGENVALUE = 0.98, 1e-5
# Decimals that do not depend on the order of rows or features.
DIGITS = 9


class Kernel(RowMap):
    """Features of unit variance, seen through a Gaussian kernel."""

    name = "kernel"
    always: ClassVar[frozenset[str]] = frozenset({"landmarks", "centre", "directions"})
    landmarks: Tensor  # (m, k)

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        u = settled(super()._transformed(values[weights > 0].double(), 0.0))
        self.register_buffer("landmarks", choose_landmarks(u))

    def _transformed(self, x: Tensor, rounding: float) -> Tensor:
        return _kernel(super()._transformed(x, rounding), self.landmarks)

    def _fit_subspace(self, values: Tensor, weights: Tensor, needed: int) -> None:
        """Keep the leading principal components of the kernel, scaled to a mean variance of one."""
        eigenvalues, vectors = torch.linalg.eigh(_kernel(self.landmarks, self.landmarks))
        large = eigenvalues > LEAST_EIGENVALUE * eigenvalues[-1]
        whitening = vectors[:, large] / eigenvalues[large].sqrt()  # (m, m')
        blocks = row_blocks(values)
        centre = reduce(add, (weights[rows] @ self._varying(values[rows]) for rows in blocks))

        def centred(rows: slice) -> Tensor:
            x = self._varying(values[rows]).sub_(centre) @ whitening
            return x.mul_(weights[rows].sqrt()[:, None])

        gram = reduce(add, (x.T @ x for x in map(centred, blocks)))
        variance, directions = torch.linalg.eigh(gram)
        variance, directions = variance.flip(0).clamp(min=0.0), directions.flip(1)
        shares = variance.cumsum(0) / positive(variance.sum())
        kept = min(int((shares < KEPT_OF_KERNEL).sum()) + 1, len(shares))
        directions = whitening @ directions[:, :kept] / positive(variance[:kept].mean().sqrt())
        self.register_buffer("centre", centre)
        self.register_buffer("directions", signed(directions).contiguous())
        self.kept_variance = float(shares[kept - 1])


class CommonKernel(Kernel):
    """Features with one scale for all, seen through a Gaussian kernel."""

    name = "common kernel"

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        self.scale = proportional(torch.ones_like(self.scale), self.scale)
        super()._fit(values, weights)


class RangeKernel(Kernel):
    """Features divided by how far they extend, seen through a Gaussian kernel."""

    name = "range kernel"

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        self.scale = proportional(extents(values[weights > 0]), self.scale)
        super()._fit(values, weights)


def choose_landmarks(u: Tensor) -> Tensor:
    """Return rows that span the kernel of all rows (N, k) well, by pivoted Cholesky steps.

    The first is the row next to the origin; each further one is the row whose kernel the landmarks
    so far explain least. The order of rows and features does not matter, nor do copies of rows.
    """
    rows = _in_order(u.cpu().numpy())
    most = min(MOST_LANDMARKS, max(1, len(rows) // ROWS_PER_LANDMARK))
    rows = rows[:: -(-len(rows) // MOST_CANDIDATES)]
    lengths = np.square(rows).sum(axis=1)
    residual, factor, chosen = np.ones(len(rows)), np.zeros((len(rows), most)), [0]
    while True:
        m, last = len(chosen) - 1, chosen[-1]
        squared = np.maximum(lengths + lengths[last] - 2 * rows @ rows[last], 0.0)
        column = np.exp(-squared / rows.shape[1]) - factor[:, :m] @ factor[last, :m]
        factor[:, m] = column / np.sqrt(residual[last])
        residual = np.maximum(residual - np.square(factor[:, m]), 0.0)
        following = int(residual.round(DIGITS).argmax())  # the first of several
        if len(chosen) == most or residual[following] < LEAST_RESIDUAL:
            return torch.from_numpy(rows[chosen]).to(u.device)
        chosen.append(following)


def _in_order(rows: np.ndarray) -> np.ndarray:
    """Return rows by their length, those of one length by their other moments, without copies."""
    cubes = np.einsum("jk,jk,jk->j", rows, rows, rows)  # `**` takes ten times as long
    keys = [cubes, rows.sum(axis=1), np.square(rows).sum(axis=1)]
    rows = rows[np.lexsort([key.round(DIGITS) for key in keys])]
    return rows[np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)]]


def _kernel(u: Tensor, landmarks: Tensor) -> Tensor:
    """Return K(u, landmarks), (N, k) and (m, k) → (N, m)."""
    return torch.cdist(u, landmarks).square_().div_(-u.shape[1]).exp_()
