"""Several outcomes that share the attention: one set of rows explains all columns of y.

Every outcome has values and an intercept of its own; scores, and with them the attention, are
shared. `diagatt.families.Outcomes` adds up their losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt import attributes, coerce, names, parameters
from diagatt.estimators.base import RowsEstimator
from diagatt.estimators.containers import stored_classes, stored_label_means
from diagatt.estimators.members import StoredMember
from diagatt.estimators.response import Classification, Regression
from diagatt.families import Family, Outcomes, get_family
from diagatt.solvers.problem import Problem, Samples
from diagatt.stores import RowStore


class SeveralOutcomes(RowsEstimator):
    """What regression and classification share if y has several columns."""

    fitted_rules: ClassVar[attributes.Rules] = {
        "n_outputs_": parameters.count(1),
        "outcome_names_": attributes.names(),
    }
    n_outputs_: int = 1  # of files that are older than the attribute
    outcome_names_: Sequence[str]
    value_: np.ndarray
    value_se_: np.ndarray | None
    intercept_: Any
    covariate_coef_: np.ndarray
    members_: Sequence[StoredMember]
    none_value_: np.ndarray | None
    conformal_scores_: np.ndarray | None
    conformal_classes_: np.ndarray | None
    conformal_dispersion_: float | None
    conformal_dispersions_: np.ndarray | None

    def _note_outcomes(self, y: Any, count: int) -> None:
        """Keep the count of outcomes, and their names in a frame."""
        self.n_outputs_ = count
        self._note_names("outcome_names_", names.names_of(y, "y") if count > 1 else None)

    def _note_stored_outcomes(self, store: RowStore) -> None:
        """Keep the count and the names of the outcomes of a store."""
        if store.has_times:
            raise ValueError(f"{store.path} holds times to an event: use DiagAttSurvival.")
        found = store.response_names
        self.n_outputs_ = 1 if found is None else len(found)
        self._note_names("outcome_names_", found)

    @property
    def outcomes_(self) -> Sequence[str]:
        """Names of the outcomes: the columns of a frame, or y0, y1, …."""
        known = getattr(self, "outcome_names_", None)
        return [f"y{k}" for k in range(self.n_outputs_)] if known is None else known

    def outcome(self, which: int | str) -> Self:
        """Return the fitted model of one of several outcomes.

        It predicts, explains and saves as a model of one outcome does.

        Parameters
        ----------
        which : int or str
            Column of y, or its name.

        Examples
        --------
        >>> import numpy as np
        >>> from diagatt import DiagAttRegressor, simulate
        >>> data = simulate.regression(100, p=4, d=3, seed=0)
        >>> both = np.column_stack([data.y, -data.y])
        >>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, both)
        >>> bool(np.allclose(model.outcome(1).predict(data.X), model.predict(data.X)[:, 1]))
        True
        """
        check_is_fitted(self)
        k = self._outcome_place(which)
        if self.n_outputs_ == 1:
            return self
        one = copy(self)
        one._note_outcomes(None, 1)
        one.value_ = self.value_[:, k]  # (M·R, q, d) → (M·R, d)
        one.intercept_ = np.asarray(self.intercept_[k])
        one.covariate_coef_ = self.covariate_coef_[k]
        if self.value_se_ is not None:
            one.value_se_ = self.value_se_[k]
        if self.none_value_ is not None:
            one.none_value_ = self.none_value_[:, k]
        if self.conformal_scores_ is not None and self.conformal_dispersions_ is not None:
            one.conformal_scores_ = self.conformal_scores_[:, k]
            one.conformal_dispersion_ = float(self.conformal_dispersions_[k])
            if self.conformal_classes_ is not None:
                one.conformal_classes_ = self.conformal_classes_[:, k]
        one.conformal_dispersions_ = None
        one.members_ = [member.of_outcome(k) for member in self.members_]
        return one

    def _each_outcome(self) -> list[Self]:
        """Return the models of single outcomes."""
        return [self.outcome(k) for k in range(self.n_outputs_)]

    def _outcome_place(self, which: int | str) -> int:
        names_known = [str(name) for name in self.outcomes_]
        if isinstance(which, str) and which in names_known:
            return names_known.index(which)
        if parameters.count(0, self.n_outputs_ - 1).accepts(which):
            return int(which)
        raise ValueError(
            f"there is no outcome {which!r}: choose one of {names.listed(names_known)}."
        )

    def _in_order(self, y: Any, table: np.ndarray) -> np.ndarray:
        """Return columns of responses in the order of the fit, by name if both have names."""
        found, wanted = names.names_of(y, "y"), getattr(self, "outcome_names_", None)
        if found is None or wanted is None:
            return table
        place = names.order(found, wanted, "y", "y[list(model.outcomes_)]")
        return table if place is None else table[:, place]

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
        if problem.in_memory is None:

            def change(part: Samples) -> Samples:
                return replace(part, y=part.y / units.to(part.y))

            return problem.with_family(family.with_units(units)).changed(change)
        offset = None if problem.offset is None else problem.offset / units.to(problem.offset)
        y = problem.y / units.to(problem.y)
        return replace(problem, y=y, offset=offset, family=family.with_units(units))

    def _change_units(self, family: Family) -> None:
        """Convert coefficients of outcomes fitted with unit variance to the units of y."""
        if family.units is None:
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


def _spread(problem: Problem) -> torch.Tensor:
    """Return the standard deviations of outcomes, (q,); 1 for those that are constant."""
    weight = problem.total_weight

    def average(function: Callable[[Tensor], Tensor]) -> Tensor:
        def terms(part: Samples) -> list[Tensor]:
            return [part.weights.double() / weight @ function(part.y.double())]

        return problem.total(terms, ahead=0)[0]

    mean = average(lambda y: y)
    variance = average(lambda y: (y - mean).square())
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

    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that turns stored responses into numbers."""
        if store.response_type == "string":
            raise ValueError(f"{store.path} holds words as responses: use DiagAttClassifier.")
        self._note_stored_outcomes(store)
        width = get_family("gaussian" if self.family == "auto" else self.family).response_width
        if width > 1 and self.n_outputs_ != width:
            raise ValueError(
                f"{store.path} holds {self.n_outputs_} numbers per response, and family "
                f"{self.family!r} needs {width}: write the store with y of {width} columns."
            )
        if width > 1:  # several numbers, but one outcome
            self._note_outcomes(None, 1)
        return lambda y: np.asarray(y, dtype=np.float64)

    def _predicted(self, z: np.ndarray) -> np.ndarray:
        """Return means, (n,), or (n, n_outputs) of several outcomes."""
        means = self._means(z)
        return means[:, 0] if self.n_outputs_ == 1 else means

    def _observed(self, y: Any, n_samples: int) -> np.ndarray:
        if self.n_outputs_ == 1:
            return super()._observed(y, n_samples)
        table = coerce.responses(y, n_samples, self.n_outputs_, "one per outcome")
        return self._in_order(y, table)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ClassificationOutcomes(SeveralOutcomes, Classification):
    """Responses are classes, or several labels, each of them 0 or 1."""

    def outcome(self, which: int | str) -> Self:
        """Return the fitted model of one of several labels; see `DiagAttRegressor.outcome`."""
        one = super().outcome(which)
        if one is not self:
            one.classes_ = np.arange(2)
        return one

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        count = coerce.n_outcomes(y)
        self._note_outcomes(y, count)
        if count == 1:
            return super()._read_response(y, weights)
        self._check_labels(count)
        table = coerce.labels(y, len(weights), count)
        self._set_labels(np.average(table, axis=0, weights=weights))
        return table

    def _observed(self, y: Any, n_samples: int) -> np.ndarray:
        if self.n_outputs_ == 1:
            return super()._observed(y, n_samples)
        return self._in_order(y, coerce.labels(y, n_samples, self.n_outputs_))

    def _check_labels(self, count: int) -> None:
        if self.family not in ("auto", "bernoulli"):
            raise ValueError(
                f"y has {count} columns of labels, which family {self.family!r} does not take: "
                "leave family='auto'."
            )

    def _set_labels(self, mean: np.ndarray) -> None:
        """Refuse labels that do not vary; `mean` is their share of ones, (count,)."""
        if not ((mean > 0) & (mean < 1)).all():
            k = int(np.argmin((mean > 0) & (mean < 1)))
            raise ValueError(
                f"column {k} of y is {mean[k]:g} in all samples: a label that does not vary cannot "
                "be learned; drop the column."
            )
        self.classes_ = np.arange(len(mean))  # as scikit-learn's MLPClassifier has it

    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that turns stored responses into numbers."""
        self._note_stored_outcomes(store)
        if self.n_outputs_ == 1:
            self._set_classes(stored_classes(store))
            classes = self.classes_
            return lambda labels: np.searchsorted(classes, labels.astype(classes.dtype))
        self._check_labels(self.n_outputs_)
        self._set_labels(stored_label_means(store))
        return lambda y: np.asarray(y, dtype=np.float64)

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
