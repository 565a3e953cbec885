r"""Row maps: what happens to rows before they are scored.

A map m is fitted to training rows, without responses, and kept with the model; a head then scores
m(x) instead of x. Features that do not vary are dropped by every map.

========  ==============================================================================
common    m(x) = (x − μ)/s with one scale s for all features
unit      m(x) = (x − μ)/σ, each feature to unit variance
full      the same, with all dimensions as long as covariances can take them
wide      the same, with still more: for scores that are linear
ranks     normal scores of each feature: heavy tails and skew disappear
squares   u = (x − μ)/σ clipped at ±3, and (u² − 1)/√2 beside it
scaled    m(x) = x/s, feature by feature, without a shift
given     m(x) = x
========  ==============================================================================

Wide rows are then projected onto the principal subspace that holds 99.5 % of their variance, at
most `MOST_DIMENSIONS` of it, or more if those hold too little. "common", "unit", "full", "scaled"
and "given" are affine, so that coefficients of mapped rows can be told in original features.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

# Dimensions that scores see at most: of affine maps and of others. "full" and "wide" rows keep all
# as long as they have no more than these.
MOST_DIMENSIONS, MOST_BENT, MOST_FULL, MOST_WIDE = 60, 50, 128, 1024
# Share of the variance that is enough; less than the second is too little, and calls for more
# dimensions, up to the third.
KEPT_VARIANCE, LEAST_KEPT, MOST_NEEDED = 0.995, 0.9, 100
# A feature varies if its spread exceeds rounding: this many units of it in its largest entry.
LEAST_SPREAD = 16
# Standard deviations beyond which "squares" clips, and quantiles that "ranks" keeps.
CLIPPED_AT, KNOTS, LEAST_LEVEL = 3.0, 200, 0.002
# Shares of rows that differ by less are the same to "ranks": sums of weights are rounded.
SAME_LEVEL = 1e-9
# Numbers that differ by less than this share of their distance from the mean are the same to it.
SAME_DIGITS = 1e-6

# Ratio of scales, and correlation with normal scores, from which maps are taken to be the same.
SAME_SCALE, SAME_SHAPE, COMPARED_ROWS = 1.25, 0.99, 2000

# Numbers that are transformed in one go, in float64: as many as a cache holds.
BLOCK_NUMBERS, LEAST_BLOCK = 2**18, 256

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
    centre: Tensor  # (width · k,) and
    directions: Tensor  # (width · k, d') of the subspace, if there is one
    n_features: int

    name: ClassVar[str]
    #: Dimensions of mapped rows at most, if there are more than `whole`, which are all kept.
    most: ClassVar[int] = MOST_DIMENSIONS
    whole: ClassVar[int] = MOST_DIMENSIONS

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
        made.register_buffer("scale", _positive(spread[varies]))
        made._fit(values if bool(varies.all()) else values[:, varies], weights)
        return made

    @classmethod
    def of(cls, arrays: dict[str, Any], n_features: int) -> Self:
        """Return the map whose buffers these arrays are."""
        made = cls()
        made.n_features = n_features
        for name in ("columns", "shift", "scale", "knots", "centre", "directions"):
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
        blocks = row_blocks(values)
        centre = reduce(add, (weights[rows] @ self._varying(values[rows]) for rows in blocks))

        def centred(rows: slice) -> Tensor:
            x = self._varying(values[rows]).sub_(centre)
            return x.mul_(weights[rows].sqrt()[:, None]).to(values.dtype)

        if len(values) < D:
            _, S, Vh = torch.linalg.svd(centred(slice(None)).double(), full_matrices=False)
            variance, directions = S.square(), Vh.T
        else:
            gram = reduce(add, ((x.T @ x).double() for x in map(centred, blocks)))
            variance, directions = torch.linalg.eigh(gram)
            variance, directions = variance.flip(0).clamp(min=0.0), directions.flip(1)
        shares = variance.cumsum(0) / variance.sum()
        kept = min(self.most, int((shares < KEPT_VARIANCE).sum()) + 1)
        if float(shares[kept - 1]) < LEAST_KEPT:
            kept = min(max(needed, self.most), int((shares < LEAST_KEPT).sum()) + 1)
        scale = _positive(variance[:kept].mean().sqrt())
        self.register_buffer("centre", centre)
        self.register_buffer("directions", (_signed(directions[:, :kept]) / scale).contiguous())
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

    def _varying(self, values: Tensor) -> Tensor:
        """Return the features that vary, transformed, in float64."""
        if len(self.columns) < values.shape[1]:
            values = values.index_select(1, self.columns)
        return self._transformed(values.double(), torch.finfo(values.dtype).eps)

    def affine(self) -> AffineMap | None:
        """Return shift and matrix in original features, or None if the map is not affine."""
        return None


class Unit(RowMap):
    """Each feature is centred and scaled to unit variance."""

    name = "unit"

    def affine(self) -> AffineMap:  # noqa: D102
        shift = self.shift.new_zeros(self.n_features)
        shift[self.columns] = self.shift
        rows = torch.diag(1 / self.scale)
        if self._is_projected:
            shift[self.columns] += self.centre * self.scale
            rows = rows @ self.directions
        matrix = rows.new_zeros(self.n_features, rows.shape[1])
        matrix[self.columns] = rows
        return AffineMap(shift, matrix)


class Full(Unit):
    """Unit variances, and all dimensions as long as covariances can take them."""

    name = "full"
    whole = MOST_FULL


class Wide(Unit):
    """Unit variances, and as many dimensions as linear scores can take."""

    name = "wide"
    most = whole = MOST_WIDE


class Scaled(Unit):
    """Features are scaled but not centred, so that a purely quadratic score stays one."""

    name = "scaled"

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        self.scale = _positive((weights @ values.double().square()).sqrt())
        self.shift = torch.zeros_like(self.shift)

    def _fit_subspace(self, values: Tensor, weights: Tensor, needed: int) -> None:
        """Keep all dimensions: principal directions pass through the mean, not the origin."""


class Given(Unit):
    """Rows stay as they are."""

    name = "given"

    @classmethod
    def fitted_to(
        cls, values: Tensor, weights: Tensor | None = None, needed: int = MOST_NEEDED
    ) -> Self:
        """Return the identity of rows of this width."""
        d = values.shape[1]
        columns, zero = torch.arange(d, device=values.device), values.new_zeros(d).double()
        return cls.of({"columns": columns, "shift": zero, "scale": zero + 1}, d)

    def forward(self, values: Tensor) -> Tensor:
        """Return the rows themselves."""
        return values


class Common(Unit):
    """Features are centred, and all are divided by one scale."""

    name = "common"

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        self.scale = self.scale.square().mean().sqrt().expand_as(self.scale).clone()


class Ranks(RowMap):
    """Normal scores: Φ⁻¹ of the share of training rows below, feature by feature."""

    name = "ranks"
    most = whole = MOST_BENT

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        x = values.double()
        order = x.argsort(dim=0, stable=True)  # (N, k)
        share = weights[order].cumsum(dim=0)  # of rows up to this one, (N, k)
        levels = torch.linspace(0, 1, KNOTS, dtype=x.dtype, device=x.device)
        levels = (levels - SAME_LEVEL).expand(x.shape[1], -1).contiguous()
        place = torch.searchsorted(share.T.contiguous(), levels)
        ascending = x.gather(0, order).T  # (k, N)
        self.register_buffer("knots", ascending.gather(1, place.clamp(max=len(x) - 1)))

    def _transformed(self, x: Tensor, rounding: float) -> Tensor:
        # Ties share the mean of their lowest and their highest level, also if other units or
        # another type of numbers changed their last digits.
        columns = x.T.contiguous()
        digits = SAME_DIGITS * ((columns - self.shift[:, None]).abs() + self.scale[:, None])
        columns = _snapped(columns, self.knots, digits.maximum(rounding * columns.abs()))
        below = _levels(columns, self.knots)
        above = _levels(-columns, -self.knots.flip(1))
        level = (below + 1 - above) / 2
        return torch.special.ndtri(level.clamp(LEAST_LEVEL, 1 - LEAST_LEVEL)).T


class Squares(RowMap):
    """Clipped features of unit variance with their squares: scores may be ring-shaped."""

    name = "squares"
    most = whole = MOST_BENT
    width = 2

    def _transformed(self, x: Tensor, rounding: float) -> Tensor:
        u = super()._transformed(x, rounding).clamp(-CLIPPED_AT, CLIPPED_AT)
        return torch.cat([u, (u.square() - 1) / math.sqrt(2)], dim=1)


def least_spread(values: Tensor) -> Tensor:
    """Return the spread of each feature, (d,), up to which rounding explains it.

    Numbers are rounded to their type, and the mean of N of them adds up N errors of float64.
    """
    units = LEAST_SPREAD * torch.finfo(values.dtype).eps
    units += len(values) * torch.finfo(torch.float64).eps
    return units * values.abs().amax(dim=0).double()


def distinct_maps(values: Tensor, weights: Tensor) -> list[str]:
    """Return the names of the maps that differ on these rows, "unit" always among them.

    One scale for all is as good as one each if features vary alike, and normal scores are as good
    as the features if those are normal.
    """
    step = max(1, len(values) // COMPARED_ROWS)
    values, weights = values[::step], weights[::step].double()
    weights = weights / weights.sum()
    unit, ranks = (rows._by_features(values, weights) for rows in (Unit, Ranks))
    found = ["unit"]
    if float(unit.scale.max() / unit.scale.min()) > SAME_SCALE:
        found.insert(0, "common")
    x = values.index_select(1, unit.columns).double()
    w = weights[:, None]
    u, r = (rows._transformed(x, torch.finfo(values.dtype).eps) for rows in (unit, ranks))
    r = r - (w * r).sum(dim=0)
    agreement = (w * u * r).sum(dim=0) / (w * r.square()).sum(dim=0).sqrt()
    if float(agreement.min()) < SAME_SHAPE:
        found.append("ranks")
    return [*found, "squares"]


def row_blocks(values: Tensor) -> list[slice]:
    """Return the rows that are transformed in one go."""
    count = max(LEAST_BLOCK, BLOCK_NUMBERS // values.shape[1])
    return [slice(start, start + count) for start in range(0, len(values), count)]


def _levels(x: Tensor, knots: Tensor) -> Tensor:
    """Interpolate the levels 0 … 1 of ascending knots (k, K) at x (k, N)."""
    last = knots.shape[1] - 1
    if last == 0:
        return torch.full_like(x, 0.5)
    above = torch.searchsorted(knots, x).clamp(1, last)
    low, high = knots.gather(1, above - 1), knots.gather(1, above)
    part = ((x - low) / (high - low).clamp(min=1e-300)).clamp(0, 1)
    return (above - 1 + part) / last


def _snapped(x: Tensor, knots: Tensor, digits: Tensor) -> Tensor:
    """Return the knot next to x (k, N) where they differ by no more than these digits, else x."""
    above = torch.searchsorted(knots, x).clamp(max=knots.shape[1] - 1)
    low, high = knots.gather(1, (above - 1).clamp(min=0)), knots.gather(1, above)
    near = torch.where((x - low).abs() < (high - x).abs(), low, high)
    return torch.where((near - x).abs() <= digits, near, x)


def _positive(scale: Tensor) -> Tensor:
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def _signed(directions: Tensor) -> Tensor:
    """Fix the signs of singular vectors: the largest entry of each is positive."""
    largest = directions.abs().argmax(dim=0)
    return directions * directions[largest, torch.arange(directions.shape[1])].sign()
