r"""How far features extend, measured in units of their own.

A feature of few levels, such as a pixel, a count or an indicator, extends over steps between its
levels; any other one over sixteenths of its range:

.. math:: e_k = \max\bigl(\text{least step}_k,\ \text{range}_k / 16\bigr) .

Pixels of equal depth then share one scale, rare indicators stay small, and other units change
nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.rowmaps.base import MOST_WIDE, least_spread, thinned

# A range has so many parts, and numbers that differ by less than this share of it are one level.
PARTS, SAME_LEVEL = 16, 1e-6
# Rows that tell most features with many levels from those with few.
FIRST_ROWS = 256


def extents(values: Tensor) -> Tensor:
    """Return the extent of every feature, (N, d) → (d,) in float64; 1 for constant features.

    Examples
    --------
    >>> extents(torch.tensor([[0.0, 0.0], [3.0, 160.0], [9.0, 0.5]])).tolist()
    [3.0, 10.0]
    """
    if values.shape[1] > MOST_WIDE:
        values, _ = thinned(values, torch.ones_like(values[:, 0]))
    low, high = values.amin(dim=0).double(), values.amax(dim=0).double()
    whole = high - low
    part = whole / PARTS
    same = (SAME_LEVEL * whole).maximum(least_spread(values))
    found = part.clone()
    # A step below a sixteenth of the range, among any rows, settles that a feature has many levels.
    few = torch.nonzero(_least_step(values[:FIRST_ROWS], same) > part)[:, 0]
    found[few] = part[few].maximum(_least_step(values[:, few], same[few]).minimum(whole[few]))
    return torch.where(whole > 0, found, 1.0)


def _least_step(values: Tensor, same: Tensor) -> Tensor:
    """Return the least difference of two levels, (d,); infinite if there is one level."""
    steps = values.double().sort(dim=0).values.diff(dim=0)  # (N - 1, d)
    infinite = torch.full_like(same, torch.inf)[None]
    return torch.cat([steps.where(steps > same, torch.inf), infinite]).amin(dim=0)
