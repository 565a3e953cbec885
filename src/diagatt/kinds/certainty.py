"""Questions of certainty about texts and images: the estimator of their rows answers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from diagatt.certainty import Certainty, Discoveries, Existence, Summary
from diagatt.covariates import parted
from diagatt.ragged import RaggedRows


def inner_has(name: str) -> Any:
    """Offer a method only if the estimator inside has it."""

    def has(model: Any) -> bool:
        inner = getattr(model, "estimator_", model.estimator)
        if inner is None:
            inner = getattr(model, "_inner", None)  # the default; None has everything
        return inner is None or hasattr(inner, name)

    return available_if(has)


class AskedForCertainty:
    """The methods of `diagatt.estimators.certain_rows` for inputs instead of rows.

    Indices of rows are those of `rows(inputs)`; the estimator must have been fitted.
    """

    estimator_: Any
    rows: Callable[[Any], RaggedRows]

    def _asked(self, method: str, inputs: Any, *args: Any, **known: Any) -> Any:
        """Ask the estimator inside about the rows of the inputs."""
        check_is_fitted(self)
        inputs, covariates = parted(inputs, known.pop("covariates", None))
        given = {"covariates": covariates, **known}
        given = {name: value for name, value in given.items() if value is not None}
        return getattr(self.estimator_, method)(self.rows(inputs), *args, **given)

    @inner_has("existence_test")
    def existence_test(
        self,
        inputs: Any,
        y: Any,
        covariates: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Existence:
        """Test whether there is any row of interest; see `DiagAttRegressor.existence_test`."""
        known = {"covariates": covariates, "sample_weight": sample_weight, "groups": groups}
        return self._asked("existence_test", inputs, y, **known)

    @inner_has("calibrate")
    def calibrate(
        self,
        inputs: Any,
        y: Any,
        covariates: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit without each of five folds to learn how far the fit can be trusted.

        The inputs are those of `fit`. The default does this in `fit`.
        """
        known = {"covariates": covariates, "sample_weight": sample_weight, "groups": groups}
        self._asked("calibrate", inputs, y, **known)
        return self

    @inner_has("certainty")
    def certainty(self, inputs: Any, level: float = 0.9) -> Certainty:
        """Return rows with their posterior and sets that hold the row of interest."""
        return self._asked("certainty", inputs, level)

    @inner_has("calibrate_rows")
    def calibrate_rows(self, inputs: Any, row_labels: Any) -> Self:
        """Calibrate the posterior of rows on a few new inputs whose active rows are known."""
        self._asked("calibrate_rows", inputs, row_labels)
        return self

    @inner_has("discoveries")
    def discoveries(self, inputs: Any, fdr: float = 0.1) -> Discoveries:
        """Return rows that may be named so that at most a share `fdr` of them is wrong."""
        return self._asked("discoveries", inputs, fdr)

    @inner_has("predict_interval")
    def predict_interval(
        self, inputs: Any, level: float = 0.9, covariates: Any = None
    ) -> np.ndarray:
        """Return intervals that hold new responses with probability `level`, (n, 2)."""
        return self._asked("predict_interval", inputs, level, covariates=covariates)

    @inner_has("predict_set")
    def predict_set(
        self, inputs: Any, level: float = 0.9, covariates: Any = None
    ) -> list[np.ndarray]:
        """Return sets of classes that hold the true one with probability `level`."""
        return self._asked("predict_set", inputs, level, covariates=covariates)

    @inner_has("summary")
    def summary(self, level: float = 0.95) -> Summary:
        """Return coefficients of the features of rows with intervals, tests and criteria."""
        check_is_fitted(self)
        return self.estimator_.summary(level)
