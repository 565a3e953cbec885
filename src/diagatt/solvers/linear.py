"""A penalized generalized linear model of any width: Newton where it is cheap, L-BFGS beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from diagatt.families import Family
from diagatt.solvers.glm import fit_glm

# Coefficients up to which a Newton step is worth its Hessian; least squares needs one step only.
NEWTON_COEFFICIENTS = {"gaussian": 10_000}
OTHER_COEFFICIENTS = 2500


def fit_linear(
    family: Family,
    features: Tensor,
    y: Tensor,
    weights: Tensor,
    ridge: float,
    n_outputs: int = 1,
) -> tuple[Tensor, Tensor]:
    r"""Minimize :math:`\sum_i w_i ℓ(y_i, f_i^⊤β + b) + \frac λ2 ‖β‖²`, the intercept free.

    λ means what ``alpha`` means in scikit-learn's Ridge and ``1/C`` in its LogisticRegression.

    Parameters
    ----------
    features : tensor of shape (n, P)

    Returns
    -------
    coefficients of shape (P, K) and intercepts of shape (K,), float64

    Examples
    --------
    >>> from diagatt.families import get_family
    >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([1.0, 3.0, 5.0])
    >>> fit_linear(get_family("gaussian"), x, y, torch.ones(3), ridge=0.0)
    (tensor([[2.]], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """
    F = features.double()
    # Centred features change the intercept alone and make the problem far better conditioned.
    center = (weights.double() / weights.double().sum()) @ F  # (P,)
    F = torch.cat([F - center, F.new_ones(len(F), 1)], dim=1)
    penalty = F.new_full((F.shape[1],), ridge / float(weights.double().sum()))
    penalty[-1] = 0
    beta = fit_penalized(family, F, y, weights, penalty, n_outputs)
    return beta[:-1], beta[-1] - center @ beta[:-1]


def fit_penalized(
    family: Family, F: Tensor, y: Tensor, weights: Tensor, penalty: Tensor, n_outputs: int
) -> Tensor:
    """Minimize what `fit_glm` minimizes, by the method that suits the number of coefficients."""
    limit = NEWTON_COEFFICIENTS.get(family.name, OTHER_COEFFICIENTS)
    solve = fit_glm if F.shape[1] * n_outputs <= limit else _fit_lbfgs
    return solve(family, F, y, weights, penalty, n_outputs)


def _fit_lbfgs(
    family: Family, F: Tensor, y: Tensor, weights: Tensor, penalty: Tensor, n_outputs: int
) -> Tensor:
    y, w, ridge = y.double(), weights.double() / weights.double().sum(), penalty[:, None]
    shape = (F.shape[1], n_outputs)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        beta = torch.from_numpy(vector).reshape(shape)
        z = F @ beta
        value = (w * family.loss(y, z)).sum() + 0.5 * (ridge * beta.square()).sum()
        gradient = F.T @ (w[:, None] * family.gradient(y, z)) + ridge * beta
        return float(value), gradient.flatten().numpy()

    options: Any = {"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-8}
    result = minimize(
        objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options
    )
    return torch.from_numpy(result.x).reshape(shape)
