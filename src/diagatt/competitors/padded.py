"""Competitors with coefficients of their own for every position of a row."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from diagatt import attributes
from diagatt.estimators.competitor import Competitor
from diagatt.parameters import count
from diagatt.solvers.problem import Samples


class Padded(Competitor):
    """A competitor that pads samples with zero rows to the longest training sample.

    Attributes
    ----------
    n_rows_ : int
        p, the rows of that sample; longer samples cannot be predicted.
    """

    per_position: ClassVar[str]  # what the model has for each position
    fitted_rules: ClassVar[attributes.Rules] = {"n_rows_": count(1)}
    n_rows_: int

    def _from_all(self, problem: Samples) -> dict[str, Any]:
        return {"n_rows_": int(problem.offsets.diff().max())}

    def _refuse_longer(self, offsets: Tensor) -> None:
        longer = torch.nonzero(offsets.diff() > self.n_rows_)
        if len(longer):
            i = int(longer[0])
            raise ValueError(
                f"sample {i} has {int(offsets.diff()[i])} rows, the longest training sample had "
                f"{self.n_rows_}: {type(self).__name__} has {self.per_position} for each of "
                f"{self.n_rows_} positions and none beyond. Fit it with a sample as long, or "
                "shorten this one."
            )
