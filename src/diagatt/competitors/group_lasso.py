"""Group lasso over the rows of zero-padded samples, solved by skglm."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn import functional as F

from diagatt import attributes
from diagatt.competitors.shared import Padded
from diagatt.estimators.response import Classification, Regression
from diagatt.localization import N_LOCATED, row_positions
from diagatt.parameters import at_least, optional, several
from diagatt.solvers.problem import Samples
from diagatt.user_warnings import warn

# Up to the first count of entries of the design, the solution has ten digits by default. Up to the
# second count of coefficients, Newton's method then finishes it to the last digits.
SMALL_DESIGN, FINISHED_COEFFICIENTS = 1_000_000, 500


# ---------------------------------------------------------------------- solver


@dataclass(frozen=True)
class RowDesign:
    """Padded samples as lines with one column per position and feature, centred by weight.

    Attributes
    ----------
    columns : array of shape (n, p·d), F-ordered float64
    center : array of shape (p·d,)
        Weighted means that were subtracted.
    weights : array of shape (n,)
        Sample weights; they sum to 1.
    lipschitz : array of shape (p,)
        Largest eigenvalue of the weighted Gram matrix of each position.
    n_features : int
        d.
    """

    columns: np.ndarray
    center: np.ndarray
    weights: np.ndarray
    lipschitz: np.ndarray
    n_features: int


def row_design(
    values: np.ndarray, offsets: np.ndarray, weights: np.ndarray, n_rows: int
) -> RowDesign:
    """Pad packed samples to `n_rows` rows and lay each out as one line."""
    lengths, d = np.diff(offsets), values.shape[1]
    columns = np.zeros((len(lengths), n_rows * d), order="F")
    for j in range(n_rows):
        has = np.flatnonzero(lengths > j)
        columns[has, j * d : (j + 1) * d] = values[offsets[has] + j]
    weights = weights.astype(np.float64) / weights.sum(dtype=np.float64)
    center = weights @ columns
    columns -= center
    lipschitz = np.empty(n_rows)
    for j in range(n_rows):
        block = columns[:, j * d : (j + 1) * d]
        lipschitz[j] = np.linalg.eigvalsh(block.T @ (weights[:, None] * block))[-1]
    # A position without variance would divide by zero; a larger constant is always valid.
    floor = 1e-10 * lipschitz.max() if lipschitz.max() > 0 else 1.0
    return RowDesign(columns, center, weights, np.maximum(lipschitz, floor), d)


class WeightedLoss:
    """The loss Σ_i w_i ℓ(y_i, z_i) in the form that skglm's block coordinate descent takes.

    ℓ is (y − z)²/2, or log(1 + exp(−yz)) with y in {−1, 1} if `logistic`. skglm compiles the class
    with numba, hence plain code without types. The group losses of skglm itself have no sample
    weights and divide by zero at a position without variance.
    """

    def __init__(self, logistic, weights, lipschitz, grp_ptr, grp_indices):
        self.logistic, self.weights, self.lipschitz = logistic, weights, lipschitz
        self.grp_ptr, self.grp_indices = grp_ptr, grp_indices

    def get_spec(self):
        """Return the types of the attributes."""
        from numba import boolean, float64, int32

        floats = (("weights", float64[:]), ("lipschitz", float64[:]))
        groups = (("grp_ptr", int32[:]), ("grp_indices", int32[:]))
        return (("logistic", boolean), *floats, *groups)

    def params_to_dict(self):
        """Return the arguments of the constructor."""
        return dict(vars(self))

    def initialize(self, X, y):
        """Do nothing; skglm calls this before it starts."""

    def get_lipschitz(self, X, y):
        """Return the Lipschitz constant of the gradient of each group, (p,)."""
        return self.lipschitz / 4 if self.logistic else self.lipschitz

    def value(self, y, w, Xw):
        """Return the loss at the predictor Xw."""
        if not self.logistic:
            return 0.5 * np.sum(self.weights * (y - Xw) ** 2)
        margin = y * Xw
        return np.sum(self.weights * (np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0)))

    def slope(self, y, Xw):
        """Return the derivative by each predictor, (n,)."""
        if not self.logistic:
            return self.weights * (Xw - y)
        return -self.weights * y / (1 + np.exp(y * Xw))

    def curvature(self, y, Xw):
        """Return the second derivative by each predictor, (n,)."""
        if not self.logistic:
            return self.weights
        small = np.exp(-np.abs(Xw))
        return self.weights * small / (1 + small) ** 2

    def gradient_g(self, X, y, w, Xw, g):
        """Return the gradient by one group, whose columns are contiguous."""
        return X.T[self.grp_ptr[g] : self.grp_ptr[g + 1]] @ self.slope(y, Xw)

    def intercept_update_step(self, y, Xw):
        """Return what to subtract from the intercept: a gradient step, as weights sum to 1."""
        return (4 if self.logistic else 1) * np.sum(self.slope(y, Xw))


def fit_group_lasso(
    design: RowDesign,
    y: np.ndarray,
    alpha: float,
    logistic: bool = False,
    tolerance: float | None = None,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Minimize the penalized loss by skglm's block coordinate descent with working sets.

    Parameters
    ----------
    design : RowDesign
    y : array of shape (n,)
        Numbers, or -1 and 1 for the logistic loss.
    alpha : float
        λ.
    logistic : bool
        Whether to take the logistic loss instead of least squares.
    tolerance : float, optional
        Largest distance to optimality of any group, relative to the largest at zero; by default
        1e-10 for small designs and 1e-4 beyond.
    start : array of shape (p·d + 1,), optional
        An earlier result.

    Returns
    -------
    array of shape (p·d + 1,)
        Coefficients of centred columns and, last, the intercept; see `uncentred`.
    """
    try:
        from skglm.penalties import WeightedGroupL2
        from skglm.solvers import GroupBCD
    except ImportError as error:
        raise ImportError(
            "group lasso is solved by skglm, which is not installed: "
            "pip install 'diagatt[baselines]'."
        ) from error
    P, w = design.columns.shape[1], design.weights
    n_rows = P // design.n_features
    pointers = (np.arange(n_rows + 1) * design.n_features).astype(np.int32)
    groups = {"grp_ptr": pointers, "grp_indices": np.arange(P, dtype=np.int32)}
    beta = np.zeros(P + 1) if start is None else start.copy()
    y = y.astype(np.float64)
    mean = w @ y
    if not logistic:  # columns are centred: the intercept is known
        y, beta = y - mean, beta[:-1]
    if tolerance is None:
        tolerance = 1e-10 if design.columns.size <= SMALL_DESIGN else 1e-4
    scale = np.linalg.norm(((w * (y - w @ y)) @ design.columns).reshape(n_rows, -1), axis=1).max()
    solver = GroupBCD(max_iter=100, tol=tolerance * max(scale, 1e-300), fit_intercept=logistic)
    fitted = design.columns @ beta[:P] + (beta[-1] if logistic else 0.0)
    loss = WeightedLoss(logistic, w, design.lipschitz, **groups)
    penalty = WeightedGroupL2(float(alpha), np.ones(n_rows), **groups)
    beta, _, distance = solver.solve(design.columns, y, loss, penalty, beta, fitted)
    if distance > solver.tol:
        warn(
            f"group lasso with alpha={alpha:g} stopped at distance {distance:.2g} from optimality "
            f"(asked: {solver.tol:.2g}): raise alpha or tolerance.",
            ConvergenceWarning,
        )
    elif design.columns.size <= SMALL_DESIGN and np.count_nonzero(beta) <= FINISHED_COEFFICIENTS:
        beta = _finished(beta, design, y, alpha, loss)
    return beta if logistic else np.append(beta, mean)


