"""What fitting the regressor and the classifier have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils import check_random_state

from diagatt.attention.diagonal import DiagonalAttention, score_dimension
from diagatt.estimators.criteria import unevenness
from diagatt.estimators.diagonal_reading import DiagonalReading
from diagatt.estimators.heads import fit_diagonal
from diagatt.estimators.presets import get_preset
from diagatt.estimators.settings import check_settings
from diagatt.estimators.stored import check_given, counted_samples, is_small
from diagatt.ragged import RaggedRows
from diagatt.solvers.stored import AnyProblem, StoredProblem
from diagatt.stores import RowStore

# Attention whose entropy is within this part of the uniform one points at nothing.
LEAST_UNEVENNESS = 0.05


class NoRowOfInterestWarning(UserWarning):
    """The fitted attention does not single out rows."""


class _DiagAtt(DiagonalReading):
    """Everything that regression and classification share."""

    def __init__(
        self,
        n_heads: int | str | Sequence[int] = 1,
        *,
        family: str = "auto",
        solver: str = "auto",
        score_form: str = "affine",
        coupling: str = "distinct",
        covariance: str = "full",
        shrinkage: float | None = None,
        parameterization: str = "full",
        rank: int | None = None,
        temperature: float = 1.0,
        ridge: float = 1.0,
        score_ridge: float = 0.1,
        value_bound: float | None = None,
        score_bound: float | None = None,
        optimizer: str = "auto",
        learning_rate: float = 1e-2,
        batch_size: int | None = 128,
        max_epochs: int | None = None,
        tolerance: float = 1e-8,
        row_dropout: float = 0.0,
        value_dropout: float = 0.0,
        validation_fraction: float = 0.0,
        patience: int = 5,
        init: str = "pooled",
        init_scale: float = 0.1,
        n_restarts: int = 1,
        selection: str | int = "holdout",
        warm_start: bool = False,
        checkpoint: Any = None,
        checkpoint_every: int = 1,
        random_state: Any = None,
        device: str = "cpu",
        dtype: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_heads = n_heads
        self.family = family
        self.solver = solver
        self.score_form = score_form
        self.coupling = coupling
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.parameterization = parameterization
        self.rank = rank
        self.temperature = temperature
        self.ridge = ridge
        self.score_ridge = score_ridge
        self.value_bound = value_bound
        self.score_bound = score_bound
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.tolerance = tolerance
        self.row_dropout = row_dropout
        self.value_dropout = value_dropout
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.init = init
        self.init_scale = init_scale
        self.n_restarts = n_restarts
        self.selection = selection
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.verbose = verbose

    @classmethod
    def preset(cls, name: str, **parameters: Any) -> Self:
        """Make an estimator with named settings; further parameters override them.

        Parameters
        ----------
        name : {"paper", "text", "keyword", "keyword-layer"}
            "paper" trains as the paper does (supplement S7.1 and S7.2); "text" is for rows of
            words, the others for texts in which a single word decides (docs/text.md).

        Examples
        --------
        >>> from diagatt import DiagAttRegressor
        >>> DiagAttRegressor.preset("paper", n_heads=2).temperature
        100.0
        """
        return cls(**{**get_preset(cls._estimator_type_name(), name), **parameters})

    @classmethod
    def _estimator_type_name(cls) -> str:
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, covariates: Any = None) -> Self:
        """Fit to samples and their responses or classes.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, (n, d) array, or RowStore
            Samples. A 2-D array is n one-row samples, for which the model is a plain GLM. A
            `diagatt.stores.RowStore` is fitted in passes over its shards, in bounded memory; it
            holds its own responses, weights and covariates.
        y : array of shape (n,)
            Left out with a RowStore.
        sample_weight : array of shape (n,), optional
        covariates : array of shape (n, q), optional
            Shared covariates z whose effect is added to the predictor.
        """
        return self._fit(X, y, sample_weight, covariates)

    def _problem(self, X: Any, y: Any, sample_weight: Any, covariates: Any) -> AnyProblem:
        if not isinstance(X, RowStore):
            return super()._problem(X, y, sample_weight, covariates)
        check_given(X, y=y, sample_weight=sample_weight, covariates=covariates)
        encode = self._stored_encoder(X)
        if is_small(X):
            whole = X.take(np.arange(len(X)))
            return super()._problem(whole.X, whole.y, whole.weights, whole.covariates)
        self._note_features(X)
        check_settings(self, X)
        family, n_outputs = self._fitted_family()
        kind, device = self._torch_dtype(X.dtype), torch.device(self.device)
        return counted_samples(StoredProblem(X, family, encode, n_outputs, kind, device))

    def _check_rows(self, rows: RaggedRows) -> None:
        check_settings(self, rows)

    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that turns stored responses into numbers."""
        raise NotImplementedError

    def _fit_problem(self, problem: AnyProblem) -> None:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        start = self._warm_module(problem) if self.warm_start else None
        fitted = fit_diagonal(self, problem, seed, start)
        module = fitted.module
        self.n_heads_, self.n_restarts_ = fitted.n_heads, fitted.n_restarts
        query, key = module.small_factors or (module.query_key.matrix(), None)
        self.query_ = query.detach().cpu().numpy()  # (M·R, D, q), or W itself
        self.key_ = None if key is None else key.detach().cpu().numpy()
        self.value_ = _drop_single(module.value.mT.detach().cpu().numpy(), axis=1)  # (M·R, [K,] d)
        self.intercept_ = _drop_single(module.intercept.detach().cpu().numpy(), axis=0)
        self.covariate_coef_ = _drop_single(module.covariate.T.detach().cpu().numpy(), axis=0)
        self.n_covariates_ = problem.n_covariates
        self.temperature_ = float(module.temperature)
        self.solver_ = fitted.solver
        self.coupling_ = module.coupling
        self.log_likelihood_ = fitted.log_likelihood
        self.criteria_ = fitted.criteria
        self.value_se_ = None if fitted.value_se is None else fitted.value_se.cpu().numpy()
        self.n_samples_ = problem.n_samples
        self.history_ = fitted.history
        self.selection_ = fitted.selection
        self.unevenness_ = [] if fitted.solver == "glm" else unevenness(module, problem)
        self._warn_if_uniform()
        self.n_iter_ = max(len(history) for history in fitted.history)
        self.communication_ = {
            "processes": problem.group.size,
            "reductions": problem.group.reductions,
            "bytes": problem.group.traffic,
            "sample_bytes": problem.group.exchanged,
        }

    def _warn_if_uniform(self) -> None:
        if self.unevenness_ and max(self.unevenness_) < LEAST_UNEVENNESS:
            warnings.warn(
                "attention is near uniform: no row of interest was found, and the prediction is "
                "close to a regression on mean rows. Do not read locate() as an answer.",
                NoRowOfInterestWarning,
                stacklevel=5,
            )

    def _warm_module(self, problem: AnyProblem) -> DiagonalAttention | None:
        if not hasattr(self, "query_"):
            return None
        shape = (self.n_heads_ * self.n_restarts_, problem.n_outputs, problem.n_features)
        side = score_dimension(problem.n_features, self.score_form)
        chosen = self.n_heads == "auto" or isinstance(self.n_heads, list | tuple)
        if (
            not (chosen or self.n_heads == self.n_heads_)
            or np.size(self.value_) != np.prod(shape)
            or self.query_.shape[1] != side
            or self.n_covariates_ != problem.n_covariates
        ):
            raise ValueError(
                "warm_start continues a fit of the same n_heads, score_form, features, classes and "
                "covariates: set warm_start=False or the old values."
            )
        return self.to_module()


def _drop_single(array: np.ndarray, axis: int) -> Any:
    """Leave out the axis of outputs if there is one output."""
    return array.squeeze(axis) if array.shape[axis] == 1 else array
