r"""Row maps: what happens to rows before they are scored.

A map m is fitted to training rows, without responses, and kept with the model; a head then scores
m(x) instead of x. Features that do not vary are dropped by every map.

==========  ============================================================================
common      m(x) = (x − μ)/s with one scale s for all features
unit        m(x) = (x − μ)/σ, each feature to unit variance
full        the same, with all dimensions as long as covariances can take them
wide        the same, with still more: for scores that are linear
ranks       normal scores of each feature: heavy tails and skew disappear
squares     u = (x − μ)/σ clipped at ±3, and (u² − 1)/√2 beside it
kernel      components of a Gaussian kernel of unit rows; "common kernel" of common rows
unit means  mean rows of samples in their own span; "common means" with one scale
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

from diagatt.rowmaps.affine import Common, CommonMeans, Full, Given, Scaled, Unit, UnitMeans, Wide
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
    signed,
    thinned,
)
from diagatt.rowmaps.bent import KNOTS, LEAST_LEVEL, Ranks, Squares
from diagatt.rowmaps.kernel import CommonKernel, Kernel

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
    "Ranks",
    "RowMap",
    "Scaled",
    "Squares",
    "Unit",
    "UnitMeans",
    "Wide",
    "components_of_few_rows",
    "distinct_maps",
    "least_spread",
    "row_blocks",
    "signed",
    "thinned",
]

# Ratio of scales, and correlation with normal scores, from which maps are taken to be the same.
SAME_SCALE, SAME_SHAPE = 1.25, 0.99
# Rows and features at most that are looked at for it.
COMPARED_ROWS, COMPARED_FEATURES = 2000, 512


def distinct_maps(values: Tensor, weights: Tensor) -> list[str]:
    """Return the names of the maps that differ on these rows, "unit" always among them.

    One scale for all is as good as one each if features vary alike, and normal scores are as good
    as the features if those are normal.
    """
    step = max(1, len(values) // COMPARED_ROWS)
    values, weights = values[::step], weights[::step].double()
    weights = weights / weights.sum()
    unit = Unit._by_features(values, weights)
    found = ["unit"]
    if float(unit.scale.max() / unit.scale.min()) > SAME_SCALE:
        found.insert(0, "common")
    if len(unit.columns) > COMPARED_FEATURES:  # some of every scale, whatever their order
        step = -(-len(unit.columns) // COMPARED_FEATURES)
        values = values[:, unit.columns[unit.scale.argsort(stable=True)[::step]]]
        unit = Unit._by_features(values, weights)
    ranks = Ranks._by_features(values, weights)
    x = values.index_select(1, unit.columns).double()
    w = weights[:, None]
    u, r = (rows._transformed(x, torch.finfo(values.dtype).eps) for rows in (unit, ranks))
    r = r - (w * r).sum(dim=0)
    agreement = (w * u * r).sum(dim=0) / (w * r.square()).sum(dim=0).sqrt()
    if float(agreement.min()) < SAME_SHAPE:
        found.append("ranks")
    return [*found, "squares"]
