"""Affine row maps: scales of features, with or without a shift."""

from __future__ import annotations

from typing import ClassVar, Self

import torch
from torch import Tensor

from diagatt.rowmaps.base import (
    MOST_FULL,
    MOST_NEEDED,
    MOST_WIDE,
    AffineMap,
    RowMap,
    positive,
    proportional,
)
from diagatt.rowmaps.extents import extents


class Unit(RowMap):
    """Each feature is centred and scaled to unit variance."""

    name = "unit"

    def affine(self) -> AffineMap:  # noqa: D102
        shift = self.shift.new_zeros(self.n_features)
        shift[self.columns] = self.shift
        if self._is_projected:
            shift[self.columns] += self.centre * self.scale
            rows = self.directions / self.scale[:, None]
        else:
            rows = torch.diag(1 / self.scale)
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
    whole = MOST_WIDE
    through_mean = False

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        self.scale = positive((weights @ values.double().square()).sqrt())
        self.shift = torch.zeros_like(self.shift)


class Given(Unit):
    """Rows stay as they are."""

    name = "given"
    perhaps: ClassVar[frozenset[str]] = frozenset()

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
        self.scale = proportional(torch.ones_like(self.scale), self.scale)


class Range(Unit):
    """Features are centred and divided by how far they extend, in units of their own."""

    name = "range"

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        self.scale = proportional(extents(values[weights > 0]), self.scale)


class UnitMeans(Unit):
    """Mean rows in their own span, each feature of unit variance over samples.

    A ridge regression on mean rows uses nothing but their span, which therefore loses nothing,
    however wide rows are. The principal subspace of rows loses what varies little from row to row,
    such as rare words.
    """

    name = "unit means"
    of_means = True
    most = MOST_WIDE


class CommonMeans(UnitMeans):
    """Mean rows in their own span, with one scale for all features."""

    name = "common means"

    _fit = Common._fit


class RangeMeans(UnitMeans):
    """Mean rows in their own span, each feature divided by how far its means extend."""

    name = "range means"
    _fit = Range._fit
