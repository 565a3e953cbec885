r"""Row maps: what happens to rows before they are scored.

A map m is fitted to training rows, without responses, and kept with the model; a head then scores
m(x) instead of x. Features that do not vary are dropped by every map.

==========  ============================================================================
unit        m(x) = (x − μ)/σ, each feature to unit variance
full        the same, with all dimensions as long as covariances can take them
wide        the same, with still more: for scores that are linear
range       m(x) = (x − μ)/e, each feature by how far it extends (`diagatt.rowmaps.extents`)
common      m(x) = (x − μ)/s with one scale s for all features, whose units then matter
ranks       normal scores of each feature: heavy tails and skew disappear
squares     u = (x − μ)/σ clipped at ±3, and (u² − 1)/√2 beside it
kernel      components of a Gaussian kernel of unit rows; "range kernel" and "common kernel" of
            range and common rows
unit means  mean rows of samples in their own span; "range means" and "common means" scaled so
scaled      m(x) = x/s, feature by feature, without a shift; its subspace contains the origin
given       m(x) = x
==========  ============================================================================

Wide rows are then projected onto the principal subspace that holds 99.5 % of their variance, at
most `MOST_DIMENSIONS` of it, or more if those hold too little. Fewer rows than features are
projected in their own span; beyond `MOST_WIDE` features, some of many rows decide. All maps but
"ranks", "squares" and the kernels are affine: coefficients of mapped rows can be converted to
original features.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.rowmaps.affine import (
    Common,
    CommonMeans,
    Full,
    Given,
    Range,
    RangeMeans,
    Scaled,
    Unit,
    UnitMeans,
    Wide,
)
from diagatt.rowmaps.base import (
    ARRAYS,
    KEPT_VARIANCE,
    LEAST_KEPT,
    MOST_BENT,
    MOST_DIMENSIONS,
    MOST_FULL,
    MOST_NEEDED,
    MOST_WIDE,
    ROW_MAPS,
    AffineMap,
    RowMap,
    components_of_few_rows,
    least_spread,
    row_blocks,
    settled,
    signed,
    thinned,
)
from diagatt.rowmaps.bent import KNOTS, LEAST_LEVEL, Ranks, Squares
from diagatt.rowmaps.extents import extents
from diagatt.rowmaps.kernel import CommonKernel, Kernel, RangeKernel

__all__ = [
    "ARRAYS",
    "KEPT_VARIANCE",
    "KNOTS",
    "LEAST_KEPT",
    "LEAST_LEVEL",
    "MOST_BENT",
    "MOST_DIMENSIONS",
    "MOST_FULL",
    "MOST_NEEDED",
    "MOST_WIDE",
    "ROW_MAPS",
    "AffineMap",
    "Common",
    "CommonKernel",
    "CommonMeans",
    "Full",
    "Given",
    "Kernel",
    "Range",
    "RangeKernel",
    "RangeMeans",
    "Ranks",
    "RowMap",
    "Scaled",
    "Squares",
    "Unit",
    "UnitMeans",
    "Wide",
    "components_of_few_rows",
    "distinct_maps",
    "extents",
    "least_spread",
    "row_blocks",
    "settled",
    "signed",
    "thinned",
]

# Ratio of scales up to which, and correlation with normal scores from which, maps are the same.
SAME_SCALE, SAME_SHAPE = 2.0, 0.99
# Rows and features at most that are compared.
COMPARED_ROWS, COMPARED_FEATURES = 2000, 512


def distinct_maps(values: Tensor, weights: Tensor) -> list[str]:
    """Return the names of the maps that differ on these rows, "unit" always among them.

    Two scales are the same if they are nearly proportional, and normal scores are as good as the
    features if those are normal. "common", whose scale depends on units, comes last.
    """
    step = max(1, len(values) // COMPARED_ROWS)
    values, weights = values[::step], weights[::step].double()
    weights = weights / weights.sum()
    unit = Unit._by_features(values, weights)
    values = values.index_select(1, unit.columns)
    extent = extents(values[weights > 0])
    found = ["range", "unit"] if _differ(extent, unit.scale) else ["unit"]
    has_units = all(_differ(torch.ones_like(extent), scale) for scale in (unit.scale, extent))
    if values.shape[1] > COMPARED_FEATURES:  # some of every shape, whatever their order and units
        step = -(-values.shape[1] // COMPARED_FEATURES)
        values = values[:, (unit.scale / extent).argsort(stable=True)[::step]]
    unit, ranks = Unit._by_features(values, weights), Ranks._by_features(values, weights)
    w = weights[:, None]
    eps = torch.finfo(values.dtype).eps
    u, r = (rows._transformed(values.double(), eps) for rows in (unit, ranks))
    r = r - (w * r).sum(dim=0)
    agreement = (w * u * r).sum(dim=0) / (w * r.square()).sum(dim=0).sqrt()
    if float(agreement.min()) < SAME_SHAPE:
        found.append("ranks")
    return [*found, "squares", *(["common"] if has_units else [])]


def _differ(scale: Tensor, other: Tensor) -> bool:
    """Return whether scales of features are not proportional."""
    ratio = scale / other
    return float(ratio.max() / ratio.min()) > SAME_SCALE
