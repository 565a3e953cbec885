r"""Sample-specific coefficients under the row-wise multidirectional separation penalty.

Every sample i has its own coefficient C_i, one line for each of its rows; lines are drawn either to
0 or to a centre γ_j that all samples share (equation mdsp_penalty of the supplement):

.. math:: \min_{C, γ}\; \sum_i \Big[ ℓ(y_i, ⟨X_i, C_i⟩)
          + λ \sum_j \min\{‖C_{ij} - γ_j‖_1, ‖C_{ij}‖_1\} \Big]

by proximal gradient steps in C, whose proximal map is exact, alternating with exact minimization
over each γ_j for given sides. With steps of at most 1/L_i, L_i = c‖X_i‖², no step raises the
objective. C has the shape of the packed rows; nothing else of that size is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diagatt.segments import BLOCK_ROWS, sample_of_row, segment_sum
from diagatt.solvers.problem import Samples

# Largest curvature ∂²ℓ/∂z² of the losses whose gradients are Lipschitz.
CURVATURE = {"gaussian": 1.0, "bernoulli": 0.25, "multinomial": 0.5}


@dataclass(frozen=True)
class MDSPSettings:
    """How far to go; the names are those of the estimators' parameters."""

    alpha: float = 0.1
    max_steps: int = 1000
    step_size: float | None = None
    tolerance: float = 1e-6


