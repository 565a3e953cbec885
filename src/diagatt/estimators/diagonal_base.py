"""What fitting the regressor and the classifier have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils import check_random_state

from diagatt.attention.diagonal import DiagonalAttention, score_dimension
from diagatt.estimators.base import validate_covariates
from diagatt.estimators.criteria import unevenness
from diagatt.estimators.diagonal_reading import DiagonalReading
from diagatt.estimators.heads import fit_diagonal
from diagatt.estimators.presets import get_preset
from diagatt.estimators.settings import check_settings
from diagatt.families import Family, check_response
from diagatt.ragged import RaggedRows
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem
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
        name : {"paper"}
            "paper" trains as the paper does (supplement S7.1 and S7.2). For texts, see
            `diagatt.text.text_estimator`.

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

    def _fit(self, rows: RaggedRows, y: np.ndarray, weights: np.ndarray, covariates: Any) -> None:
        check_settings(self, rows)
        family, n_outputs = self._fitted_family()
        if len(rows) != len(y):
            raise ValueError(f"X has {len(rows)} samples, y has {len(y)} responses.")
        Z = validate_covariates(covariates, len(rows), expected=None)
        problem = self._problem(family, rows, y, weights, Z, n_outputs)
        check_response(family, problem.y)
        if bool((problem.weights == 0).any()):
            problem = problem.take(torch.nonzero(problem.weights)[:, 0])
        self._fit_problem(problem)

    def _encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        """Turn stored responses into numbers."""
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

    def _problem(self, family: Family, rows, y, weights, Z, n_outputs) -> Problem:
        dtype = self._torch_dtype(rows.dtype)
        values, offsets = rows.to_torch(self.device, dtype)
        y, weights, Z = (torch.as_tensor(a).to(self.device, dtype) for a in (y, weights, Z))
        return Problem(family, values, offsets, y, weights, Z, n_outputs)

    def _torch_dtype(self, own: np.dtype) -> torch.dtype:
        """What was asked for, or that of the rows."""
        return torch.float32 if np.dtype(self.dtype or own) == np.float32 else torch.float64

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
