"""Individualized coefficients under a separation penalty (MDSP), with scikit-learn's face."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt.estimators.competitor import Competitor, CompetitorClassifier, CompetitorRegressor
from diagatt.estimators.competitor_parameters import at_least, check_lengths
from diagatt.localization import N_LOCATED, top_rows
from diagatt.solvers.mdsp import MDSPFit, MDSPSettings, early_rule
from diagatt.solvers.problem import Samples

#: Ten steps, all of which are made.
STOPPED = {"stop_early": True, "max_steps": 10, "tolerance": 0.0}


class _MDSP(Competitor):
    """Everything that regression and classification share."""

    _grids: ClassVar = {"alpha": (0.01, 0.1, 1.0)}
    alpha_: float
    gamma_: np.ndarray
    step_size_: float | None

    def __init__(
        self,
        alpha: Any = 0.1,
        *,
        max_steps: int = 1000,
        tolerance: float = 1e-6,
        stop_early: bool = False,
        n_located: int = N_LOCATED,
        selection: str | int = "holdout",
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.max_steps = max_steps
        self.tolerance = tolerance
        self.stop_early = stop_early
        self.n_located = n_located
        self.selection = selection
        self.random_state = random_state

    @classmethod
    def stopped(cls, **parameters: Any) -> Self:
        """Make the estimator that stops after a few small steps, as the paper's seems to have."""
        return cls(**{**STOPPED, **parameters})

    def fit(self, X: Any, y: Any) -> Self:
        """Find the shared centres γ; the coefficients of training samples are not kept.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, or (n, d) array
        y : array of shape (n,)
        """
        self._fit(X, y)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        at_least(self, 0, "alpha", "tolerance")
        at_least(self, 1, "max_steps")

    def _settings(self) -> MDSPSettings:
        return MDSPSettings(self.alpha_, self.max_steps, self.step_size_, self.tolerance)

    def _from_all(self, problem: Samples) -> dict[str, Any]:
        return {"n_rows_": int(problem.offsets.diff().max())}

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        if self.stop_early:  # centres that stand still learn nothing from the samples
            length, spread = early_rule(problem)
            self.step_size_, self.history_, self.n_iter_ = length / self.max_steps, [], 0
            shape = self.n_rows_, problem.n_features * problem.n_outputs
            self.gamma_ = np.random.default_rng(seed).normal(0, spread, shape)
            return
        self.step_size_ = None
        fit = MDSPFit(problem, self._settings()).run()
        gamma = fit.gamma.numpy()  # (p, d·K)
        missing = self.n_rows_ - len(gamma)  # held-out samples may be longer
        self.gamma_ = np.pad(gamma, ((0, missing), (0, 0)))
        self.history_ = fit.history
        self.n_iter_ = len(fit.history) - 1

    def _individual(self, problem: Samples) -> MDSPFit:
        check_lengths(self, problem.offsets, len(self.gamma_), "one centre γ_j")
        gamma = torch.from_numpy(self.gamma_).to(problem.values.dtype)
        return MDSPFit(problem, self._settings(), gamma).run()

    def _held_out_predictor(self, problem: Samples) -> Tensor:
        return self._individual(problem).z

    def _fit_new(self, X: Any, y: Any) -> tuple[MDSPFit, np.ndarray]:
        """Coefficients of new samples, and offsets."""
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs the responses of new samples too, "
                "predict(X, y=...): the coefficients of a sample are its own and nothing links "
                "them to its rows, so they can only be fitted to its response. That is how the "
                "method is defined; choose another one to predict unknown responses."
            )
        problem = self._problem(rows, self._code(y, len(rows)), np.ones(len(rows)))
        return self._individual(problem), rows.offsets

    def _linear_predictor(self, X: Any, y: Any = None) -> Tensor:
        return self._fit_new(X, y)[0].z

    def _code(self, y: Any, n_samples: int) -> np.ndarray:
        """Numbers of given responses."""
        raise NotImplementedError

    def coefficients(self, X: Any, y: Any = None) -> list[np.ndarray]:
        """Fitted coefficients C_i of samples with responses y, arrays of shape (p_i, d·K)."""
        fit, offsets = self._fit_new(X, y)
        return np.split(fit.coefficients.numpy(), offsets[1:-1])

    def locate(self, X: Any, y: Any = None) -> np.ndarray:
        """Rows whose own coefficients have the largest norms (equation localization_mdsp).

        Shape (n_samples, n_located); -1 where a sample has fewer rows.
        """
        fit, offsets = self._fit_new(X, y)
        return top_rows(fit.coefficients.norm(dim=1).numpy(), offsets, self.n_located)


