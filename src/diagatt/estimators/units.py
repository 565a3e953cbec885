"""A warning about rows whose unit decides what is fitted to them."""

from __future__ import annotations

import warnings

from torch import Tensor

__all__ = ["warn_of_units"]

LARGEST = 1e3  # standard deviation of features from which on training may not converge
MOST_ROWS = 65_536  # rows that are looked at


def warn_of_units(values: Tensor, n_samples: int) -> None:
    """Warn if features are so small that penalties decide the fit, or so large that steps do.

    A ridge of 1 halves coefficients where the squares of centred pooled rows add up to 1, and their
    sum is about n times the variance of rows. Constant rows have no unit.
    """
    seen = values[:: -(-len(values) // MOST_ROWS)].double()
    variances = seen.var(dim=0, correction=0)
    largest, total = float(variances.max()) ** 0.5, float(variances.sum())
    size = float(seen.abs().max())
    if n_samples * total < 1 and 1e-12 * size < largest:
        said = "are so small (standard deviations of at most {:.1g}) that penalties decide this fit"
    elif largest > LARGEST:
        said = "are so large (standard deviations of up to {:.1g}) that training may end early"
    else:
        return
    warnings.warn(
        f"the features of X {said.format(largest)}: standardize the rows, or choose solver='auto' "
        "of DiagAttRegressor and DiagAttClassifier, which does not depend on units.",
        UserWarning,
        stacklevel=5,
    )
