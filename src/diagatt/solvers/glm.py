"""The convex part: a penalized generalized linear model of any width, in passes over the data.

Given pooled rows, diagonalized attention is a GLM in (V, b); so is a model of one-row samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from diagatt.families import Family
from diagatt.solvers.lbfgs import minimize_lbfgs
from diagatt.solvers.problem import Problem, RememberedPart, Samples

# Coefficients up to which a Newton step is worth its Hessian; a quadratic loss needs one step only.
NEWTON_COEFFICIENTS, QUADRATIC_COEFFICIENTS = 3000, 10_000
# Newton steps at most.
NEWTON_STEPS = 100
# The gain of a Newton step, relative to the objective, that rounding hides; and the one after which
# a fit is good enough for its loss to be compared: what is left is of the order of its square.
HIDDEN, TRIAL_GAIN = 1e-11, 1e-6
OVERFLOW = (
    "the squares of the features overflow: standardize the rows, for example with scikit-learn's "
    "StandardScaler on X.values."
)


class DivergedError(RuntimeError, ValueError):
    """The loss is no longer a finite number."""


def fit_glm(
    family: Family,
    features: Tensor,
    y: Tensor,
    weights: Tensor,
    penalty: Tensor,
    n_outputs: int = 1,
    start: Tensor | None = None,
    max_steps: int = NEWTON_STEPS,
    offset: Tensor | None = None,
    tolerance: float = 0.0,
) -> Tensor:
    r"""Minimize :math:`\frac{1}{Σw}\sum_i w_i ℓ(y_i, f_i^⊤β + o_i) + \frac12 \sum_k λ_k ‖β_k‖²`.

    Newton's method, or L-BFGS where coefficients are many.

    Parameters
    ----------
    features : tensor of shape (n, P)
        Include a column of ones for an intercept.
    penalty : tensor of shape (P,)
        λ of each feature.
    start : tensor of shape (P, K), optional
    max_steps : int
        Newton steps at most.
    offset : tensor of shape (n, K), optional
        o, a known part of the predictor.
    tolerance : float
        A Newton step that promises less than this share of the objective is the last one. With 0,
        steps end where rounding does not allow better ones.

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
    F = features.double()
    offsets, none = torch.arange(len(F) + 1, device=F.device), F.new_empty(len(F), 0)
    given = (y.double(), weights.double(), none, n_outputs)
    samples = Samples(family, F, offsets, *given, offset=offset)
    return fit_glm_of(samples, lambda part: part.values, penalty, start, max_steps, tolerance)


def row_span(features: Tensor) -> Tensor:
    """Return an orthonormal basis of the span of few long rows F, (n, P) → (P, r), in float64.

    Coefficients that a ridge penalty keeps small lie in it.
    """
    F = features.double()
    squares, U = torch.linalg.eigh(F @ F.T)
    real = squares > len(F) * torch.finfo(F.dtype).eps * squares[-1]
    return F.T @ U[:, real] / squares[real].sqrt()


def fit_glm_of(
    problem: Problem,
    features: Callable[[Samples], Tensor],
    penalty: Tensor,
    start: Tensor | None = None,
    max_steps: int = NEWTON_STEPS,
    tolerance: float = 0.0,
) -> Tensor:
    """Minimize the objective of `fit_glm` in passes; `features` returns the features of a part.

    A loss with kinks is rounded first, less and less (`Family.sharpened`).
    """
    for family in problem.family.sharpened():
        start = _fit_family(problem, family, features, penalty, start, max_steps, tolerance)
    assert start is not None
    return start


def _fit_family(
    problem: Problem,
    family: Family,
    features: Callable[[Samples], Tensor],
    penalty: Tensor,
    start: Tensor | None,
    max_steps: int,
    tolerance: float,
) -> Tensor:
    K, weight = problem.n_outputs, problem.total_weight
    ridge = penalty.double()[:, None]
    beta = ridge.new_zeros(len(ridge), K) if start is None else start.double()
    features_of = RememberedPart(problem, lambda part: features(part).double())

    def predictor(part: Samples, beta: Tensor) -> Tensor:  # (n, K)
        z = features_of(part) @ beta
        return z if part.offset is None else z + part.offset.double()

    def terms(part: Samples, beta: Tensor, order: int) -> list[Tensor]:
        """Return the loss, its slope (P, K) and its curvature (P·K, P·K), up to the order."""
        F, z, w, y = (
            features_of(part),
            predictor(part, beta),
            part.weights.double(),
            part.y.double(),
        )
        w = w / weight
        found = [(w * family.loss(y, z)).sum()]
        if order > 0:
            found.append(F.T @ (w[:, None] * family.gradient(y, z)))
        if order > 1:
            found.append(_hessian(F, w[:, None, None] * family.curvature(y, z)))
        return found

    def of_risk_sets(whole: Samples, beta: Tensor, order: int) -> list[Tensor]:
        """Return the same of a family that couples samples."""
        risk, F, z = whole.risk_sets, features_of(whole), predictor(whole, beta)[:, 0]
        loss, slope = risk.loss_and_gradient(z)
        found = [loss / weight, F.T @ slope[:, None] / weight]
        return [*found, risk.hessian(z, F) / weight] if order > 1 else found[: order + 1]

    whole = problem.in_memory

    def evaluate(beta: Tensor, order: int) -> list[Tensor]:
        """Return the objective and its derivatives up to the order, from one pass."""
        if whole is not None and family.couples_samples:
            found = of_risk_sets(whole, beta, order)
        else:
            found = problem.total(lambda part: terms(part, beta, order))
        found[0] = found[0] + 0.5 * (ridge * beta.square()).sum()
        if order > 0:
            found[1] = found[1] + ridge * beta
        if order > 1:
            found[2] = found[2] + torch.diag(ridge.expand(len(ridge), K).flatten())
        return found

    limit = QUADRATIC_COEFFICIENTS if family.is_quadratic else NEWTON_COEFFICIENTS
    if beta.numel() > limit:

        def slope(beta: Tensor) -> tuple[Tensor, Tensor]:
            value, slope = evaluate(beta, 1)
            return value, slope

        return minimize_lbfgs(slope, beta, max_steps=2000, tolerance=1e-8, ftol=1e-13).x
    return _newton(evaluate, beta, max_steps, tolerance, family.is_quadratic)


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
    return LinearFits(features, weights).fit(family, y, ridge, n_outputs)