class MDSPRegressor(_MDSP, CompetitorRegressor):
    r"""Individualized regression with a multidirectional separation penalty (Tang et al. 2021).

    .. math:: \min_{C, γ} \sum_i \Big[ ½ (y_i - ⟨X_i, C_i⟩)^2
              + λ \sum_j \min\{‖C_{ij} - γ_j‖_1, ‖C_{ij}‖_1\} \Big]

    Each sample has its own coefficients, so that `predict` and `locate` need its response: they
    fit the coefficients to it with γ kept. By default the steps go on until the objective hardly
    falls; the fit of a response that was shown is then nearly exact. `stopped` makes the variant
    that comes near the published tables, by a rule that was read off them (`early_rule`).

    Parameters
    ----------
    alpha : float, "auto" or sequence
        λ; "auto" tries 0.01, 0.1 and 1 on held-out samples.
    max_steps : int
        Proximal gradient steps at most.
    tolerance : float
        Stop when a step lowers the objective by less than this share.
    stop_early : bool
        Draw γ at random, hold it still and take `max_steps` short steps from it; their length and
        the spread of γ follow from n, p, d and the scale of y in the training samples.
    n_located : int
        Rows that `locate` names, the paper's R̃.
    selection : "holdout" or int
        How open parameters are compared: one held-out part of n/8, or this many folds.
    random_state : int, RandomState or None
        Of the held-out part, and of γ if it is drawn.

    Attributes
    ----------
    gamma_ : array of shape (p, d)
    alpha_ : float
        The value in use.
    step_size_ : float or None
        Size of a short step; None for 1/‖X_i‖² (4/‖X_i‖² for two classes), which no step exceeds.
    n_rows_, n_iter_ : int
        p, rows of the longest training sample, and steps done to find γ.
    history_, selection_ : list of float, list of dicts
        Objective before the first of these steps and after each; held-out loss of every value
        tried.

    Examples
    --------
    >>> from diagatt import simulate
    >>> from diagatt.estimators.mdsp import MDSPRegressor
    >>> data = simulate.regression(100, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = MDSPRegressor(n_located=2).fit(data.X, data.y)
    >>> new = data.draw(3, seed=1)
    >>> model.locate(new.X, y=new.y).shape
    (3, 2)
    """

    def _code(self, y: Any, n_samples: int) -> np.ndarray:
        return self._validate_response(y, n_samples)

    def predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fitted responses ⟨X_i, C_i⟩ of samples whose responses `y` are given, (n_samples,)."""
        return self._linear_predictor(X, y)[:, 0].numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the fitted responses; it says nothing about unknown responses."""
        return r2_score(y, self.predict(X, y), sample_weight=sample_weight)


class MDSPClassifier(_MDSP, CompetitorClassifier):
    """Individualized classification with a multidirectional separation penalty.

    See `MDSPRegressor`. For more than two classes each has its coefficients and γ, and a row's
    coefficients of all classes are drawn to 0 or to γ together.

    Parameters
    ----------
    alpha, max_steps, tolerance, stop_early, n_located, selection, random_state
        As in `MDSPRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    gamma_ : array of shape (p, d), or (p, d · n_classes)
    alpha_, step_size_, n_rows_, n_iter_, history_, selection_
        As in `MDSPRegressor`.

    Examples
    --------
    >>> from diagatt import simulate
    >>> from diagatt.estimators.mdsp import MDSPClassifier
    >>> data = simulate.classification(100, p=6, d=4, seed=0)
    >>> model = MDSPClassifier(max_steps=20).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:3], y=data.y[:3]).shape
    (3, 2)
    """

    def _code(self, y: Any, n_samples: int) -> np.ndarray:
        labels = self._validate_classes(y, n_samples)
        unknown = np.flatnonzero(~np.isin(labels, self.classes_))
        if len(unknown):
            raise ValueError(
                f"y[{unknown[0]}] = {labels[unknown].tolist()[0]!r} is none of the classes of the "
                f"training samples, {self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, labels).astype(np.float64)

    def predict_proba(self, X: Any, y: Any = None) -> np.ndarray:
        """Fitted class probabilities of samples whose classes `y` are given."""
        return self._probabilities(self._linear_predictor(X, y))

    def predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fitted classes of samples whose classes `y` are given."""
        return self._labels(self._linear_predictor(X, y))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of fitted classes that are right; it says nothing about unknown classes."""
        return float(accuracy_score(y, self.predict(X, y), sample_weight=sample_weight))
