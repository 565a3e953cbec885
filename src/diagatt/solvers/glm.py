"""The convex part: a generalized linear model by Newton's method.

Given pooled rows, diagonalized attention is a GLM in (V, b); so is a model of one-row samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from diagatt.families import Family
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem

OVERFLOW = (
    "the squares of the features overflow: standardize the rows, for example with scikit-learn's "
    "StandardScaler on X.values."
)


class DivergedError(RuntimeError):
    """The loss is no longer a finite number."""


def fit_glm(
    family: Family,
    features: Tensor,
    y: Tensor,
    weights: Tensor,
    penalty: Tensor,
    n_outputs: int = 1,
    start: Tensor | None = None,
    max_steps: int = 100,
    tolerance: float = 1e-11,
) -> Tensor:
    r"""Minimize :math:`\frac{1}{Σw}\sum_i w_i ℓ(y_i, f_i^⊤β) + \frac12 \sum_k λ_k ‖β_k‖²`.

    Parameters
    ----------
    features : tensor of shape (n, P)
        Include a column of ones for an intercept.
    penalty : tensor of shape (P,)
        λ of each feature.
    start : tensor of shape (P, K), optional
    max_steps, tolerance : int, float
        The line search ends when the expected gain of a step falls below `tolerance` (relative
        to the loss); the steps that follow bring the gradient to its rounding level.

    Returns
    -------
    tensor of shape (P, K), float64
        Where the minimizer is not unique, the one of smallest norm is approached.

    Examples
    --------
    >>> from diagatt.families import get_family
    >>> x, y = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([1.0, 3.0])
    >>> fit_glm(get_family("gaussian"), x, y, torch.ones(2), torch.zeros(2))[:, 0]
    tensor([1., 2.], dtype=torch.float64)
    """
    F, y, w = features.double(), y.double(), weights.double()
    w, ridge = w / w.sum(), penalty.double()[:, None]

    def objective(beta: Tensor) -> Tensor:
        return (w * family.loss(y, F @ beta)).sum() + 0.5 * (ridge * beta.square()).sum()

    def derivatives(beta: Tensor) -> tuple[Tensor, Tensor]:
        gradient, hessian = _slopes(family, F, y, w, beta)
        return gradient + ridge * beta, hessian + _diagonal(ridge, n_outputs)

    beta = F.new_zeros(F.shape[1], n_outputs) if start is None else start.double()
    return _newton(objective, derivatives, beta, max_steps, tolerance)


def fit_glm_in_passes(
    problem: AnyProblem,
    features: Callable[[Problem], Tensor],
    penalty: Tensor,
    start: Tensor | None = None,
    max_steps: int = 100,
    tolerance: float = 1e-11,
) -> Tensor:
    """Minimize what `fit_glm` minimizes; `features` gives those of a part, a pass adds them up."""
    family, K = problem.family, problem.n_outputs
    ridge = penalty.double()[:, None]
    beta = ridge.new_zeros(len(ridge), K) if start is None else start.double()

    def objective(beta: Tensor) -> Tensor:
        def losses(part: Problem) -> list[Tensor]:
            z = features(part).double() @ beta
            return [(part.weights.double() * family.loss(part.y.double(), z)).sum()]

        loss = problem.total(losses)[0] / problem.total_weight
        return loss + 0.5 * (ridge * beta.square()).sum()

    def derivatives(beta: Tensor) -> tuple[Tensor, Tensor]:
        def slopes(part: Problem) -> tuple[Tensor, Tensor]:
            w = part.weights.double() / problem.total_weight
            return _slopes(family, features(part).double(), part.y.double(), w, beta)

        gradient, hessian = problem.total(slopes)
        return gradient + ridge * beta, hessian + _diagonal(ridge, K)

    return _newton(objective, derivatives, beta, max_steps, tolerance)


def _newton(objective, derivatives, beta: Tensor, max_steps: int, tolerance: float) -> Tensor:
    """Newton steps with a line search; the last ones, which it cannot judge, are taken whole.

    The gain of a step is of the order of its square. Once it is below `tolerance`, rounding hides
    it from the objective, but the gradient still falls: steps go on until it has reached the
    rounding level too, that is, until the gain is negligible or no longer shrinks.
    """
    value, last_gain = objective(beta), math.inf
    for _ in range(max_steps):
        gradient, hessian = derivatives(beta)  # (P, K), (P·K, P·K)
        if not bool(torch.isfinite(hessian).all()):
            raise DivergedError(OVERFLOW)
        step = -_solve(hessian, gradient.flatten()).reshape(beta.shape)
        gain = -float((gradient * step).sum())  # twice what the quadratic model promises
        unit = max(1.0, abs(float(value)))
        if gain <= tolerance * unit:
            if gain > 0.1 * last_gain:  # rounding: this step is no better than the last
                break
            beta, last_gain = beta + step, gain
            if gain <= tolerance**2 * unit:
                break
            continue
        scale = 1.0
        while scale > 1e-10:
            candidate = beta + scale * step
            new = objective(candidate)
            if torch.isfinite(new) and new <= value - 1e-4 * scale * gain:
                break
            scale /= 2
        else:  # no descent left in floating point
            return beta
        beta, value = candidate, new
    return beta


def _slopes(family: Family, F: Tensor, y: Tensor, w: Tensor, beta: Tensor):
    """Gradient (P, K) and Hessian (P·K, P·K) of the weighted loss."""
    z = F @ beta
    gradient = F.T @ (w[:, None] * family.gradient(y, z))
    return gradient, _hessian(F, w[:, None, None] * family.curvature(y, z))


def _diagonal(ridge: Tensor, n_outputs: int) -> Tensor:
    return torch.diag(ridge.expand(len(ridge), n_outputs).flatten())


def _hessian(F: Tensor, curvature: Tensor) -> Tensor:
    P, K = F.shape[1], curvature.shape[1]
    blocks = [[F.T @ (curvature[:, a, b, None] * F) for b in range(K)] for a in range(K)]
    hessian = torch.stack([torch.stack(line, dim=1) for line in blocks], dim=1)  # (P, K, K, P)
    return hessian.permute(0, 1, 3, 2).reshape(P * K, P * K)


def _solve(matrix: Tensor, right: Tensor) -> Tensor:
    """Least-norm solution of a positive semidefinite system."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    diagonal = factor.diagonal()
    if not failed and float(diagonal.min()) > 1e-6 * float(diagonal.max()):
        return torch.cholesky_solve(right[:, None], factor)[:, 0]
    values, vectors = torch.linalg.eigh(matrix)
    cut = values.abs().max() * len(values) * 1e-14
    inverse = torch.where(values > cut, 1 / values.clamp(min=1e-300), 0.0)
    return vectors @ (inverse * (vectors.T @ right))
