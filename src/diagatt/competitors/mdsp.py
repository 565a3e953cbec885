"""Sample-specific coefficients under the row-wise multidirectional separation penalty."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt import attributes, coerce
from diagatt.competitors.shared import Padded, Unweighted
from diagatt.estimators.response import Classification, Regression
from diagatt.localization import N_LOCATED, top_rows
from diagatt.parameters import at_least, boolean, count, optional, several
from diagatt.segments import BLOCK_ROWS, row_positions, sample_of_row, segment_sum
from diagatt.solvers.problem import Samples

# The variant that stops early takes ten steps, whatever the tolerance.
EARLY_STOPPING = {"stop_early": True, "max_steps": 10, "tolerance": 0.0}


# ---------------------------------------------------------------------- solver


def separation_prox(u: Tensor, gamma: Tensor, threshold: Tensor) -> Tensor:
    r"""Minimize :math:`½‖u - c‖² + t\min\{‖c - γ‖_1, ‖c‖_1\}` over c, exactly.

    The minimum of two functions is least where one of them is: soft-threshold u towards γ and
    towards 0, and take the side whose objective is smaller, 0's if they are equal. The tensors u
    and γ have shape (m, D), t ≥ 0 has shape (m, 1).
    """
    from_gamma = u - gamma
    cut_gamma = from_gamma.clamp(-threshold, threshold)  # soft(v) = v − clip(v)
    cut_zero = u.clamp(-threshold, threshold)
    # Least value of ½(v − c)² + t|c|: Huber's function, clip(v)·v − ½clip(v)².
    envelope_gamma = (cut_gamma * (from_gamma - 0.5 * cut_gamma)).sum(dim=1)
    envelope_zero = (cut_zero * (u - 0.5 * cut_zero)).sum(dim=1)
    to_gamma = envelope_gamma < envelope_zero
    return torch.where(to_gamma[:, None], u - cut_gamma, u - cut_zero)


def early_rule(problem: Samples) -> tuple[float, float]:
    r"""Guess how far the paper's fits went and how far from 0 they started; return T and σ.

    Steps of total length T start from centres that are drawn from :math:`N(0, σ^2)` and kept fixed:

    .. math:: T = 0.0096\, \frac{s \sqrt{pd}}{n^{1/3}} \Big/ \frac1n \sum_i ‖X_i‖^2,
              \qquad σ = 0.70\, \frac{d^{1/4}}{\sqrt{np}},

    where p is the mean count of rows and s the root mean square of y (1 for classes). Both
    constants and the form were inferred from the published tables; there is no derivation.
    """
    n, p, d = problem.n_samples, len(problem.values) / problem.n_samples, problem.n_features
    s = 1.0 if problem.family.classifies else float(problem.y.double().square().mean().sqrt())
    mean_square = float(problem.values.square().sum(dim=1).double().sum()) / n
    length = 0.0096 * s * (p * d) ** 0.5 / n ** (1 / 3) / max(mean_square, 1e-30)
    return length, 0.70 * d**0.25 / (n * p) ** 0.5


class MDSPFit:
    """Coefficients C_i of given samples, step by step; `MDSPRegressor` has the objective.

    Proximal gradient steps in C, whose proximal map is exact, alternate with exact minimization
    over each γ_j for given sides. With steps of at most 1/L_i, L_i = c‖X_i‖², no step raises the
    objective. C has the shape of the packed rows; nothing else of that size is made.

    Parameters
    ----------
    problem : Samples
        Gaussian responses, or classes.
    alpha : float
        λ.
    gamma : tensor of shape (p, D), optional
        Centres, D = d·K: found from the samples if not given, kept if given.
    step_size : float, optional
        Largest step; no step exceeds 1/L_i in any case.

    Attributes
    ----------
    coefficients, gamma : tensors of shape (N, D) and (p, D)
    history : list of float
        Objective before the first step and after each.
    """

    def __init__(
        self,
        problem: Samples,
        alpha: float,
        gamma: Tensor | None = None,
        step_size: float | None = None,
    ):
        self.problem, self.alpha, self.learns_gamma = problem, alpha, gamma is None
        self.sample = sample_of_row(problem.offsets)  # (N,)
        self.position = row_positions(problem.offsets)  # (N,)
        squares = segment_sum(problem.values.square().sum(dim=1), problem.offsets)  # (n,) ‖X_i‖²
        bound = problem.family.curvature_bound
        assert bound is not None  # squares and the losses of classes have Lipschitz gradients
        lipschitz = bound * squares
        self.step = 1 / lipschitz.clamp(min=1e-30)
        if step_size is not None:
            self.step = self.step.clamp(max=step_size)
        self.gamma = self._first_gamma(float(lipschitz.mean())) if gamma is None else gamma
        self.coefficients = self.gamma[self.position]  # (N, D): all samples start at γ
        self.z, self.penalty = self._measure()
        self.history = [float(self.objectives().sum())]

    def run(self, max_steps: int, tolerance: float) -> MDSPFit:
        """Alternate until the objective hardly falls, or `max_steps` are done.

        With γ given, samples have nothing to do with each other and each stops on its own.
        """
        before = self.objectives()
        for _ in range(max_steps):
            self.descend()
            if self.learns_gamma:
                self.move_gamma()
            self.z, self.penalty = self._measure()
            after = self.objectives()
            self.history.append(float(after.sum()))
            if self.learns_gamma:
                is_done = (before - after).sum() <= tolerance * after.sum()
            else:
                done = before - after <= tolerance * after  # (n,)
                self.step = torch.where(done, 0, self.step)  # a step of size 0 moves nothing
                is_done = done.all()
            if bool(is_done):
                break
            before = after
        return self

    def objectives(self) -> Tensor:
        """Return the loss and penalty of every sample, (n,)."""
        loss = self.problem.family.loss(self.problem.y, self.z).double()
        return loss + self.alpha * self.penalty

    def descend(self) -> None:
        """Take one proximal gradient step in every sample, in place, in blocks of rows."""
        slope = self.problem.family.gradient(self.problem.y, self.z)  # (n, K)
        push = self.step[:, None] * slope
        for rows in self._blocks():
            sample, x = self.sample[rows], self.problem.values[rows]
            u = self.coefficients[rows] - (x[:, :, None] * push[sample][:, None]).flatten(1)
            centres, threshold = self.gamma[self.position[rows]], self.alpha * self.step[sample]
            self.coefficients[rows] = separation_prox(u, centres, threshold[:, None])

    def move_gamma(self) -> None:
        """Set γ_j to the median of the C_ij nearer to it than to 0, exact for these sides."""
        nearer = torch.cat([torch.lt(*self._distances(rows)) for rows in self._blocks()])  # (N,)
        for j in range(len(self.gamma)):
            lines = self.coefficients[nearer & (self.position == j)].numpy()
            if len(lines):
                self.gamma[j] = torch.from_numpy(np.median(lines, axis=0))

    def _first_gamma(self, mean_lipschitz: float) -> Tensor:
        """Take one pooled gradient step from 0, as if all samples had the same coefficients."""
        problem = self.problem
        p, D = int(problem.offsets.diff().max()), problem.n_features * problem.n_outputs
        zero = problem.values.new_zeros(problem.n_samples, problem.n_outputs)
        slope = problem.family.gradient(problem.y, zero)[self.sample]  # (N, K)
        pooled = problem.values.new_zeros(p, D)
        for rows in self._blocks():
            lines = (problem.values[rows][:, :, None] * slope[rows][:, None]).flatten(1)
            pooled.index_add_(0, self.position[rows], lines)
        return -pooled / (problem.n_samples * max(mean_lipschitz, 1e-30))

    def _measure(self) -> tuple[Tensor, Tensor]:
        """Return ⟨X_i, C_i⟩, (n, K), and Σ_j min{‖C_ij − γ_j‖₁, ‖C_ij‖₁}, (n,)."""
        problem = self.problem
        penalty = problem.values.new_empty(len(problem.values), dtype=torch.float64)
        effects = problem.values.new_empty(len(problem.values), problem.n_outputs)
        for rows in self._blocks():
            lines = self.coefficients[rows]  # (B, d·K)
            penalty[rows] = torch.minimum(*self._distances(rows)).double()
            lines = lines.unflatten(1, (problem.n_features, problem.n_outputs))
            effects[rows] = (problem.values[rows][:, :, None] * lines).sum(dim=1)
        return segment_sum(effects, problem.offsets), segment_sum(penalty, problem.offsets)

    def _distances(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Return ‖C_ij − γ_j‖₁ and ‖C_ij‖₁ of these rows."""
        lines = self.coefficients[rows]
        to_gamma = (lines - self.gamma[self.position[rows]]).abs().sum(dim=1)
        return to_gamma, lines.abs().sum(dim=1)

    def _blocks(self):
        for start in range(0, len(self.problem.values), BLOCK_ROWS):
            yield slice(start, start + BLOCK_ROWS)


