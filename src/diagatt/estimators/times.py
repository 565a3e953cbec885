"""What estimators of times to an event share: responses, functions of time, Cox regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from diagatt import attributes, coerce
from diagatt.arrays import InputError, float_array
from diagatt.estimators.base import RowsEstimator
from diagatt.estimators.competitor import Competitor
from diagatt.estimators.response import with_known_shape
from diagatt.families import Cox, Family
from diagatt.lifetimes import read_times
from diagatt.metrics import concordance
from diagatt.solvers.problem import Samples


class StepFunction:
    """A function that is constant between times, as scikit-survival returns it.

    Attributes
    ----------
    x : array of shape (T,)
        Times.
    y : array of shape (T,)
        Values from each time on.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, before: float) -> None:
        self.x, self.y, self._before = x, y, before

    def __call__(self, x: Any) -> Any:
        """Return the value at a time or at several."""
        times = float_array(x, "the time", lambda at: f"times[{', '.join(map(str, at))}]")
        if np.isnan(times).any():
            raise InputError("a time is NaN: give numbers.")
        values = np.concatenate([[self._before], self.y])
        return values[np.searchsorted(self.x, times, side="right")]

    @property
    def domain(self) -> tuple[float, float]:
        """The first and the last time."""
        return 0.0, float(self.x[-1])

    def __repr__(self) -> str:
        return f"StepFunction({len(self.x)} times from {self.x[0]:g} to {self.x[-1]:g})"


class ReadsTimes(RowsEstimator):
    """Responses are times to an event."""

    fitted_rules: ClassVar[attributes.Rules] = {"unique_times_": attributes.positives()}
    unique_times_: np.ndarray

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        times, counted = read_times(y, len(weights)), weights > 0
        family = self._fitted_family()[0]
        exact, seen = times[:, 1] == times[:, 2], np.isfinite(times[:, 2])
        if family.couples_samples and (seen & ~exact).any():
            i = int(np.argmax(seen & ~exact))
            raise ValueError(
                f"sample {i} has its event between {times[i, 1]:g} and {times[i, 2]:g}: family "
                "'cox' takes exact and right-censored times; choose 'weibull', 'lognormal' or "
                "'loglogistic'."
            )
        if not seen[counted].any():
            raise ValueError(
                f"no event was observed: all {counted.sum()} samples are censored, so that the "
                "data hold no information about risk."
            )
        ends = times[counted, 1]
        if len(ends) > 1 and (ends == ends[0]).all() and not (times[counted, 0] > 0).any():
            raise ValueError(
                f"all samples end at the time {ends[0]:g}: tied times do not say which "
                "sample has the event earlier; use DiagAttClassifier on the events."
            )
        self.unique_times_ = np.unique(times[counted, 1][times[counted, 1] > 0])
        return times

    def _times(self, given: Any, return_array: bool) -> np.ndarray:
        """Return the times at which to evaluate functions, (T,); those of the fit by default."""
        if given is None:
            return np.array(self.unique_times_, dtype=np.float64)
        return coerce.times(given, increasing=not return_array)

    def _concordance(self, y: Any, risk: np.ndarray) -> float:
        """Return Harrell's concordance; refuse samples of which no two can be compared."""
        times = read_times(y, len(risk))
        found = concordance(times[:, 1] == times[:, 2], times[:, 1], risk)
        if np.isnan(found):
            raise ValueError(
                "the concordance is not defined: for no pair of samples is it known which had the "
                "event earlier; score more samples, or samples with events."
            )
        return found


def step_functions(times: np.ndarray, values: np.ndarray, before: float) -> np.ndarray:
    """Return a `StepFunction` of every line of values, (n, T)."""
    made = np.empty(len(values), dtype=object)
    for i, line in enumerate(values):
        made[i] = StepFunction(times, line, before)
    return made


class CoxCompetitor(ReadsTimes, Competitor):
    """The interface of `DiagAttSurvival` for other methods: family "cox" with Efron's ties."""

    fitted_rules: ClassVar[attributes.Rules] = {"shape_": attributes.positives()}
    shape_: np.ndarray = np.empty(0)

    def _fitted_family(self) -> tuple[Family, int]:
        if self.family not in ("auto", "cox"):
            raise ValueError(
                f"{type(self).__name__} is Cox regression, not family {self.family!r}: leave "
                "family='auto', or fit DiagAttSurvival."
            )
        return with_known_shape(Cox(), self), 1

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        found = np.shape(self.shape_)
        return {**super()._fitted_shapes(), "shape_": Cox().fitted_shape(found)}

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        super()._train(problem, seed, memo)  # type: ignore[safe-super]
        with torch.no_grad():
            z = self._predictor(problem.values, problem.offsets)
        found = problem.family.refined(problem.y, z, problem.weights)
        self.shape_ = found.shape.cpu().numpy()

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return log hazard ratios, (n_samples,): larger ones mean earlier events."""
        return self._linear_predictor(X, covariates)[:, 0]

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: Any = None
    ) -> np.ndarray:
        """Return P(T > t | X); parameters as in `DiagAttSurvival.predict_survival_function`."""
        check_is_fitted(self)
        at = self._times(times, return_array)
        family, z = self._fitted_family()[0], torch.from_numpy(self._linear_predictor(X))
        assert isinstance(family, Cox)
        found = family.log_survival(torch.from_numpy(at)[None], z).exp().numpy()
        return found if return_array else step_functions(at, found, before=1.0)

    def score(self, X: Any, y: Any) -> float:
        """Return Harrell's concordance of the risk scores."""
        risk = self.predict(X)
        return self._concordance(y, risk)
