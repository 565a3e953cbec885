"""Competitors for times to an event: Cox regression on pooled rows, and on gated attention."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from diagatt import attributes
from diagatt.estimators.competitor import Competitor
from diagatt.estimators.gated import _Gated
from diagatt.estimators.pooled import _Pooled
from diagatt.estimators.response import with_known_shape
from diagatt.estimators.times import ReadsTimes, step_functions
from diagatt.families import Cox, Family
from diagatt.solvers.problem import Samples


class CoxCompetitor(ReadsTimes, Competitor):
    """The face of `DiagAttSurvival` for other methods, with family "cox" and Efron's ties."""

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


class PooledSurvival(CoxCompetitor, _Pooled):
    """Cox regression on the pooled rows of each sample.

    Parameters and attributes are those of `PooledRegressor`, whose family is "cox" here, and
    ``unique_times_`` and ``shape_`` of `DiagAttSurvival`.

    Examples
    --------
    >>> from diagatt import PooledSurvival, simulate
    >>> data = simulate.survival(200, p=5, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = PooledSurvival().fit(data.X, data.y)
    >>> model.predict(data.X[:3]).shape, model.score(data.X, data.y) > 0.6
    ((3,), True)
    """


class GatedAttentionSurvival(CoxCompetitor, _Gated):
    """Cox regression on gated attention pooling, by the partial likelihood of all samples.

    Parameters and attributes are those of `GatedAttentionRegressor`, whose family is "cox" here,
    and ``unique_times_`` and ``shape_`` of `DiagAttSurvival`.

    Examples
    --------
    >>> from diagatt import GatedAttentionSurvival, simulate
    >>> data = simulate.survival(100, p=5, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = GatedAttentionSurvival(n_hidden=4, random_state=0).fit(data.X, data.y)
    >>> [weights.shape for weights in model.attention(data.X[:2])]
    [(5, 1), (5, 1)]
    """