# ---------------------------------------------------------------------- estimators


@dataclass(eq=False, repr=False)
class _MDSP(Unweighted, Padded):
    """What regression and classification share."""

    alpha: Any = 0.1
    _: KW_ONLY
    max_steps: int = 1000
    tolerance: float = 1e-6
    stop_early: bool = False
    n_located: int = N_LOCATED
    selection: str | int = "holdout"
    random_state: Any = None

    grids: ClassVar = {"alpha": (0.01, 0.1, 1.0)}
    rules: ClassVar = {
        "alpha": several(at_least(0)),
        "max_steps": count(1),
        "tolerance": at_least(0),
        "stop_early": boolean(),
    }
    fitted_rules: ClassVar[attributes.Rules] = {
        "gamma_": attributes.floats(),
        "history_": attributes.report(),
        "n_iter_": count(),
        "step_size_": optional(at_least(0)),
        "alpha_": at_least(0),
    }
    per_position: ClassVar = "one centre γ_j"
    alpha_: float = field(init=False)
    gamma_: np.ndarray = field(init=False)
    step_size_: float | None = field(init=False)

    @classmethod
    def stopped(cls, **parameters: Any) -> Self:
        """Make the estimator that stops after a few small steps, as the paper's seems to do."""
        return cls(**{**EARLY_STOPPING, **parameters})

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        if self.stop_early:  # centres that are kept do not depend on the responses
            length, spread = early_rule(problem)
            self.step_size_, self.history_, self.n_iter_ = length / self.max_steps, [], 0
            shape = self.n_rows_, problem.n_features * problem.n_outputs
            self.gamma_ = np.random.default_rng(seed).normal(0, spread, shape)
            return
        self.step_size_ = None
        fit = MDSPFit(problem, self.alpha_).run(self.max_steps, self.tolerance)
        missing = self.n_rows_ - len(fit.gamma)  # held-out samples may be longer
        self.gamma_ = np.pad(fit.gamma.numpy(), ((0, missing), (0, 0)))  # (p, d·K)
        self.history_, self.n_iter_ = fit.history, len(fit.history) - 1

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        shape = self.n_rows_, self.n_features_in_ * self._n_outputs()
        return {**super()._fitted_shapes(), "gamma_": shape}

    def _individual(self, problem: Samples) -> MDSPFit:
        gamma = torch.from_numpy(self.gamma_).to(problem.dtype)
        fit = MDSPFit(problem, self.alpha_, gamma, self.step_size_)
        return fit.run(self.max_steps, self.tolerance)

    def _held_out_predictor(self, problem: Samples) -> Tensor:
        return self._individual(problem).z

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        # Without responses there are no coefficients: `_fit_new` replaces this method.
        raise NotImplementedError(f"{type(self).__name__} predicts only where y is known.")

    def _row_scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        return self._predictor(values, offsets)  # neither are there scores of rows

    def _fit_new(self, X: Any, y: Any) -> MDSPFit:
        """Fit the coefficients of new samples to their responses."""
        check_is_fitted(self)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs the responses of new samples too, "
                "predict(X, y=...): the coefficients of a sample are its own and nothing links "
                "them to its rows, so they can only be fitted to its response. That is how the "
                "method is defined; choose another one to predict unknown responses."
            )
        rows = self._validate_rows(X, reset=False)
        ones, none = np.ones(len(rows)), np.empty((len(rows), 0))
        return self._individual(self._tensors(rows, self._encode(y, ones), ones, none))

    def _linear_predictor(self, X: Any, y: Any = None) -> np.ndarray:
        return self._fit_new(X, y).z.numpy()

    def _encode(self, y: Any, weights: np.ndarray) -> np.ndarray:
        """Return given responses as numbers."""
        return self._read_response(y, weights)

    def coefficients(self, X: Any, y: Any = None) -> list[np.ndarray]:
        """Return the coefficients C_i of samples with responses y, arrays of shape (p_i, d·K)."""
        fit = self._fit_new(X, y)
        return np.split(fit.coefficients.numpy(), fit.problem.offsets.numpy()[1:-1])

    def locate(self, X: Any, y: Any = None) -> np.ndarray:
        """Return the rows whose own coefficients have the largest norms, (n_samples, n_located).

        This is equation localization_mdsp; a line ends with -1 where a sample has fewer rows.
        """
        fit = self._fit_new(X, y)
        norms = fit.coefficients.norm(dim=1).numpy()
        return top_rows(norms, fit.problem.offsets.numpy(), self.n_located)


