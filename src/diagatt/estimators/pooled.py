"""A generalized linear model of pooled rows: the baseline that practitioners try first."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from diagatt import attributes
from diagatt.estimators.competitor import Competitor
from diagatt.estimators.response import Classification, Regression
from diagatt.estimators.times import CoxCompetitor
from diagatt.localization import N_LOCATED
from diagatt.parameters import at_least, one_of, several
from diagatt.segments import segment_argmax, segment_max, segment_mean, spread
from diagatt.solvers.glm import LinearFits
from diagatt.solvers.problem import Samples


def pool_rows(values: Tensor, offsets: Tensor, pool: str) -> Tensor:
    """Return one vector per sample: (n, d) for "mean" and "max", (n, 2d) for "mean+max"."""
    parts = []
    if "mean" in pool:
        parts.append(segment_mean(values, offsets))
    if "max" in pool:
        parts.append(segment_max(values, offsets))
    return torch.cat(parts, dim=1)


def row_contributions(values: Tensor, offsets: Tensor, pool: str, coef: Tensor) -> Tensor:
    """Return what each row adds to the linear predictors of its sample, (N, K).

    A mean gives ⟨β, x_j⟩/p to each row; a maximum gives all to the (first) row that attains it.
    """
    d = values.shape[1]
    total = values.new_zeros(len(values), coef.shape[1])
    if "mean" in pool:
        lengths = offsets.diff().to(values.dtype)
        total += values @ coef[:d] / spread(lengths, offsets)[:, None]
    if "max" in pool:
        of_max = coef[-d:]  # (d, K)
        winner = offsets[:-1, None] + segment_argmax(values, offsets)  # (n, d) packed rows
        largest = segment_max(values, offsets)  # (n, d)
        for k in range(coef.shape[1]):
            total[:, k].index_add_(0, winner.flatten(), (largest * of_max[:, k]).flatten())
    return total


@dataclass(eq=False, repr=False)
class _Pooled(Competitor):
    """What regression and classification share."""

    pool: str = "mean"
    _: KW_ONLY
    ridge: Any = 1.0
    n_located: int = N_LOCATED
    selection: str | int = "holdout"
    random_state: Any = None

    # From the largest: each trial starts from the one before.
    grids: ClassVar = {"ridge": (1000.0, 100.0, 10.0, 1.0, 0.1)}
    rules: ClassVar = {"pool": one_of("mean", "max", "mean+max"), "ridge": several(at_least(0))}
    fitted_rules: ClassVar[attributes.Rules] = {
        "coef_": attributes.floats("float64"),
        "intercept_": attributes.floats("float64"),
        "ridge_": at_least(0),
    }
    ridge_: float = field(init=False)

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        if "fits" not in memo:
            pooled = pool_rows(problem.values, problem.offsets, self.pool)
            memo["fits"] = LinearFits(pooled, problem.weights)
        given = (problem.family, problem.y, self.ridge_, problem.n_outputs)
        coef, intercept = memo["fits"].fit(*given, is_trial=self._is_trial)
        self.coef_, self.intercept_ = coef.T.numpy(), intercept.numpy()  # (K, P), (K,)

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        K, d = self._n_outputs(), self.n_features_in_
        width = 2 * d if self.pool == "mean+max" else d
        return {**super()._fitted_shapes(), "coef_": (K, width), "intercept_": (K,)}

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        pooled = pool_rows(values, offsets, self.pool).double()
        return pooled @ torch.from_numpy(self.coef_).T + torch.from_numpy(self.intercept_)

    def _row_scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the absolute contributions of rows, or their norms over classes."""
        coef = torch.from_numpy(self.coef_).T.to(values.dtype)
        return row_contributions(values, offsets, self.pool, coef).norm(dim=1)


@dataclass(eq=False, repr=False)
class PooledRegressor(Regression, _Pooled):
    r"""Ridge (or Poisson, or gamma) regression on the pooled rows of each sample.

    .. math:: g(\mathrm E\, y) = ⟨β, \mathrm{pool}(x_1, …, x_p)⟩ + b

    It is not among the paper's methods; it is the simplest baseline.

    Parameters
    ----------
    pool : {"mean", "max", "mean+max"}
        Mean of each feature over rows, its maximum, or both side by side.
    ridge : float, "auto" or sequence
        λ of ½λ‖β‖², added to the summed loss, as ``alpha`` of scikit-learn's Ridge; "auto" tries
        1000, 100, 10, 1 and 0.1.
    family : {"auto", "gaussian", "poisson", "gamma"}
        "auto" is gaussian.
    n_located, selection, random_state
        See `Competitor`; rows are located by what they contribute to the linear predictor.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, P) and (1,)
        P is d, or 2d for "mean+max".
    ridge_, selection_ : float, list of dicts
        The value in use, and the held-out loss of every value tried.

    Examples
    --------
    >>> from diagatt import PooledRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = PooledRegressor(ridge="auto", random_state=0).fit(data.X, data.y)
    >>> model.locate(data.X[:1])
    array([[ 5,  1,  0,  4,  3,  2, -1, -1, -1, -1]])
    """

    _: KW_ONLY
    family: str = "auto"


class PooledClassifier(Classification, _Pooled):
    """Logistic regression on the pooled rows of each sample; softmax for more than two classes.

    Parameters and attributes are those of `PooledRegressor` without ``family``, and ``classes_``.
    ``ridge`` is ``1/C`` of scikit-learn's LogisticRegression; with more than two classes, ``coef_``
    and ``intercept_`` have one line per class.

    Examples
    --------
    >>> from diagatt import PooledClassifier, simulate
    >>> data = simulate.classification(200, p=6, d=4, seed=0)
    >>> PooledClassifier("mean+max").fit(data.X, data.y).predict_proba(data.X[:2]).shape
    (2, 2)
    """


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
