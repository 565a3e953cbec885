"""Row maps that bend features: normal scores, and squares."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from diagatt.rowmaps.base import MOST_BENT, MOST_WIDE, RowMap, thinned

# Standard deviations beyond which "squares" clips, and quantiles that "ranks" keeps.
CLIPPED_AT, KNOTS, LEAST_LEVEL = 3.0, 200, 0.002
# Shares of rows that differ by less are the same to "ranks": sums of weights are rounded.
SAME_LEVEL = 1e-9
# Numbers that differ by less than this share of their distance from the mean are the same to it.
SAME_DIGITS = 1e-6


class Ranks(RowMap):
    """Normal scores: Φ⁻¹ of the share of training rows below, feature by feature."""

    name = "ranks"
    always: ClassVar[frozenset[str]] = frozenset({"knots"})
    most = whole = MOST_BENT

    def _fit(self, values: Tensor, weights: Tensor) -> None:
        if values.shape[1] > MOST_WIDE:
            values, weights = thinned(values, weights)
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
