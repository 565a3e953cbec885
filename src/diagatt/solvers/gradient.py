"""Empirical risk minimization by gradients (equation obj): Adam in batches, or L-BFGS on all.

`fit_gradient` trains one `DiagonalAttention` from one start. Restarts are the caller's business.
"""

from __future__ import annotations

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.adam import AdamRun
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.lbfgs import fit_lbfgs
from diagatt.solvers.problem import Problem
from diagatt.solvers.stored import AnyProblem
from diagatt.solvers.training import GradientSettings, entry, fit_values, risk


def fit_gradient(
    module: DiagonalAttention,
    problem: AnyProblem,
    settings: GradientSettings,
    seed: int,
    checkpoint: Checkpoint | None = None,
) -> list[dict[str, float]]:
    """Train the module in place and return the history, one entry an epoch.

    Parameters
    ----------
    module : DiagonalAttention
        Initialized; see `initialize`.
    seed : int
        Of batches, dropped rows and the held-out part.
    checkpoint : Checkpoint, optional
        Where Adam keeps its state; training resumes from it bit for bit.
    """
    if problem.has_one_row_samples_only:
        fit_values(module, problem, settings.ridge)
        return [entry(1, risk(module, problem))]
    if settings.chosen_optimizer(problem, module) == "lbfgs":
        if not isinstance(problem, Problem):
            raise ValueError("optimizer='lbfgs' needs all rows in memory: use 'adam' for a store.")
        return fit_lbfgs(module, problem, settings)
    return AdamRun(module, problem, settings, seed, checkpoint).run()
