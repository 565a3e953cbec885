"""`Mixture`: maximum conditional likelihood of the latent-row model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.query_key import PARAMETERIZATIONS
from diagatt.parameters import Rule, at_least, boolean, count, one_of, optional, positive
from diagatt.solvers.base import (
    Fitted,
    Model,
    Solver,
    agreed,
    copy_parameters,
    prevalence,
    refuse_none,
    trial_part,
)
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient.adam import Joint
from diagatt.solvers.gradient.adam import train as train_module
from diagatt.solvers.gradient.train import (
    OPTIMIZERS,
    entry,
    residual_dispersion,
    run_lbfgs,
    start_at_pooled,
)
from diagatt.solvers.mixture.objective import (
    MixtureModule,
    MixtureTraining,
    null_dispersion,
)
from diagatt.solvers.mixture.starts import best_start
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.sandwich import Errors, Objective, sandwich_errors
from diagatt.solvers.subspace import fit_in_subspace, fit_mapped, is_too_wide, varying_features

__all__ = ["Mixture"]

# Epochs of Adam and steps of L-BFGS, unless `max_epochs` says otherwise.
MAX_EPOCHS, MAX_STEPS = 20, 500
# Samples from which π is estimated at most: with more of them the penalty means nothing.
MOST_SAMPLES = 5000
MOST_STEPS = 100
# Steps to a score of "none" at which half of the samples have a row, and a score so far below it
# that its slope is zero.
STEPS_OF_SCORE, NEVER = 20, 100.0
# Least gain of log-likelihood by a share below 1, which is what one parameter gains by chance.
LEAST_GAIN = 1.0


@dataclass(eq=False, repr=False)
class Mixture(Solver):
    r"""Maximum likelihood of the responses given the rows, one of which is active.

    It maximizes :math:`\sum_i w_i \log \sum_j κ_{ij} p(y_i | ⟨v, x_{ij}⟩ + b, φ)` less penalties.
    The response is a GLM of the active row, rows may have any distribution, and predictions are
    :math:`\sum_j κ_j g^{-1}(⟨v, x_j⟩ + b)`. For two classes this is the assumption of
    multiple-instance learning.

    Parameters
    ----------
    parameterization : {"full", "factored", "psd"}
        "full": W is free. "factored": W = W_Q W_Kᵀ. "psd": W = L Lᵀ, positive semidefinite.
    rank : int, optional
        Count of columns of the factors.
    score_ridge : float
        ρ of the penalty ½ρΣ‖W_r‖², which is subtracted from the summed log-likelihood.
    linear_ridge : float
        η of the penalty ½η‖u‖² on the linear term x·u of affine and contextual scores, to which
        `score_ridge` does not apply.
    optimizer : {"auto", "adam", "lbfgs"}
        Mini-batch Adam, or full-batch L-BFGS, whose objective never rises; "auto" takes L-BFGS for
        small data.
    learning_rate, batch_size : float, int
        Step size and samples per step of Adam; ``batch_size=None`` uses all samples at every step.
    max_epochs : int, optional
        Passes of Adam (20 by default), or steps of L-BFGS (500 by default).
    tolerance : float
        L-BFGS stops when no entry of the gradient is larger.
    n_starts : int
        Count of starts that compete after a short training on a part of the samples. They begin
        at the regression on mean rows, at small values, at unusual rows, and at random.
    none : bool
        Whether samples may have no row of interest: a none-row with a score and a value of its own
        competes with their rows (`diagatt.attention.none_row`). This is for one head only.

    Examples
    --------
    >>> from diagatt import DiagAttClassifier
    >>> from diagatt.solvers import Mixture
    >>> DiagAttClassifier(solver=Mixture(score_ridge=5.0)).get_params()["solver__score_ridge"]
    5.0
    """

    parameterization: str = "full"
    _: KW_ONLY
    rank: int | None = None
    score_ridge: float = 10.0
    linear_ridge: float = 3.0
    optimizer: str = "auto"
    learning_rate: float = 1e-2
    batch_size: int | None = 128
    max_epochs: int | None = None
    tolerance: float = 1e-6
    n_starts: int = 3
    none: bool = False

    name = "mixture"
    takes_row_labels = True
    rules: ClassVar[Mapping[str, Rule]] = {
        "parameterization": one_of(*PARAMETERIZATIONS),
        "rank": optional(count(1)),
        "score_ridge": at_least(0),
        "linear_ridge": at_least(0),
        "optimizer": one_of(*OPTIMIZERS),
        "learning_rate": positive(),
        "batch_size": optional(count(1)),
        "max_epochs": optional(count(1)),
        "tolerance": positive(),
        "n_starts": count(1),
        "none": boolean(),
    }
    later_parameters: ClassVar[Mapping[str, Any]] = {"none": False}

    def refuse(self, problem: Problem, model: Model) -> str | None:
        """Refuse impossible ranks, and L-BFGS for a store."""
        side = model.score_form.side(problem.n_features)
        if not problem.family.predicts_mixtures:
            return (
                f"a mixture over rows does not predict what the {problem.family.name} family does: "
                "use solver='gradient', 'likelihood' or 'auto'."
            )
        if self.rank is not None and self.rank > side:
            return f"rank must lie between 1 and {side}, got {self.rank}."
        if self.rank is not None and self.parameterization == "full":
            return "a full W has no rank: set parameterization='factored' or leave rank out."
        if self.optimizer == "lbfgs" and problem.in_memory is None:
            return "optimizer='lbfgs' needs all rows in memory: use 'adam' for a store."
        return refuse_none(self.none, problem, model)

    def fit(
        self,
        problem: Problem,
        model: Model,
        *,
        seed: int,
        start: Fitted | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool = False,
    ) -> Fitted:
        """Find the best start on a part of the samples, and train it on all samples.

        With `start`, no other start is tried.
        """
        given: dict[str, Any] = {"checkpoint": checkpoint, "verbose": verbose}
        if is_too_wide(problem) and self._squares_features:
            return fit_in_subspace(self, problem, model, seed=seed, start=start, **given)
        varying = varying_features(problem, model)
        if varying is not None:
            return fit_mapped(self, varying, problem, model, seed=seed, start=start, **given)
        how = replace(self.training(model), verbose=verbose)
        null, report = null_dispersion(problem), list[dict[str, Any]]()
        history: list[dict[str, float]] = []

        def build() -> MixtureModule:
            names = {"parameterization": self.parameterization, "rank": self.rank}
            if self.none and not problem.has_one_row_samples_only:
                names["none"] = True
            attention = model.module(problem, readout="mixture", family=problem.family, **names)
            return MixtureModule(attention, null)

        module = build()
        if problem.has_one_row_samples_only:  # a plain GLM
            with torch.no_grad():
                attention = module.attention
                attention.query_key.set_matrix(torch.zeros_like(attention.query_key.matrix()))
            start_at_pooled(module.attention, problem, model.ridge, model.n_heads)
            module.set_phi(max(residual_dispersion(module, problem), float(module.floor)))
            return self._fitted(module, [])
        if start is not None:
            copy_parameters(start.module, module.attention)
            if start.dispersion is not None:
                module.set_phi(start.dispersion)
        else:
            trial = trial_part(problem, np.random.default_rng(seed))
            generator = torch.Generator().manual_seed(seed)
            module, begun, report = best_start(build, trial, how, self.n_starts, generator)
            if trial is problem and how.chosen_optimizer(problem, module) == "lbfgs":
                history = begun  # the same objective: training goes on from there
        state = module.state_dict()
        same = agreed(list(state.values()), problem)
        module.load_state_dict(dict(zip(state, same, strict=True)))
        described = {"score_form": model.score_form.name, "coupling": model.coupling}
        further = train_module(module, problem, how, seed, checkpoint, described)
        steps = [line["loss"] for line in history + further]
        lines = [entry(k, loss) for k, loss in enumerate(steps, 1)]
        share = None
        if self.none:
            some = problem.sample(MOST_SAMPLES, np.random.default_rng(seed))
            share = free_prevalence(module, some, how)
        return self._fitted(module, lines, report, share)

    @property
    def _squares_features(self) -> bool:
        """Whether W has as many parameters as there are pairs of features."""
        return self.parameterization == "full" or self.rank is None

    def joint(self, problem: Problem, model: Model, seed: int) -> Joint:
        """Return an attention with its dispersion to train with an encoder, at its start."""
        names: dict[str, Any] = {"parameterization": self.parameterization, "rank": self.rank}
        names["none"] = self.none and not problem.has_one_row_samples_only
        attention = model.module(problem, readout="mixture", family=problem.family, **names)
        attention.reset_parameters(0.1, torch.Generator().manual_seed(seed))
        module = MixtureModule(attention, null_dispersion(problem))
        return Joint(module, attention, self.training(model))

    def errors(self, fitted: Fitted, samples: Samples, model: Model) -> Errors:
        """Return the sandwich of the penalized likelihood, the dispersion among its parameters."""

        def penalty(module: DiagonalAttention, phi: torch.Tensor) -> torch.Tensor:
            return module.penalty(model.ridge / phi, self.score_ridge, self.linear_ridge)

        return sandwich_errors(fitted.module, samples, fitted.dispersion, Objective(penalty))

    def _fitted(
        self,
        module: MixtureModule,
        history: list[dict[str, float]],
        report: list[dict[str, Any]] | None = None,
        share: float | None = None,
    ) -> Fitted:
        phi = None if module.log_excess is None else float(module.phi.detach())
        further: dict[str, Any] = {"dispersion": phi, "prevalence": share, "report": report or []}
        return Fitted(module.attention, self, [history], **further)

    def training(self, model: Model) -> MixtureTraining:
        """Return the settings of training."""
        further = {"ridge": model.ridge, "least_rows": model.least_rows}
        return MixtureTraining.asked(self.get_params(deep=False), MAX_EPOCHS, MAX_STEPS, **further)


class _OfFreeSize(nn.Module):
    """A query–key matrix of which only the size is free: sW."""

    fixed: Tensor

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("fixed", matrix.detach().clone())
        self.log_size = nn.Parameter(matrix.new_zeros(()))

    def matrix(self) -> Tensor:
        """Return sW, (R, D, D)."""
        return self.log_size.exp() * self.fixed

    def factors(self) -> None:
        """Return None: there are no factors."""


def free_prevalence(module: MixtureModule, samples: Samples, how: MixtureTraining) -> float | None:
    """Return the share of samples with a row of interest, if some may have none.

    Training starts at the fit, and where half of the samples have no row: a fit to which all
    samples have one keeps them, since the slope in the none-row's score is zero there. As in the
    likelihood solver, the share is 1 if that costs less than 1 of the log-likelihood.
    """
    if not module.attention.has_none:
        return None
    free = replace(how, score_ridge=0.0, linear_ridge=0.0, max_steps=MOST_STEPS, verbose=False)
    found = list[tuple[float, float]]()
    for start in ("all", "fit", "half"):
        again = deepcopy(module)
        again.attention.query_key = _OfFreeSize(again.attention.query_key.matrix())  # type: ignore[assignment]
        if start != "fit":
            _give_half_a_row(again.attention, samples, 0.0 if start == "half" else NEVER)
        minimum = run_lbfgs(again, samples, free)[1]
        with torch.no_grad():
            found.append((minimum.value, float(prevalence(again.attention, samples) or 0.0)))
    (of_all, all_have), best = found[0], min(found)
    is_less = (of_all - best[0]) * samples.total_weight > LEAST_GAIN
    return best[1] if is_less else all_have


@torch.no_grad()
def _give_half_a_row(attention: DiagonalAttention, samples: Samples, below: float) -> None:
    """Set the score of "none" below the one at which about half of the samples have a row."""
    assert attention.none_score is not None
    for _ in range(STEPS_OF_SCORE):
        now = min(max(float(prevalence(attention, samples) or 0.0), 1e-6), 1 - 1e-6)
        attention.none_score.add_(math.log(now / (1 - now)))
    attention.none_score.sub_(below)