class LinearFits:
    """Fits of `fit_linear` to the same samples with several ridges.

    Features are centred, which changes the intercept alone and makes the problem far better
    conditioned. Where there are more of them than samples, the coefficients of a ridge regression
    lie in the span of the samples, and are fitted there.

    Parameters
    ----------
    features : tensor of shape (n, P)
    weights : tensor of shape (n,)
    """

    def __init__(self, features: Tensor, weights: Tensor) -> None:
        F, self.weights = features.double(), weights.double()
        self.center = (self.weights / self.weights.sum()) @ F  # (P,)
        self.F = F - self.center
        self._trials: dict[int, Tensor] = {}  # the last one by its count of coefficients

    @cached_property
    def _inside(self) -> tuple[Tensor, Tensor]:
        """A basis of the samples' span, (P, r), and the samples in it, (n, r)."""
        basis = row_span(self.F)
        return basis, self.F @ basis

    def fit(
        self,
        family: Family,
        y: Tensor,
        ridge: float,
        n_outputs: int = 1,
        is_trial: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return coefficients, (P, K), and intercepts, (K,), of one ridge.

        A trial starts from the one before, and ends a little short of the optimum. It is quickest
        if ridges fall from one to the next.
        """
        is_wide = ridge > 0 and self.F.shape[1] > len(self.F)
        F = self._inside[1] if is_wide else self.F
        F = torch.cat([F, F.new_ones(len(F), 1)], dim=1)
        penalty = F.new_full((F.shape[1],), ridge / float(self.weights.sum()))
        penalty[-1] = 0
        start = self._trials.get(F.shape[1]) if is_trial else None
        tolerance = TRIAL_GAIN if is_trial else 0.0
        given = (family, F, y, self.weights, penalty, n_outputs)
        beta = fit_glm(*given, start=start, tolerance=tolerance)
        if is_trial:
            self._trials[F.shape[1]] = beta
        coef = self._inside[0] @ beta[:-1] if is_wide else beta[:-1]
        return coef, beta[-1] - self.center @ coef


def _newton(
    evaluate: Callable[[Tensor, int], list[Tensor]],
    beta: Tensor,
    max_steps: int,
    tolerance: float,
    is_quadratic: bool,
) -> Tensor:
    """Take Newton steps with a line search, except for the last ones, which are taken in full.

    The gain of a step is of the order of its square. Once it is below `HIDDEN`, rounding hides
    it from the objective, but the gradient still falls. Steps continue until the gradient has
    reached the rounding level as well: until the gain is negligible or no longer shrinks.

    Most steps are taken in full, and the next one needs the derivatives where they end: the first
    trial computes them along with the value. A quadratic objective has one curvature.
    """
    value, gradient, hessian = evaluate(beta, 2)  # (), (P, K), (P·K, P·K)
    solve, last_gain, order = _inverse(hessian), math.inf, 1 if is_quadratic else 2
    for _ in range(max_steps):
        step = -solve(gradient.flatten()).reshape(beta.shape)
        gain = -float((gradient * step).sum())  # twice what the quadratic model promises
        unit = max(1.0, abs(float(value)))
        if gain <= HIDDEN * unit:
            if gain > 0.1 * last_gain:  # rounding: this step is no better than the last
                break
            beta, last_gain = beta + step, gain
            if gain <= HIDDEN**2 * unit:
                break
            found = evaluate(beta, order)
        else:
            scale = 1.0
            while scale > 1e-10:
                candidate = beta + scale * step
                found = evaluate(candidate, order if scale == 1.0 else 0)
                if torch.isfinite(found[0]) and found[0] <= value - 1e-4 * scale * gain:
                    break
                scale /= 2
            else:  # no descent left in floating point
                return beta
            beta = candidate
            if gain <= tolerance * unit:
                break
            if scale < 1.0:
                found = evaluate(beta, order)
        value, gradient = found[:2]
        if not is_quadratic:
            solve = _inverse(found[2])
    return beta


def _hessian(F: Tensor, curvature: Tensor) -> Tensor:
    P, K = F.shape[1], curvature.shape[1]
    blocks = [[F.T @ (curvature[:, a, b, None] * F) for b in range(K)] for a in range(K)]
    hessian = torch.stack([torch.stack(line, dim=1) for line in blocks], dim=1)  # (P, K, K, P)
    return hessian.permute(0, 1, 3, 2).reshape(P * K, P * K)


def _inverse(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what gives least-norm solutions of a positive semidefinite system."""
    if not bool(torch.isfinite(matrix).all()):
        raise DivergedError(OVERFLOW)
    factor, failed = torch.linalg.cholesky_ex(matrix)
    diagonal = factor.diagonal()
    if not failed and float(diagonal.min()) > 1e-6 * float(diagonal.max()):
        return lambda right: torch.cholesky_solve(right[:, None], factor)[:, 0]
    values, vectors = torch.linalg.eigh(matrix)
    cut = values.abs().max() * len(values) * 1e-14
    inverse = torch.where(values > cut, 1 / values.clamp(min=1e-300), 0.0)
    return lambda right: vectors @ (inverse * (vectors.T @ right))
