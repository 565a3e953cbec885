"""`Gradient`: empirical risk minimization, as in the paper; `Refined`: two solvers in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.query_key import PARAMETERIZATIONS
from diagatt.parameters import (
    Rule,
    at_least,
    boolean,
    count,
    instance,
    one_of,
    optional,
    positive,
    share,
)
from diagatt.progress import progress_bar
from diagatt.solvers.base import Fitted, Model, Solver, copy_parameters, prevalence, refuse_none
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.gradient.adam import Joint
from diagatt.solvers.gradient.adam import train as train_module  # `gradient.train` is a file
from diagatt.solvers.gradient.restarts import average
from diagatt.solvers.gradient.train import (
    OPTIMIZERS,
    GivenBaseline,
    Training,
    start_at_pooled,
)
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.sandwich import Errors, Objective, sandwich_errors
from diagatt.solvers.subspace import fit_in_subspace, fit_mapped, is_too_wide, varying_features

__all__ = ["Gradient", "Refined"]

# Epochs of Adam and steps of L-BFGS, unless `max_epochs` says otherwise.
MAX_EPOCHS, MAX_STEPS = 20, 2000


@dataclass(eq=False, repr=False)
class Gradient(Solver):
    """Empirical risk minimization (equation obj), from one or several starts that are averaged.

    Parameters
    ----------
    parameterization : {"full", "factored", "psd"}
        "full": W is free. "factored": W = W_Q W_Kᵀ. "psd": W = L Lᵀ, positive semidefinite.
    rank : int, optional
        Count of columns of the factors. With "full", W is truncated to this rank after each step.
    temperature : float
        τ, by which scores are divided before the softmax.
    score_ridge : float
        λ of the penalty ½λσ²Σ‖W_r‖², which is added to the summed loss; σ² is the variance of y for
        the gaussian family and 1 for all others.
    linear_ridge : float, optional
        η of the penalty ½ησ²‖u‖² on the linear term x·u of affine and contextual scores. By
        default, its entries of W are penalized like all others.
    value_bound, score_bound : float, optional
        R₁ and R₂ of the paper's bounded parameter space, ‖V‖_F ≤ R₁ and ‖W_r‖_op ≤ R₂. Parameters
        are projected onto it after each step.
    optimizer : {"auto", "adam", "lbfgs"}
        Mini-batch Adam, or full-batch L-BFGS with a Newton finish of the convex part; "auto"
        takes L-BFGS for small data.
    learning_rate, batch_size : float, int
        Step size and samples per step of Adam; ``batch_size=None`` uses all samples at every step.
    max_epochs : int, optional
        Passes of Adam (20 by default), or steps of L-BFGS (2000 by default).
    tolerance : float
        L-BFGS stops when no entry of the gradient is larger.
    row_dropout : float
        Share of rows that are left out at every step of Adam.
    value_dropout : float
        After each step, take a second one that updates only the value vectors, with this share of
        rows dropped. Values then also learn from rows next to the active one; scores do not.
    validation_fraction, patience : float, int
        Hold this share of samples out; stop Adam when their loss has not fallen for `patience`
        epochs, and keep the best epoch.
    init : {"pooled", "zero"}
        Whether value vectors start at the regression on mean rows, or at zero.
    init_scale : float
        Spread of the random entries of W_Q and W_K.
    n_restarts : int
        Count of fits from different starts, which are averaged.
    none : bool
        Whether samples may have no row of interest: a none-row with a score and a value of its own
        competes with their rows (`diagatt.attention.none_row`). This is for one head only.

    Examples
    --------
    >>> from diagatt import DiagAttClassifier
    >>> from diagatt.solvers import Gradient
    >>> DiagAttClassifier(solver=Gradient("factored", rank=2)).get_params()["solver__rank"]
    2
    """

    parameterization: str = "full"
    _: KW_ONLY
    rank: int | None = None
    temperature: float = 1.0
    score_ridge: float = 0.1
    linear_ridge: float | None = None
    value_bound: float | None = None
    score_bound: float | None = None
    optimizer: str = "auto"
    learning_rate: float = 1e-2
    batch_size: int | None = 128
    max_epochs: int | None = None
    tolerance: float = 1e-8
    row_dropout: float = 0.0
    value_dropout: float = 0.0
    validation_fraction: float = 0.0
    patience: int = 5
    init: str = "pooled"
    init_scale: float = 0.1
    n_restarts: int = 1
    none: bool = False

    name = "gradient"
    rules: ClassVar[Mapping[str, Rule]] = {
        "parameterization": one_of(*PARAMETERIZATIONS),
        "rank": optional(count(1)),
        "temperature": positive(),
        "score_ridge": at_least(0),
        "linear_ridge": optional(at_least(0)),
        "value_bound": optional(positive()),
        "score_bound": optional(positive()),
        "optimizer": one_of(*OPTIMIZERS),
        "learning_rate": positive(),
        "batch_size": optional(count(1)),
        "max_epochs": optional(count(1)),
        "tolerance": positive(),
        "row_dropout": share(),
        "value_dropout": share(),
        "validation_fraction": share(),
        "patience": count(1),
        "init": one_of("pooled", "zero"),
        "init_scale": positive(),
        "n_restarts": count(1),
        "none": boolean(),
    }
    later_parameters: ClassVar[Mapping[str, Any]] = {"none": False}

    def sees_shape(self, problem: Problem) -> bool:
        """Return whether the fit depends on the shape: not if all samples go through together."""
        if not problem.family.couples_samples or problem.in_memory is None:
            return True
        module = self._module(problem, model=Model())
        return self.training(Model()).chosen_optimizer(problem, module) != "lbfgs"

    def refuse(self, problem: Problem, model: Model) -> str | None:
        """Refuse impossible ranks, and settings that L-BFGS does not support."""
        side = model.score_form.side(problem.n_features)
        if self.rank is not None and self.rank > side:
            return f"rank must lie between 1 and {side}, got {self.rank}."
        if self.optimizer != "lbfgs":
            return refuse_none(self.none, problem, model)
        cuts_rank = self.rank is not None and self.parameterization == "full"
        bounded = self.value_bound is not None or self.score_bound is not None
        if self.training(model).needs_batches or bounded or cuts_rank:
            return (
                "optimizer='lbfgs' takes no row_dropout, value_dropout, validation_fraction, "
                "bounds or rank of a full W: use optimizer='adam'."
            )
        if problem.in_memory is None:
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
        """Train from every start and average the fits.

        Very wide rows are fitted in a principal subspace (`diagatt.solvers.subspace`), unless W has
        few columns of factors.
        """
        given: dict[str, Any] = {"checkpoint": checkpoint, "verbose": verbose}
        if is_too_wide(problem) and self._squares_features:
            return fit_in_subspace(self, problem, model, seed=seed, start=start, **given)
        varying = varying_features(problem, model)
        if varying is not None:
            return fit_mapped(self, varying, problem, model, seed=seed, start=start, **given)
        # One seed per restart; the first does not depend on how many there are.
        seeds = np.random.SeedSequence(seed).generate_state(self.n_restarts)
        several = verbose and len(seeds) > 1  # one bar for all of them
        how = replace(self.training(model), verbose=verbose and not several)
        if problem.family.couples_samples and problem.in_memory is None:
            how = GivenBaseline.of(how)
        modules, history = [], []
        with progress_bar("starts", len(seeds), several) as advance:
            for k, restart_seed in enumerate(map(int, seeds)):
                module = self._module(problem, model)
                if start is None:
                    generator = torch.Generator().manual_seed(restart_seed)
                    module.reset_parameters(self.init_scale, generator)
                    if self.init == "pooled":
                        start_at_pooled(module, problem, model.ridge, model.n_heads)
                else:
                    copy_parameters(start.module, module, restart=k)
                file = None if checkpoint is None else checkpoint.of_restart(k)
                described = self._described(model)
                history.append(train_module(module, problem, how, restart_seed, file, described))
                modules.append(module)
                advance()
        whole, count = average(modules, problem), len(modules)
        share = prevalence(whole, problem)
        return Fitted(whole, self, history, n_restarts=count, prevalence=share)

    @property
    def _squares_features(self) -> bool:
        """Whether W has as many parameters as there are pairs of features."""
        return self.parameterization == "full" or self.rank is None

    def joint(self, problem: Problem, model: Model, seed: int) -> Joint:
        """Return an attention to train with an encoder, at its start."""
        module = self._module(problem, model)
        module.reset_parameters(self.init_scale, torch.Generator().manual_seed(seed))
        return Joint(module, module, self.training(model))

    def errors(self, fitted: Fitted, samples: Samples, model: Model) -> Errors:
        """Return the sandwich of the penalized risk; none if training stopped before a minimum."""
        how = self.training(model)
        whole = Objective(lambda module, _: how.penalty(module, samples) * samples.total_weight)
        return sandwich_errors(fitted.module, samples, None, whole)

    def _module(self, problem: Problem, model: Model) -> DiagonalAttention:
        names = ("parameterization", "rank", "temperature", "value_bound", "score_bound", "none")
        return model.module(problem, **{name: getattr(self, name) for name in names})

    def training(self, model: Model) -> Training:
        """Return the settings of training."""
        further = {"ridge": model.ridge, "least_rows": model.least_rows}
        return Training.asked(self.get_params(deep=False), MAX_EPOCHS, MAX_STEPS, **further)

    def _described(self, model: Model) -> dict[str, Any]:
        """Return the settings that identify a checkpoint, besides those of training and shapes."""
        names = ("temperature", "value_bound", "score_bound")
        own = {name: getattr(self, name) for name in names}
        return {"score_form": model.score_form.name, "coupling": model.coupling, **own}


@dataclass(eq=False, repr=False)
class Refined(Solver):
    """One solver, followed by gradient steps on the family's own loss.

    Parameters
    ----------
    first : Solver, optional
        The solver that begins, by default `Likelihood`.
    then : Gradient, optional
        The gradient steps that follow, by default ten epochs of Adam with a small learning rate.

    Examples
    --------
    >>> from diagatt.solvers import Gradient, Likelihood, Refined
    >>> Refined(Likelihood("tied"), Gradient(max_epochs=3)).get_params()["then__max_epochs"]
    3
    """

    first: Solver | None = None
    then: Gradient | None = None

    name = "refined"
    rules: ClassVar[Mapping[str, Rule]] = {
        "first": optional(instance("a solver", Solver)),
        "then": optional(instance("a Gradient solver", Gradient)),
    }

    def _steps(self) -> tuple[Solver, Gradient]:
        first = self.first or Likelihood()
        how: dict[str, Any] = {"optimizer": "adam", "max_epochs": 10, "learning_rate": 3e-4}
        return first, self.then or Gradient(**how, none=first.allows_none)

    @property
    def allows_none(self) -> bool:
        """Whether samples may have no row of interest."""
        return self._steps()[1].allows_none

    def refuse(self, problem: Problem, model: Model) -> str | None:
        """Return why either solver cannot be used; None if both can."""
        first, then = self._steps()
        if first.allows_none != then.allows_none:
            return "both steps of Refined must have none=True, or neither."
        return first.refuse(problem, model) or then.refuse(problem, model)

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
        """Fit by the first solver and continue by gradient steps."""
        if is_too_wide(problem):
            given: dict[str, Any] = {"checkpoint": checkpoint, "verbose": verbose}
            return fit_in_subspace(self, problem, model, seed=seed, start=start, **given)
        shared: dict[str, Any] = {"checkpoint": checkpoint, "verbose": verbose}
        fitted = self._steps()[0].fit(problem, model, seed=seed, start=start, **shared)
        then = self._steps()[1].fit(problem, model, seed=seed, start=fitted, verbose=verbose)
        history = [*fitted.history, *then.history]
        return replace(then, solver=self, history=history, report=fitted.report, state=fitted.state)

    def errors(self, fitted: Fitted, samples: Samples, model: Model) -> Errors:
        """Return the errors of the gradient steps; none if these stopped before a minimum."""
        return self._steps()[1].errors(fitted, samples, model)
