"""What several of the competitors share: padded samples, and fits without sample weights."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from diagatt import attributes
from diagatt.estimators.competitor import Competitor
from diagatt.parameters import count
from diagatt.ragged import RaggedRows
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

    def _validate_rows(self, X: Any, *, reset: bool) -> RaggedRows:
        rows = super()._validate_rows(X, reset=reset)
        longer = np.flatnonzero(rows.lengths > (np.inf if reset else self.n_rows_))
        if len(longer):
            raise ValueError(
                f"sample {longer[0]} has {rows.lengths[longer[0]]} rows, the longest training "
                f"sample had {self.n_rows_}: {type(self).__name__} has {self.per_position} for "
                f"each of {self.n_rows_} positions and none beyond. Fit it with a sample as long, "
                "or shorten this one."
            )
        return rows


class Unweighted(Competitor):
    """A competitor without sample weights."""

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Fit to samples and their responses; the method takes no sample weights.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, or (n, d) array
        y : array of shape (n,)
        """
        return self._fit(X, y)
