"""Reading and refusing the competitors' parameters, and samples they cannot take."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def open_values(estimator: Any, name: str, grid: tuple) -> tuple:
    """Values to try for a parameter: the grid if "auto", its items if a list, else itself."""
    value = getattr(estimator, name)
    if isinstance(value, str) and value == "auto":
        return grid
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) == 0:
            raise ValueError(f"{name} is empty: give one value, several to try, or 'auto'.")
        return tuple(value)
    return (value,)


def at_least(estimator: Any, bound: float, *names: str) -> None:
    """Refuse numbers below a bound, among tried values too."""
    for name in names:
        for value in open_values(estimator, name, ()):
            if not isinstance(value, int | float | np.number) or not value >= bound:
                raise ValueError(f"{name} must be a number of at least {bound}, got {value!r}.")


def one_of(estimator: Any, name: str, allowed: tuple[str, ...]) -> None:
    """Refuse an unknown name."""
    if getattr(estimator, name) not in allowed:
        raise ValueError(
            f"unknown {name} {getattr(estimator, name)!r}: choose one of {list(allowed)}."
        )


def check_lengths(estimator: Any, offsets: Tensor, n_rows: int, what: str) -> None:
    """Refuse samples longer than the longest training sample, to which others are padded."""
    longer = torch.nonzero(offsets.diff() > n_rows)
    if len(longer):
        i = int(longer[0])
        raise ValueError(
            f"sample {i} has {int(offsets.diff()[i])} rows, the longest training sample had "
            f"{n_rows}: {type(estimator).__name__} has {what} for each of {n_rows} positions and "
            "none beyond. Fit it with a sample as long, or shorten this one."
        )
