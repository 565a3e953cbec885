"""Two-Step, clustering and then regression, with scikit-learn's face."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from diagatt.estimators.competitor import Competitor, CompetitorClassifier, CompetitorRegressor
from diagatt.estimators.competitor_parameters import at_least, one_of, open_values
from diagatt.localization import N_LOCATED, top_rows
from diagatt.solvers.glm import fit_linear
from diagatt.solvers.mixture import COVARIANCE_TYPES, fit_mixture, log_odds
from diagatt.solvers.problem import Samples


class _TwoStep(Competitor):
    """Everything that regression and classification share."""

    _grids: ClassVar = {"ridge": (0.01, 0.1, 1.0), "active_component": (0, 1)}
    ridge_: float
    active_component_: int

    def __init__(
        self,
        ridge: Any = 1.0,
        *,
        active_component: Any = "auto",
        covariance_type: str = "full",
        max_iter: int = 100,
        n_located: int = N_LOCATED,
        selection: str | int = "holdout",
        random_state: Any = None,
    ) -> None:
        self.ridge = ridge
        self.active_component = active_component
        self.covariance_type = covariance_type
        self.max_iter = max_iter
        self.n_located = n_located
        self.selection = selection
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to samples and their responses; scikit-learn's mixture takes no sample weights.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, or (n, d) array
        y : array of shape (n,)
        """
        self._fit(X, y)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of(self, "covariance_type", COVARIANCE_TYPES)
        at_least(self, 0, "ridge")
        at_least(self, 1, "max_iter")
        if not set(open_values(self, "active_component", (0, 1))) <= {0, 1}:
            raise ValueError(
                f"active_component must be 0, 1 or 'auto', got {self.active_component!r}."
            )

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        if "mixture" not in memo:  # it does not depend on what is tuned
            memo["mixture"] = fit_mixture(
                problem.values.numpy(), self.covariance_type, self.max_iter, seed
            )
        self.mixture_weights_, self.mixture_means_, self.precision_root_ = memo["mixture"][:3]
        self.n_iter_ = memo["mixture"][3]
        coef, intercept = fit_linear(
            *(problem.family, self._chosen_rows(problem.values, problem.offsets)),
            *(problem.y, problem.weights),
            ridge=self.ridge_,
            n_outputs=problem.n_outputs,
        )
        self.coef_, self.intercept_ = coef.T.numpy(), intercept.numpy()  # (K, R̃d), (K,)

    def _located(self, values: Tensor, offsets: Tensor) -> np.ndarray:
        mixture = (self.mixture_weights_, self.mixture_means_, self.precision_root_)
        odds = log_odds(values, *mixture).numpy()
        return top_rows(
            odds if self.active_component_ == 1 else -odds, offsets.numpy(), self.n_located
        )

    def _chosen_rows(self, values: Tensor, offsets: Tensor) -> Tensor:
        """The located rows side by side, most probable first, zeros where there are fewer."""
        located = torch.from_numpy(self._located(values, offsets))  # (n, R̃)
        rows = values[offsets[:-1, None] + located.clamp(min=0)]  # (n, R̃, d)
        return torch.where(located[:, :, None] < 0, 0, rows).flatten(1)

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        rows = self._chosen_rows(values, offsets).double()
        return rows @ torch.from_numpy(self.coef_).T + torch.from_numpy(self.intercept_)

    def locate(self, X: Any) -> np.ndarray:
        """Rows most probably of the active component (equation localization_twostep).

        Returns
        -------
        array of shape (n_samples, n_located), int
            Most probable first; -1 where a sample has fewer rows.
        """
        return self._located(*self._packed(X))


class TwoStepRegressor(_TwoStep, CompetitorRegressor):
    r"""Cluster all rows, then regress on those of one cluster: the paper's Two-Step.

    A mixture of two Gaussians is fitted to the rows of all samples as if they were independent
    (scikit-learn's `GaussianMixture`). Of each sample the R̃ rows with the largest posterior
    probability P_j of the active component, in that order, make one vector of R̃d features:

    .. math:: \mathrm E\, y = ⟨β, (x_{j_1}, …, x_{j_{\tilde R}})⟩ + b, \qquad
              P_{j_1} ≥ P_{j_2} ≥ …

    and a ridge regression predicts from it.

    Parameters
    ----------
    ridge : float, "auto" or sequence
        λ of ½λ‖β‖² beside the summed loss, as ``alpha`` of scikit-learn's Ridge; "auto" tries
        0.01, 0.1 and 1 on held-out samples.
    active_component : {"auto", 0, 1}
        Which component is the active one, the rarer (0) or the more frequent (1); "auto" lets
        held-out samples say.
    covariance_type, max_iter : str, int
        Of the mixture.
    n_located : int
        R̃, the rows chosen of each sample.
    selection : "holdout" or int
        How open parameters are compared: one held-out part of n/8, or this many folds.
    random_state : int, RandomState or None
        Of the held-out part and of the mixture's start.

    Attributes
    ----------
    mixture_weights_, mixture_means_ : arrays of shape (2,) and (2, d)
    precision_root_ : array of shape (2, d, d)
        P with Σ⁻¹ = P Pᵀ.
    coef_ : array of shape (1, R̃d)
    intercept_ : array of shape (1,)
    ridge_, active_component_ : float, int
        The values in use.
    n_iter_ : int
        Of the mixture.
    selection_ : list of dicts
        Held-out loss of every candidate.

    Examples
    --------
    >>> from diagatt import simulate
    >>> from diagatt.estimators.two_step import TwoStepRegressor
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = TwoStepRegressor(n_located=2, random_state=0).fit(data.X, data.y)
    >>> model.locate(data.X[:3]).shape
    (3, 2)
    """


class TwoStepClassifier(_TwoStep, CompetitorClassifier):
    """Cluster all rows, then logistic regression on those of one cluster.

    Parameters
    ----------
    ridge, active_component, covariance_type, max_iter, n_located, selection, random_state
        As in `TwoStepRegressor`; ``ridge`` is ``1/C`` of scikit-learn's LogisticRegression.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, R̃d), or (n_classes, R̃d)
    intercept_ : array of shape (1,), or (n_classes,)
    mixture_weights_, mixture_means_, precision_root_, ridge_, active_component_, selection_
        As in `TwoStepRegressor`.

    Examples
    --------
    >>> from diagatt import simulate
    >>> from diagatt.estimators.two_step import TwoStepClassifier
    >>> data = simulate.classification(200, p=6, d=4, seed=0)
    >>> model = TwoStepClassifier(n_located=2, random_state=0).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """
