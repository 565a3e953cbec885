"""What the regressor and the classifier share: fitting, and reading the fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from diagatt.attention.coupling import distinct_argmax
from diagatt.attention.diagonal import DiagonalAttention, score_dimension
from diagatt.attention.parameterizations import FactoredQueryKey
from diagatt.estimators.base import (
    RowsEstimator,
    check_finite,
    validate_covariates,
)
from diagatt.estimators.criteria import unevenness
from diagatt.estimators.heads import fit_diagonal
from diagatt.estimators.presets import get_preset
from diagatt.estimators.settings import check_lengths, check_settings
from diagatt.estimators.stored import by_shard
from diagatt.estimators.summary import Certainty, Summary, coefficient
from diagatt.families import Family, check_response
from diagatt.ragged import RaggedRows
from diagatt.segments import (
    map_blocks,
    segment_argmax,
    segment_sum,
    weighted_pool,
)
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem
from diagatt.stores import RowStore

# Attention whose entropy is within this part of the uniform one points at nothing.
LEAST_UNEVENNESS = 0.05


class NoRowOfInterestWarning(UserWarning):
    """The fitted attention does not single out rows."""


class _DiagAtt(TransformerMixin, RowsEstimator):
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

    # ------------------------------------------------------------------ fitting

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

    def _fitted_family(self) -> tuple[Family, int]:
        """Family and number of linear predictors."""
        raise NotImplementedError

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

    def _validate_rows(self, X: Any, *, reset: bool) -> RaggedRows:
        rows = super()._validate_rows(X, reset=reset)
        if not reset and self.coupling_ == "distinct":
            check_lengths(rows, self.n_heads_)
        return rows

    # ------------------------------------------------------------------ what the fit says

    @property
    def query_key_(self) -> np.ndarray:
        """W of every head, (M·R, D, D); multiplied out if its factors are kept."""
        check_is_fitted(self)
        return self.query_ if self.key_ is None else self.query_ @ self.key_.swapaxes(1, 2)

    @query_key_.setter
    def query_key_(self, W: np.ndarray) -> None:
        self.query_, self.key_ = W, None

    @torch.random.fork_rng(devices=[])  # a new module draws numbers that are not used
    def to_module(self) -> DiagonalAttention:
        """The fitted model as a torch module (M·R heads if M restarts were averaged)."""
        check_is_fitted(self)
        heads, d = len(self.value_), self.value_.shape[-1]
        forms = {d: "quadratic", d + 1: "affine", 2 * d + 1: "contextual"}
        _, n_outputs = self._fitted_family()
        module = DiagonalAttention(
            d,
            heads,
            n_outputs,
            self.n_covariates_,
            temperature=self.temperature_,
            parameterization="full" if self.key_ is None else "factored",
            rank=None if self.key_ is None else self.key_.shape[-1],
            score_form=forms[self.query_.shape[1]],
            coupling=self.coupling_,
            groups=self.n_restarts_,
        ).to(torch.from_numpy(self.value_).dtype)
        with torch.no_grad():
            if isinstance(module.query_key, FactoredQueryKey):
                module.query_key.set_factors(*map(torch.from_numpy, (self.query_, self.key_)))
            else:
                module.query_key.set_matrix(torch.from_numpy(self.query_))
            module.value.copy_(torch.from_numpy(self.value_.reshape(heads, n_outputs, d)).mT)
            module.intercept.copy_(torch.as_tensor(self.intercept_))
            coefficients = torch.from_numpy(np.asarray(self.covariate_coef_))
            module.covariate.copy_(coefficients.reshape(n_outputs, -1).T)
        return module

    @by_shard
    @torch.no_grad()
    def _linear_predictor(self, X: Any, covariates: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        Z = validate_covariates(covariates, len(rows), self.n_covariates_)
        module = self.to_module().to(self.device)
        values, offsets = rows.to_torch(self.device, module.value.dtype)
        z = map_blocks(module, values, offsets, torch.as_tensor(Z).to(values))
        if not bool(torch.isfinite(z).all()):
            check_finite(rows)
        return z.cpu().numpy()

    @torch.no_grad()
    def _head_attention(self, rows: RaggedRows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Weights of every restart (N, M, R), and packed rows with offsets."""
        module = self.to_module().to(self.device)
        values, offsets = rows.to_torch(self.device, module.value.dtype)
        kappa = map_blocks(module.attention, values, offsets)
        if not bool(torch.isfinite(kappa).all()):
            check_finite(rows)
        return kappa.reshape(len(values), self.n_restarts_, self.n_heads_), values, offsets

    @torch.no_grad()
    def _packed_scores(self, rows: RaggedRows) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores ψ/τ of every head of every restart, (N, M·R), and offsets."""
        module = self.to_module().to(self.device)
        values, offsets = rows.to_torch(self.device, module.value.dtype)
        scores = map_blocks(module.scores, values, offsets) / self.temperature_
        if not bool(torch.isfinite(scores).all()):
            check_finite(rows)
        return scores, offsets

    @by_shard
    def scores(self, X: Any) -> list[np.ndarray]:
        """Scores ψ/τ behind the attention weights, one ``(p_i, n_heads)`` array a sample.

        With several restarts, the mean over restarts.
        """
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        scores, _ = self._packed_scores(rows)
        scores = scores.reshape(len(scores), self.n_restarts_, self.n_heads_).mean(dim=1)
        return _per_sample(scores, rows)

    @by_shard
    def attention(self, X: Any) -> list[np.ndarray]:
        """Attention weights κ (equation softmax_diag_score_multi).

        Parameters
        ----------
        X : samples

        Returns
        -------
        list of arrays of shape (p_i, n_heads)
            Columns sum to 1. With several restarts, the mean over restarts.
        """
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        kappa, _, _ = self._head_attention(rows)
        return _per_sample(kappa.mean(dim=1), rows)

    @by_shard
    def locate(self, X: Any) -> np.ndarray:
        """Row of interest of each head, the paper's Ŝ: argmax over rows of the attention.

        With ``coupling="distinct"`` the heads' rows differ: of all distinct rows, those with the
        largest product of weights.

        Returns
        -------
        array of shape (n_samples, n_heads), int
            Row numbers within each sample, from 0.
        """
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        if self.n_restarts_ == 1 and (self.n_heads_ == 1 or self.coupling_ == "independent"):
            scores, offsets = self._packed_scores(rows)  # the softmax keeps their order
            return map_blocks(segment_argmax, scores, offsets).cpu().numpy()
        kappa, _, offsets = self._head_attention(rows)
        return self._best_rows(kappa.mean(dim=1), offsets).cpu().numpy()

    def _best_rows(self, kappa: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        distinct = self.coupling_ == "distinct" and self.n_heads_ > 1
        return map_blocks(distinct_argmax if distinct else segment_argmax, kappa, offsets)

    @by_shard
    def certainty(self, X: Any) -> Certainty:
        """Rows of interest with their posterior, entropy and a flag where they are ambiguous."""
        check_is_fitted(self)
        kappa, _, offsets = self._head_attention(self._validate_rows(X, reset=False))
        kappa = kappa.mean(dim=1)  # (N, R)
        rows = self._best_rows(kappa, offsets)
        posterior = kappa[offsets[:-1, None] + rows, torch.arange(self.n_heads_)]
        entropy = segment_sum(-torch.special.xlogy(kappa, kappa), offsets)
        arrays = (rows, posterior, entropy, posterior < 0.5)
        return Certainty(*(array.cpu().numpy() for array in arrays))

    def summary(self) -> Summary:
        """Value vectors with standard errors, log-likelihood, AIC and BIC; print the result.

        Standard errors come from the observed information of the likelihood solver, with the
        distributions of rows taken as known; other solvers give none.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self)
        heads, outputs = self.n_restarts_ * self.n_heads_, np.size(self.intercept_)
        value = self.value_.reshape(heads, outputs, -1)
        se = np.full(value[:, 0].size + 1 + self.n_covariates_, np.nan)
        se = se if self.value_se_ is None else self.value_se_
        classes = [""] if outputs == 1 else [f" {c}" for c in self.classes_]
        lines = []
        for k, label in enumerate(classes):
            estimates = value[:, k].ravel()
            where = [(f"head {r}{label}", x) for r in range(heads) for x in names]
            shared = [np.atleast_1d(self.intercept_)[k], *np.atleast_2d(self.covariate_coef_)[k]]
            where += [(f"shared{label}", "intercept")]
            where += [(f"shared{label}", f"covariate {j}") for j in range(self.n_covariates_)]
            for (head, x), estimate, error in zip(where, [*estimates, *shared], se, strict=True):
                lines.append(coefficient(head, x, float(estimate), float(error)))
        facts = {
            "samples": self.n_samples_,
            "family": self._fitted_family()[0].name,
            "solver": self.solver_,
            "attention (0 uniform, 1 one row)": ", ".join(f"{u:.3f}" for u in self.unevenness_),
        }
        return Summary(type(self).__name__, facts, lines, self.criteria_)

    @by_shard
    def restart_agreement(self, X: Any) -> np.ndarray:
        """Share of restarts that point at the row that `locate` names, (n_samples, n_heads).

        1 where all restarts agree; low values say how little a row can be trusted.
        """
        check_is_fitted(self)
        kappa, _, offsets = self._head_attention(self._validate_rows(X, reset=False))
        located = self._best_rows(kappa.mean(dim=1), offsets)
        votes = [self._best_rows(kappa[:, m], offsets) == located for m in range(kappa.shape[1])]
        return torch.stack(votes).double().mean(dim=0).cpu().numpy()

    @by_shard
    def transform(self, X: Any) -> np.ndarray:
        """Pooled rows Xᵀκ_r of all heads side by side, (n_samples, n_heads · n_features)."""
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        kappa, values, offsets = self._head_attention(rows)
        pooled = weighted_pool(kappa.mean(dim=1), values, offsets)
        return pooled.flatten(1).cpu().numpy().astype(rows.dtype, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names ``head0_x0, head0_x1, …`` of the columns of `transform`."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([f"head{r}_{x}" for r in range(self.n_heads_) for x in names], object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _per_sample(packed: torch.Tensor, rows: RaggedRows) -> list[np.ndarray]:
    return np.split(packed.cpu().numpy(), rows.offsets[1:-1])


def _drop_single(array: np.ndarray, axis: int) -> Any:
    """Leave out the axis of outputs if there is one output."""
    return array.squeeze(axis) if array.shape[axis] == 1 else array
