r"""Group lasso over the rows of zero-padded samples, solved by skglm.

.. math:: \min_{C, b}\; \sum_i w_i\, ℓ(y_i, ⟨X_i, C⟩ + b) + λ \sum_j ‖C_{j·}‖_2,
          \qquad \sum_i w_i = 1

with ℓ = (y − z)²/2 or the logistic loss: skglm's scale, n⁻¹ before the loss.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

LOSSES = ("quadratic", "logistic")
# Entries of the design up to which the solution is polished to ten digits.
SMALL_DESIGN = 1_000_000


@dataclass(frozen=True)
class RowDesign:
    """Padded samples side by side, one column a (position, feature), centred by weight.

    Attributes
    ----------
    columns : array of shape (n, p·d), F-ordered float64
    center : array of shape (p·d,)
        Weighted means that were subtracted.
    weights : array of shape (n,)
        They sum to 1.
    lipschitz : array of shape (p,)
        Largest eigenvalue of each position's weighted Gram matrix.
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


def fit_group_lasso(
    design: RowDesign,
    y: np.ndarray,
    alpha: float,
    loss: str = "quadratic",
    tolerance: float | None = None,
    start: np.ndarray | None = None,
    max_iterations: int = 100,
) -> np.ndarray:
    """Minimize the penalized loss by skglm's block coordinate descent with working sets.

    Parameters
    ----------
    y : array of shape (n,)
        Numbers, or -1 and 1 for "logistic".
    tolerance : float, optional
        Largest distance to optimality of any group, relative to the largest at zero; by default
        1e-10 for small designs and 1e-4 beyond.
    start : array of shape (p·d + 1,), optional
        Coefficients of centred columns and, last, the intercept: an earlier result.

    Returns
    -------
    array of shape (p·d + 1,)
        See `uncentred`.
    """
    GroupBCD, penalty_class, datafits = _import_skglm()
    P, w = design.columns.shape[1], design.weights
    n_rows = P // design.n_features
    pointers = (np.arange(n_rows + 1) * design.n_features).astype(np.int32)
    groups = {"grp_ptr": pointers, "grp_indices": np.arange(P, dtype=np.int32)}
    quadratic = loss == "quadratic"
    kind = datafits.WeightedQuadraticGroup if quadratic else datafits.WeightedLogisticGroup
    beta = np.zeros(P + 1) if start is None else start.copy()
    y = y.astype(np.float64)
    mean = w @ y
    if quadratic:  # columns are centred: the intercept is known
        y, beta[-1] = y - mean, 0.0
    if tolerance is None:
        tolerance = 1e-10 if design.columns.size <= SMALL_DESIGN else 1e-4
    scale = np.linalg.norm(((w * (y - w @ y)) @ design.columns).reshape(n_rows, -1), axis=1).max()
    solver = GroupBCD(
        max_iter=max_iterations, tol=tolerance * max(scale, 1e-300), fit_intercept=not quadratic
    )
    beta = beta if not quadratic else beta[:-1]
    fitted = design.columns @ beta[:P] + (0.0 if quadratic else beta[-1])
    datafit = kind(weights=w, lipschitz=design.lipschitz, **groups)
    penalty = penalty_class(float(alpha), np.ones(n_rows), **groups)
    beta, _, distance = solver.solve(design.columns, y, datafit, penalty, beta, fitted)
    if distance > solver.tol:
        warnings.warn(
            f"group lasso with alpha={alpha:g} stopped at distance {distance:.2g} from optimality "
            f"(asked: {solver.tol:.2g}): raise alpha or tolerance.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return np.append(beta, mean) if quadratic else beta


def uncentred(beta: np.ndarray, design: RowDesign) -> tuple[np.ndarray, float]:
    """Coefficients (p, d) and intercept for samples as they are, not centred."""
    intercept = float(beta[-1] - design.center @ beta[:-1])
    return beta[:-1].reshape(-1, design.n_features), intercept


def _import_skglm():
    try:
        from skglm.penalties import WeightedGroupL2
        from skglm.solvers import GroupBCD

        from diagatt.solvers import group_datafits
    except ImportError as error:
        raise ImportError(
            "group lasso is solved by skglm, which is not installed: "
            "pip install 'diagatt[baselines]'."
        ) from error
    return GroupBCD, WeightedGroupL2, group_datafits