class MDSPRegressor(Regression, _MDSP):
    r"""Individualized regression with a multidirectional separation penalty (Tang et al. 2021).

    .. math:: \min_{C, γ} \sum_i \Big[ ½ (y_i - ⟨X_i, C_i⟩)^2
              + λ \sum_j \min\{‖C_{ij} - γ_j‖_1, ‖C_{ij}‖_1\} \Big]

    Each sample has its own coefficients C_i, whose lines are drawn either to 0 or to a centre γ_j
    that all samples share (equation mdsp_penalty of the supplement). `fit` keeps the centres
    alone; `predict` and `locate` need the response of a sample, to which they fit its
    coefficients. By default, steps are taken until the objective hardly falls, so that a given
    response is fitted nearly exactly. `stopped` makes the variant that comes near the published
    tables, by a rule that was inferred from them (`early_rule`).

    Parameters
    ----------
    alpha : float, "auto" or sequence
        λ; "auto" tries 0.01, 0.1 and 1.
    max_steps : int
        Largest count of proximal gradient steps.
    tolerance : float
        Stop when a step lowers the objective by less than this share.
    stop_early : bool
        Draw γ at random, keep it and take `max_steps` short steps from it; their length and the
        spread of γ follow from n, p, d and the scale of y in the training samples.
    n_located, selection, random_state
        See `Competitor`; rows are located by ‖C_ij‖, and the seed draws γ if it is random.

    Attributes
    ----------
    gamma_ : array of shape (p, d)
    step_size_ : float or None
        Size of a short step; None for 1/‖X_i‖² (4/‖X_i‖² for two classes), which no step exceeds.
    n_rows_, n_iter_ : int
        p, rows of the longest training sample, and steps taken to find γ.
    alpha_, history_, selection_
        The value in use, the objective before the first of these steps and after each, and the
        held-out loss of every alpha.

    Examples
    --------
    >>> from diagatt import MDSPRegressor, simulate
    >>> data = simulate.regression(100, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = MDSPRegressor(n_located=2).fit(data.X, data.y)
    >>> new = data.draw(3, seed=1)
    >>> model.locate(new.X, y=new.y).shape
    (3, 2)
    """

    def predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Return fitted responses ⟨X_i, C_i⟩ of samples whose responses `y` are given."""
        return super().predict(X, y)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # type: ignore[override]
        """Return R² of the fitted responses, which is no measure of unknown responses."""
        return self._score_of(X, y, self.predict(X, y), sample_weight)


class MDSPClassifier(Classification, _MDSP):
    """Individualized classification with a multidirectional separation penalty.

    Parameters and attributes are those of `MDSPRegressor`, and ``classes_``. More than two classes
    have their own coefficients and γ each, side by side in ``gamma_``, and the coefficients of a
    row are drawn to 0 or to γ for all classes together.

    Examples
    --------
    >>> from diagatt import MDSPClassifier, simulate
    >>> data = simulate.classification(100, p=6, d=4, seed=0)
    >>> model = MDSPClassifier(max_steps=20).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:3], y=data.y[:3]).shape
    (3, 2)
    """

    def _encode(self, y: Any, weights: np.ndarray) -> np.ndarray:
        labels = coerce.classes(y, len(weights))
        unknown = np.flatnonzero(~np.isin(labels, self.classes_))
        if len(unknown):
            raise ValueError(
                f"y[{unknown[0]}] = {labels[unknown].tolist()[0]!r} is not one of the classes of "
                f"the training samples, {self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, labels).astype(np.float64)

    def decision_function(self, X: Any, y: Any = None) -> np.ndarray:
        """Return fitted linear predictors of samples whose classes `y` are given."""
        return super().decision_function(X, y)

    def predict_proba(self, X: Any, y: Any = None) -> np.ndarray:
        """Return fitted class probabilities of samples whose classes `y` are given."""
        return super().predict_proba(X, y)

    def predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Return fitted classes of samples whose classes `y` are given."""
        return super().predict(X, y)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # type: ignore[override]
        """Return the share of right classes, which is no measure of unknown classes."""
        return self._score_of(X, y, self.predict(X, y), sample_weight)
