"""`Uniform`: no attention at all."""

from __future__ import annotations

from typing import Any

import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.base import Fitted, Model, Solver
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient.train import start_at_pooled
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.sandwich import Errors, Objective, sandwich_errors
from diagatt.solvers.subspace import is_too_wide


class Uniform(Solver):
    """W = 0: every row counts alike, and the model is the GLM of mean rows."""

    name = "uniform"
    attends = False
    scores_see_response = False

    def sees_shape(self, problem: Problem) -> bool:
        """Return whether the fit depends on the shape: not if all samples go through together."""
        return not (problem.family.couples_samples and problem.in_memory is not None)

    def fit(
        self,
        problem: Problem,
        model: Model,
        *,
        seed: int = 0,
        start: Fitted | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool = False,
    ) -> Fitted:
        """Fit the GLM; nothing is random, and nothing takes long enough to be interrupted."""
        R, d, K = model.n_heads, problem.n_features, problem.n_outputs
        side = model.score_form.side(d)
        rank = 1 if is_too_wide(problem) else side
        shapes = [(R, side, rank), (R, d, K), (K,), (problem.n_covariates, K)]
        zero = torch.zeros((), device=problem.device, dtype=problem.dtype)
        W, V, b, gamma = (zero.new_zeros(shape) for shape in shapes)
        key = W.clone() if rank < side else None
        how: dict[str, Any] = {"score_form": model.score_form.name, "coupling": model.coupling}
        module = DiagonalAttention.with_parameters(W, key, V, b, gamma, **how)
        start_at_pooled(module, problem, model.ridge, R, must=True)
        return Fitted(module, self, [[]])

    def errors(self, fitted: Fitted, samples: Samples, model: Model) -> Errors:
        """Return the sandwich of the GLM."""
        if model.n_heads > 1:
            return Errors(None, "no standard errors: without attention, heads are copies.")
        ridge = Objective(lambda module, _: module.penalty(model.ridge, 0.0), scores="none")
        return sandwich_errors(fitted.module, samples, None, ridge)
