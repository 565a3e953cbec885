"""The spread of responses, robust against outliers."""

from __future__ import annotations

from torch import Tensor

# Quartiles of a normal distribution are this many standard deviations apart.
NORMAL_QUARTILES = 1.3489795003921634


def robust_scale(y: Tensor, weights: Tensor) -> float:
    """Return the distance of the quartiles in normal units; if it is 0, the standard deviation.

    Examples
    --------
    >>> import torch
    >>> round(robust_scale(torch.arange(101.0), torch.ones(101)), 2)
    37.07
    """
    order = y.argsort()
    share = weights.double()[order].cumsum(dim=0) / weights.double().sum()
    low, high = (
        float(y[order][int((share < q).sum().clamp(max=len(y) - 1))]) for q in (0.25, 0.75)
    )
    if high > low:
        return (high - low) / NORMAL_QUARTILES
    w = weights.double() / weights.double().sum()
    mean = float((w * y.double()).sum())
    deviation = float((w * (y.double() - mean).square()).sum()) ** 0.5
    # The deviation of a constant y is nothing but rounding.
    return deviation if deviation > 1e-12 * abs(mean) else 1.0
