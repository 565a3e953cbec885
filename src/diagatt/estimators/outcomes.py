"""Several outcomes at once: one set of rows explains all columns of y.

Every outcome has values and an intercept of its own; scores, and with them the attention, are
shared. `diagatt.families.Outcomes` adds up their losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch

from diagatt import attributes, coerce, names, parameters
from diagatt.estimators.base import RowsEstimator
from diagatt.estimators.members import StoredMember
from diagatt.estimators.response import Classification, Regression
from diagatt.families import Family, Outcomes, get_family
from diagatt.solvers.problem import Samples


class SeveralOutcomes(RowsEstimator):
    """What regression and classification share if y has several columns."""

    fitted_rules: ClassVar[attributes.Rules] = {
        "n_outputs_": parameters.count(1),
        "outcome_names_": attributes.names(),
    }
    n_outputs_: int = 1  # what files mean that are older than several outcomes
    outcome_names_: Sequence[str]
    value_: np.ndarray
    value_se_: np.ndarray | None
    intercept_: Any
    covariate_coef_: np.ndarray
    members_: Sequence[StoredMember]

    def _note_outcomes(self, y: Any, count: int) -> None:
        """Remember how many outcomes there are, and how a frame calls them."""
        self.n_outputs_ = count
        self._note_names("outcome_names_", names.names_of(y, "y") if count > 1 else None)

    @property
    def outcomes_(self) -> Sequence[str]:
        """Names of the outcomes: the columns of a frame, or y0, y1, …."""
        known = getattr(self, "outcome_names_", None)
        return [f"y{k}" for k in range(self.n_outputs_)] if known is None else known

    def _output_names(self) -> Sequence[Any]:
        return super()._output_names() if self.n_outputs_ == 1 else self.outcomes_

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        return {**super()._fitted_shapes(), "outcome_names_": (self.n_outputs_,)}

    def _problem(self, *given: Any, **known: Any) -> Any:
        problem = super()._problem(*given, **known)
        family = problem.family
        if family.n_outcomes == 1 or not family.has_identity_link:
            return problem
        units = _spread(problem)
        offset = None if problem.offset is None else problem.offset / units.to(problem.offset)
        y = problem.y / units.to(problem.y)
        return replace(problem, y=y, offset=offset, family=family.with_units(units))

    def _change_units(self, family: Family) -> None:
        """Tell coefficients of outcomes that were fitted with unit variance in their own units."""
        if not isinstance(family, Outcomes) or family.units is None:
            return
        units = family.units.numpy()
        self.value_ = self.value_ * units[:, None].astype(self.value_.dtype)  # (M·R, q, d)
        self.intercept_ = self.intercept_ * units.astype(self.value_.dtype)
        own = units[:, None].astype(self.value_.dtype)
        self.covariate_coef_ = self.covariate_coef_ * own
        if self.value_se_ is not None:
            self.value_se_ = self.value_se_ * units[:, None]
        for member in self.members_:
            for name in ("value", "intercept", "covariate"):  # outcomes are the last axis
                array = member.arrays[name]
                member.arrays[name] = array * units.astype(array.dtype)


def _spread(problem: Samples) -> torch.Tensor:
    """Return the standard deviations of outcomes, (q,); 1 for those that are constant."""
    y, share = problem.y.double(), problem.weights.double() / problem.total_weight
    mean = share @ y
    variance = share @ (y - mean).square()
    return torch.where(variance > 1e-24 * mean.square(), variance, 1.0).sqrt().cpu()


class RegressionOutcomes(SeveralOutcomes, Regression):
    """Responses are numbers, in one column or in several."""

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        family = get_family("gaussian" if self.family == "auto" else self.family)
        count = coerce.n_outcomes(y) if family.response_width == 1 else 1
        self._note_outcomes(y, count)
        if count == 1:
            return super()._read_response(y, weights)
        return coerce.responses(y, len(weights), count, "one per outcome")

    def _fitted_family(self) -> tuple[Family, int]:
        family, n_outputs = super()._fitted_family()
        if self.n_outputs_ == 1:
            return family, n_outputs
        return Outcomes(family, self.n_outputs_), self.n_outputs_

    def _predicted(self, z: np.ndarray) -> np.ndarray:
        """Return means, (n,), or (n, n_outputs) of several outcomes."""
        means = self._means(z)
        return means[:, 0] if self.n_outputs_ == 1 else means

    def _observed(self, y: Any) -> Any:
        return y if self.n_outputs_ > 1 else super()._observed(y)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ClassificationOutcomes(SeveralOutcomes, Classification):
    """Responses are classes, or several labels that each are 0 or 1."""

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        count = coerce.n_outcomes(y)
        self._note_outcomes(y, count)
        if count == 1:
            return super()._read_response(y, weights)
        if self.family not in ("auto", "bernoulli"):
            raise ValueError(
                f"y has {count} columns of labels, which family {self.family!r} does not take: "
                "leave family='auto'."
            )
        table = coerce.labels(y, len(weights), count)
        mean = np.average(table, axis=0, weights=weights)
        if not ((mean > 0) & (mean < 1)).all():
            k = int(np.argmin((mean > 0) & (mean < 1)))
            raise ValueError(
                f"column {k} of y is {mean[k]:g} in all samples: a label that does not vary cannot "
                "be learned; drop the column."
            )
        self.classes_ = np.arange(count)  # as scikit-learn's MLPClassifier has it
        return table

    def _fitted_family(self) -> tuple[Family, int]:
        if self.n_outputs_ == 1:
            return super()._fitted_family()
        return Outcomes(get_family("bernoulli"), self.n_outputs_), self.n_outputs_

    def _decision(self, z: np.ndarray) -> np.ndarray:
        return z if self.n_outputs_ > 1 else super()._decision(z)

    def _probabilities(self, z: np.ndarray) -> np.ndarray:
        if self.n_outputs_ > 1:
            return self._means(z.astype(np.float64))
        return super()._probabilities(z)

    def _labels(self, z: np.ndarray) -> np.ndarray:
        return (z > 0).astype(int) if self.n_outputs_ > 1 else super()._labels(z)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
