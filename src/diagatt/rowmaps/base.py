"""What all row maps share: features that vary, and the principal subspace of wide rows."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple, Self

import torch
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk
from torch import Tensor, nn

# Dimensions that scores see at most: of affine maps and of others. "full" and "wide" rows keep all
# as long as they have no more than these.
MOST_DIMENSIONS, MOST_BENT, MOST_FULL, MOST_WIDE = 60, 50, 128, 1024
# Share of the variance that is enough; less than the second is too little, and calls for more
# dimensions, up to the third.
KEPT_VARIANCE, LEAST_KEPT, MOST_NEEDED = 0.995, 0.9, 100
# A feature varies if its spread exceeds rounding: this many units of it in its largest entry.
LEAST_SPREAD = 16
# Numbers that are transformed in one go, in float64: as many as a cache holds.
BLOCK_NUMBERS, LEAST_BLOCK = 2**18, 256

# Fits see mapped rows in steps of one over this: about a millionth of their spread.
STEPS = 2**20
# Rows at most that the subspace of more than `MOST_WIDE` features is fitted to.
SUBSPACE_ROWS = 2048

# Arrays of row maps; the last four only some have.
ARRAYS = ("columns", "shift", "scale", "knots", "landmarks", "centre", "directions")

ROW_MAPS: dict[str, type[RowMap]] = {}


class AffineMap(NamedTuple):
    """A map x ↦ (x − shift) @ matrix of original features."""

    shift: Tensor  # (d,)
    matrix: Tensor  # (d, d')


class RowMap(nn.Module):
    """A fitted map of rows, (N, d) → (N, d').

    Subclasses say how varying features are transformed; the principal subspace is common to all.
    Arithmetic is in float64, whatever the type of the rows, so that large shifts cost no digits.
    """

    columns: Tensor  # (k,) of features that vary
    shift: Tensor  # (k,)
    scale: Tensor  # (k,)
    knots: Tensor  # (k, KNOTS), of "ranks"
    landmarks: Tensor  # (m, k), of kernels
    centre: Tensor  # (t,) and
    directions: Tensor  # (t, d') of the subspace of t transformed features, if there is one
    n_features: int

    name: ClassVar[str]
    #: Dimensions of mapped rows at most, if there are more than `whole`, which are all kept.
    most: ClassVar[int] = MOST_DIMENSIONS
    whole: ClassVar[int] = MOST_DIMENSIONS
    #: Whether the subspace passes through the mean row; otherwise through the origin.
    through_mean: ClassVar[bool] = True
    #: Whether it is fitted to the mean rows of samples, not to all rows.
    of_means: ClassVar[bool] = False
    #: Arrays beside columns, shift and scale: those that every such map has, and those it may have.
    always: ClassVar[frozenset[str]] = frozenset()
    perhaps: ClassVar[frozenset[str]] = frozenset({"centre", "directions"})

    def __init_subclass__(cls) -> None:
        """Register the map by its name."""
        ROW_MAPS[cls.name] = cls

    @classmethod
    def fitted_to(
        cls, values: Tensor, weights: Tensor | None = None, needed: int = MOST_NEEDED
    ) -> Self:
        """Fit the map to rows (N, d).

        Parameters
        ----------
        values : tensor of shape (N, d)
        weights : tensor of shape (N,), optional
            Of the rows; a row of weight 2 counts as two.
        needed : int
            Dimensions at most where `most` of them hold too little variance.
        """
        w = torch.ones_like(values[:, 0]) if weights is None else weights
        w = w.double() / w.double().sum()
        made = cls._by_features(values, w)
        made._fit_subspace(values, w, needed)
        return made

    @classmethod
    def _by_features(cls, values: Tensor, weights: Tensor) -> Self:
        """Fit what happens to single features, before any subspace; weights sum to one."""
        made = cls()
        made.n_features = values.shape[1]
        blocks = row_blocks(values)
        mean = reduce(add, (weights[rows] @ values[rows].double() for rows in blocks))
        squares = (weights[rows] @ (values[rows] - mean).square_() for rows in blocks)
        spread = reduce(add, squares).sqrt()
        varies = spread > least_spread(values)
        if not bool(varies.any()):
            varies[0] = True  # something must be scored
        made.register_buffer("columns", torch.nonzero(varies)[:, 0])
        made.register_buffer("shift", mean[varies])
        made.register_buffer("scale", positive(spread[varies]))
        made._fit(values if bool(varies.all()) else values[:, varies], weights)
        return made

    @classmethod
    def of(cls, arrays: dict[str, Any], n_features: int) -> Self:
        """Return the map whose buffers these arrays are."""
        made = cls()
        made.n_features = n_features
        for name in ARRAYS:
            if name in arrays:
                made.register_buffer(name, torch.as_tensor(arrays[name]))
        return made

    @property
    def n_dimensions(self) -> int:
        """Count of dimensions of mapped rows, d'."""
        if self._is_projected:
            return self.directions.shape[1]
        return self.width * len(self.columns)

    @property
    def _is_projected(self) -> bool:
        return "directions" in self._buffers

    #: Columns of transformed rows per varying feature.
    width: ClassVar[int] = 1

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        """Learn more than shift and scale of the varying features; weights sum to one."""

    def _transformed(self, x: Tensor, rounding: float) -> Tensor:
        """Return varying features, (N, k) in float64 but rounded before, transformed."""
        return (x - self.shift).div_(self.scale)

    def _fit_subspace(self, values: Tensor, weights: Tensor, needed: int) -> None:
        """Keep the leading principal directions, scaled to a mean variance of one."""
        D = self.width * len(self.columns)
        if self.whole >= D:
            return
        if D > MOST_WIDE:
            values, weights = thinned(values, weights)
        most, kind = max(needed, self.most), values.dtype
        blocks = row_blocks(values)
        if len(values) < D:
            x = torch.cat([self._varying(values[rows]) for rows in blocks])
            centre = weights @ x * self.through_mean
            x = x.sub_(centre).mul_(weights.sqrt()[:, None]).to(kind)
            variance, directions, total = components_of_few_rows(x, most)
        else:
            centre = reduce(add, (weights[rows] @ self._varying(values[rows]) for rows in blocks))
            centre *= self.through_mean

            def centred(rows: slice) -> Tensor:
                x = self._varying(values[rows]).sub_(centre)
                return x.mul_(weights[rows].sqrt()[:, None]).to(kind)

            gram = reduce(add, ((x.T @ x).double() for x in map(centred, blocks)))
            variance, directions = torch.linalg.eigh(gram)
            variance, directions = variance.flip(0).clamp(min=0.0), directions.flip(1)
            total = variance.sum()
        shares = variance.cumsum(0) / total
        kept = min(self.most, int((shares < KEPT_VARIANCE).sum()) + 1, len(shares))
        if float(shares[kept - 1]) < LEAST_KEPT:
            kept = min(most, int((shares < LEAST_KEPT).sum()) + 1, len(shares))
        scale = positive(variance[:kept].mean().sqrt())
        self.register_buffer("centre", centre)
        self.register_buffer("directions", (signed(directions[:, :kept]) / scale).contiguous())
        self.kept_variance = float(shares[kept - 1])

    def forward(self, values: Tensor) -> Tensor:
        """Return mapped rows in the type of the rows, (N, d) → (N, d')."""
        mapped = values.new_empty(len(values), self.n_dimensions)
        directions = self.directions.to(values.dtype) if self._is_projected else None
        for rows in row_blocks(values):
            x = self._varying(values[rows])
            if directions is not None:
                # Once they are centred, rows lose nothing in a product of their own type.
                x = x.sub_(self.centre).to(values.dtype) @ directions
            mapped[rows] = x
        return mapped

    def narrowed(self, turn: Tensor) -> Self:
        """Return the map to x'·turn, (d', d''), of a map to a subspace."""
        made = type(self)()
        made.n_features = self.n_features
        for name, array in self._buffers.items():
            made.register_buffer(name, self.directions @ turn if name == "directions" else array)
        return made

    def _varying(self, values: Tensor) -> Tensor:
        """Return the features that vary, transformed, in float64."""
        if len(self.columns) < values.shape[1]:
            values = values.index_select(1, self.columns)
        return self._transformed(values.double(), torch.finfo(values.dtype).eps)

    def affine(self) -> AffineMap | None:
        """Return shift and matrix in original features, or None if the map is not affine."""
        return None


class Components(NamedTuple):
    """Leading principal components."""

    variance: Tensor  # (m,), from the largest
    directions: Tensor  # (D, m)
    total: Tensor  # variance of all components


def components_of_few_rows(x: Tensor, most: int) -> Components:
    """Return principal components of fewer rows than features, in the rows' own span.

    With XXᵀ = UΛUᵀ, directions are XᵀUΛ^(−½): the cost grows with the square of the count of rows,
    and with the count of features itself.
    """
    x, N = x.double(), len(x)
    gram = dsyrk(1.0, x.cpu().numpy().T, trans=1)  # one triangle: half the work
    found = eigh(gram, lower=False, subset_by_index=[max(0, N - most), N - 1])
    variance, U = (torch.from_numpy(array).to(x).flip(-1) for array in found)
    rounding = N * torch.finfo(x.dtype).eps * variance[0]
    real = max(1, int((variance > rounding).sum()))
    variance, U = variance[:real].clamp(min=0.0), U[:, :real]
    return Components(variance, x.T @ U / positive(variance.sqrt()), x.square().sum())


def thinned(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return evenly spaced rows with their weights, at most `SUBSPACE_ROWS`; weights sum to one."""
    step = -(-len(values) // SUBSPACE_ROWS)
    if step == 1:
        return values, weights
    return values[::step], weights[::step] / weights[::step].sum()


def least_spread(values: Tensor) -> Tensor:
    """Return the spread of each feature, (d,), up to which rounding explains it.

    Numbers are rounded to their type, and the mean of N of them adds up N errors of float64.
    """
    units = LEAST_SPREAD * torch.finfo(values.dtype).eps
    units += len(values) * torch.finfo(torch.float64).eps
    return units * values.abs().amax(dim=0).double()


def row_blocks(values: Tensor) -> list[slice]:
    """Return the rows that are transformed in one go."""
    count = max(LEAST_BLOCK, BLOCK_NUMBERS // values.shape[1])
    return [slice(start, start + count) for start in range(0, len(values), count)]


def proportional(measure: Tensor, spread: Tensor) -> Tensor:
    """Return scales of features, (d,), with the proportions of a measure of them.

    The features that they divide have a mean variance of one.
    """
    return measure * (spread / measure).square().mean().sqrt()


def settled(mapped: Tensor) -> Tensor:
    """Return mapped rows without the digits that depend on units and shifts of features.

    Steps of a fit may magnify the last digit of a row a millionfold, so that the same rows in
    other units would end in another fit.
    """
    return (mapped * STEPS).round_().div_(STEPS)


def positive(scale: Tensor) -> Tensor:
    """Return scales with 1 for those that are zero."""
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def signed(directions: Tensor) -> Tensor:
    """Fix the signs of singular vectors: the largest entry of each is positive."""
    largest = directions.abs().argmax(dim=0)
    return directions * directions[largest, torch.arange(directions.shape[1])].sign()