def separation_prox(u: Tensor, gamma: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    r"""Minimize :math:`½‖u - c‖² + t\min\{‖c - γ‖_1, ‖c‖_1\}` over c, exactly.

    The minimum of two functions is least where one of them is: soft-threshold u towards γ and
    towards 0, and take the side whose objective is smaller.

    Parameters
    ----------
    u, gamma : tensors of shape (m, D)
    threshold : tensor of shape (m, 1)
        t ≥ 0.

    Returns
    -------
    tensor of shape (m, D), and bool (m,): whether γ's side was taken (0's if they are equal)
    """
    from_gamma = u - gamma
    cut_gamma = _clip(from_gamma, threshold)  # soft(v) = v − clip(v)
    cut_zero = _clip(u, threshold)
    # Least value of ½(v − c)² + t|c|: Huber's function, clip(v)·v − ½clip(v)².
    envelope_gamma = (cut_gamma * (from_gamma - 0.5 * cut_gamma)).sum(dim=1)
    envelope_zero = (cut_zero * (u - 0.5 * cut_zero)).sum(dim=1)
    to_gamma = envelope_gamma < envelope_zero
    return torch.where(to_gamma[:, None], u - cut_gamma, u - cut_zero), to_gamma


def early_rule(problem: Samples) -> tuple[float, float]:
    r"""How far the paper's fits seem to have gone, and how far from 0 they seem to have started.

    Steps of together the length T, from centres drawn from :math:`N(0, σ^2)` and held still:

    .. math:: T = 0.0096\, \frac{s \sqrt{pd}}{n^{1/3}} \Big/ \frac1n \sum_i ‖X_i‖^2,
              \qquad σ = 0.70\, \frac{d^{1/4}}{\sqrt{np}},

    p being the mean number of rows and s the root mean square of y, 1 for classes. Both constants
    and the form were read off the published tables; nothing derives them.

    Returns
    -------
    float, float
        T and σ.
    """
    n, p, d = problem.n_samples, len(problem.values) / problem.n_samples, problem.n_features
    s = 1.0 if problem.family.classifies else float(problem.y.double().square().mean().sqrt())
    mean_square = float(problem.values.square().sum(dim=1).double().sum()) / n
    length = 0.0096 * s * (p * d) ** 0.5 / n ** (1 / 3) / max(mean_square, 1e-30)
    return length, 0.70 * d**0.25 / (n * p) ** 0.5


class MDSPFit:
    """Coefficients of given samples, step by step.

    Parameters
    ----------
    problem : Samples
        Gaussian or of classes.
    settings : MDSPSettings
    gamma : tensor of shape (p, D), optional
        Centres; D = d·K. Found from the samples if not given, kept if given.

    Attributes
    ----------
    coefficients : tensor of shape (N, D)
    gamma : tensor of shape (p, D)
    history : list of float
        Objective before the first step and after each.
    """

    def __init__(self, problem: Samples, settings: MDSPSettings, gamma: Tensor | None = None):
        self.problem, self.settings = problem, settings
        self.learns_gamma = gamma is None
        self.sample = sample_of_row(problem.offsets)  # (N,)
        self.position = torch.arange(len(self.sample)) - problem.offsets[:-1][self.sample]
        squares = segment_sum(problem.values.square().sum(dim=1), problem.offsets)  # (n,) ‖X_i‖²
        lipschitz = CURVATURE[problem.family.name] * squares
        self.step = 1 / lipschitz.clamp(min=1e-30)
        if settings.step_size is not None:
            self.step = self.step.clamp(max=settings.step_size)
        self.gamma = self._first_gamma(float(lipschitz.mean())) if gamma is None else gamma
        self.coefficients = self.gamma[self.position]  # (N, D): all samples start at γ
        self.z, self.penalty = self._measure()
        self.history = [float(self.objectives().sum())]

    def run(self) -> MDSPFit:
        """Alternate until the objective hardly falls, or `max_steps` are done.

        With γ given, samples have nothing to do with each other and each stops on its own.
        """
        before = self.objectives()
        for _ in range(self.settings.max_steps):
            self.descend()
            if self.learns_gamma:
                self.move_gamma()
            self.z, self.penalty = self._measure()
            after = self.objectives()
            self.history.append(float(after.sum()))
            if self.learns_gamma:
                is_done = (before - after).sum() <= self.settings.tolerance * after.sum()
            else:
                done = before - after <= self.settings.tolerance * after  # (n,)
                self.step = torch.where(done, 0, self.step)  # a step of size 0 moves nothing
                is_done = done.all()
            if bool(is_done):
                break
            before = after
        return self

    def objectives(self) -> Tensor:
        """Loss and penalty of every sample at the present coefficients and centres, (n,)."""
        loss = self.problem.family.loss(self.problem.y, self.z).double()
        return loss + self.settings.alpha * self.penalty

    def descend(self) -> None:
        """One proximal gradient step of every sample, in place, in blocks of rows."""
        slope = self.problem.family.gradient(self.problem.y, self.z)  # (n, K)
        push = self.step[:, None] * slope
        for rows in self._blocks():
            sample, x = self.sample[rows], self.problem.values[rows]
            u = self.coefficients[rows] - (x[:, :, None] * push[sample][:, None]).flatten(1)
            threshold = self.settings.alpha * self.step[sample][:, None]
            self.coefficients[rows], _ = separation_prox(
                u, self.gamma[self.position[rows]], threshold
            )

    def move_gamma(self) -> None:
        """γ_j ← median of the lines C_ij nearer to γ_j than to 0: exact for these sides."""
        nearer = torch.cat([self._is_nearer(rows) for rows in self._blocks()])  # (N,)
        for j in range(len(self.gamma)):
            lines = self.coefficients[nearer & (self.position == j)].numpy()
            if len(lines):
                self.gamma[j] = torch.from_numpy(np.median(lines, axis=0))

    def _first_gamma(self, mean_lipschitz: float) -> Tensor:
        """One pooled gradient step from 0, as if all samples had the same coefficients."""
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
        """Linear predictors ⟨X_i, C_i⟩, (n, K), and Σ_j min{‖C_ij − γ_j‖₁, ‖C_ij‖₁}, (n,)."""
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
        lines = self.coefficients[rows]
        to_gamma = (lines - self.gamma[self.position[rows]]).abs().sum(dim=1)
        return to_gamma, lines.abs().sum(dim=1)

    def _is_nearer(self, rows: slice) -> Tensor:
        to_gamma, to_zero = self._distances(rows)
        return to_gamma < to_zero

    def _blocks(self):
        for start in range(0, len(self.problem.values), BLOCK_ROWS):
            yield slice(start, start + BLOCK_ROWS)


def _clip(x: Tensor, bound: Tensor) -> Tensor:
    return torch.minimum(torch.maximum(x, -bound), bound)