def _finished(
    beta: np.ndarray, design: RowDesign, y: np.ndarray, alpha: float, loss: WeightedLoss
) -> np.ndarray:
    """Take Newton steps on the groups that are not zero, while the gradient shrinks.

    Block descent stops at its tolerance, and where it stops depends on the processor's rounding;
    the minimum does not. Groups that are zero stay zero.
    """
    d, P = design.n_features, design.columns.shape[1]
    logistic = len(beta) > P
    chosen = np.flatnonzero(np.repeat(beta[:P].reshape(-1, d).any(axis=1), d))
    X = design.columns[:, chosen]
    if logistic:
        X, chosen = np.column_stack([X, np.ones(len(y))]), np.append(chosen, len(beta) - 1)
    grouped = len(chosen) - logistic

    def derivatives(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, parts = X @ b, b[:grouped].reshape(-1, d)
        norms = np.linalg.norm(parts, axis=1, keepdims=True)
        gradient = X.T @ loss.slope(y, z)
        gradient[:grouped] += alpha * (parts / norms).ravel()
        hessian = X.T @ (loss.curvature(y, z)[:, None] * X)
        for g, (part, norm) in enumerate(zip(parts, norms[:, 0], strict=True)):
            block = slice(g * d, (g + 1) * d)
            hessian[block, block] += alpha * (np.eye(d) - np.outer(part, part) / norm**2) / norm
        return gradient, hessian

    b = beta[chosen]
    gradient, hessian = derivatives(b)
    for _ in range(10):
        candidate = b - np.linalg.lstsq(hessian, gradient)[0]
        slope, curvature = derivatives(candidate)
        if not np.abs(slope).max(initial=0) < 0.5 * np.abs(gradient).max(initial=0):
            break
        b, gradient, hessian = candidate, slope, curvature
    finished = beta.copy()
    finished[chosen] = b
    return finished


def uncentred(beta: np.ndarray, design: RowDesign) -> tuple[np.ndarray, float]:
    """Return coefficients (p, d) and the intercept for samples that are not centred."""
    intercept = float(beta[-1] - design.center @ beta[:-1])
    return beta[:-1].reshape(-1, design.n_features), intercept


# ---------------------------------------------------------------------- estimators


@dataclass(eq=False, repr=False)
class _GroupLasso(Padded):
    """What regression and classification share."""

    alpha: Any = 0.01
    _: KW_ONLY
    tolerance: float | None = None
    n_located: int = N_LOCATED
    selection: str | int = "holdout"
    random_state: Any = None

    # From large to small: each solution is a good start for the next.
    grids: ClassVar = {"alpha": (1.0, 0.1, 0.01)}
    rules: ClassVar = {"alpha": several(at_least(0)), "tolerance": optional(at_least(0))}
    fitted_rules: ClassVar[attributes.Rules] = {
        "coef_": attributes.floats("float64"),
        "intercept_": attributes.floats("float64"),
        "alpha_": at_least(0),
    }
    per_position: ClassVar = "one line of coefficients"
    alpha_: float = field(init=False)

    def _train(self, problem: Samples, seed: int, memo: dict) -> None:
        arrays = (problem.values.numpy(), problem.offsets.numpy(), problem.weights.numpy())
        design, y = row_design(*arrays, self.n_rows_), problem.y.numpy()
        logistic, responses = problem.family.classifies, [y]
        if logistic:  # one class against the rest; of two classes the second
            codes = [1] if problem.n_outputs == 1 else range(problem.n_outputs)
            responses = [np.where(y == code, 1.0, -1.0) for code in codes]
        fits = []
        for k, response in enumerate(responses):
            memo[k] = fit_group_lasso(
                design, response, self.alpha_, logistic, self.tolerance, start=memo.get(k)
            )
            fits.append(uncentred(memo[k], design))
        self.coef_ = np.stack([coef for coef, _ in fits])  # (K, p, d)
        self.intercept_ = np.array([intercept for _, intercept in fits])  # (K,)

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        K, p, d = self._n_outputs(), self.n_rows_, self.n_features_in_
        return {**super()._fitted_shapes(), "coef_": (K, p, d), "intercept_": (K,)}

    def _predictor(self, values: Tensor, offsets: Tensor) -> Tensor:
        coef = torch.from_numpy(self.coef_).permute(1, 2, 0)  # (p, d, K)
        lengths = offsets.diff()
        z = torch.from_numpy(self.intercept_).repeat(len(lengths), 1)  # (n, K)
        for j in range(int(lengths.max())):
            has = torch.nonzero(lengths > j)[:, 0]
            z[has] += values[offsets[has] + j].double() @ coef[j]
        if len(self.coef_) == 1:
            return z
        log_sigmoid = F.logsigmoid(z)  # classes against the rest: normalize their probabilities
        return log_sigmoid - torch.logsumexp(log_sigmoid, dim=1, keepdim=True)

    def _row_scores(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Return the norm of each position's coefficients (equation localization_grouplasso)."""
        norms = np.sqrt((self.coef_**2).sum(axis=(0, 2)))  # (p,)
        return torch.from_numpy(norms[row_positions(offsets.numpy())])


class GroupLassoRegressor(Regression, _GroupLasso):
    r"""Group lasso regression with rows as groups (Yuan and Lin 2006), the paper's GroupLasso.

    .. math:: \min_{C, b} \frac1{2n} \sum_i (y_i - ⟨X_i, C⟩ - b)^2 + λ \sum_{j=1}^p ‖C_{j·}‖_2

    All samples share one coefficient matrix C ∈ R^{p×d} and are padded with zero rows to the length
    of the longest training sample: the method ignores that active rows have a different position in
    every sample. It is solved by skglm, which the extra ``baselines`` installs.

    Parameters
    ----------
    alpha : float, "auto" or sequence
        λ; "auto" tries 1, 0.1 and 0.01.
    tolerance : float, optional
        Distance to optimality at which to stop, relative to that of C = 0; by default 1e-10 for
        small data and 1e-4 beyond.
    n_located, selection, random_state
        See `Competitor`; rows are located by ‖C_j‖, the same for all samples.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, p, d) and (1,)
        C and b.
    n_rows_ : int
        p, rows of the longest training sample.
    alpha_, selection_ : float, list of dicts
        The value in use, and the held-out loss of every value tried.

    Examples
    --------
    >>> from diagatt import GroupLassoRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = GroupLassoRegressor(alpha="auto", n_located=2, random_state=0)
    >>> model.fit(data.X, data.y).coef_.shape
    (1, 6, 4)
    """


class GroupLassoClassifier(Classification, _GroupLasso):
    """Group lasso logistic regression with rows as groups.

    Parameters and attributes are those of `GroupLassoRegressor`, and ``classes_``. More than two
    classes are each fitted against the rest, one line of ``coef_`` per class, and their
    probabilities are normalized.

    Examples
    --------
    >>> from diagatt import GroupLassoClassifier, simulate
    >>> data = simulate.classification(200, p=6, d=4, seed=0)
    >>> model = GroupLassoClassifier(alpha=0.01).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """
