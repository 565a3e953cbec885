"""Solvers, the `Model` that they fit, and the `Fitted` model that they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from diagatt.attention.blend import Blend
from diagatt.attention.coupling import is_distinct, least_rows
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.families import Family
from diagatt.missing import filled_in
from diagatt.parameters import Rule
from diagatt.persistence import register_part
from diagatt.scores import SCORE_FORMS, ScoreForm
from diagatt.segments import map_blocks, segment_sum
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.folds import OutOfFold
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.sandwich import BASELINE, Errors

# The note on errors that take the distributions of rows as known.
OBSERVED = "observed information, with the distributions of rows taken as known"

# Products of features of stored rows up to which standard errors read them into memory.
MOST_LOADED = 8_000_000
# Samples on which starts are compared: at least this many, and this often the count of features.
TRIAL_SAMPLES, TRIAL_FACTOR = 1000, 12

SOLVERS: dict[str, type[Solver]] = {}


@dataclass(frozen=True)
class Model:
    """The model to fit; the solver decides how it is fitted.

    Attributes
    ----------
    n_heads : int
        R.
    score_form : ScoreForm
    coupling : {"distinct", "independent"}
    ridge : float
        λ of the penalty ½λ‖V‖², added to the summed loss.
    """

    n_heads: int = 1
    score_form: ScoreForm = SCORE_FORMS["affine"]
    coupling: str = "distinct"
    ridge: float = 1.0

    @property
    def is_distinct(self) -> bool:
        """Whether the heads choose different rows."""
        return is_distinct(self.coupling)

    @property
    def has_affine_scores(self) -> bool:
        """Whether scores are affine and depend on the row alone."""
        return self.score_form.has_constant and not self.score_form.has_context

    @property
    def is_plain(self) -> bool:
        """Whether there is one head with affine scores."""
        return self.n_heads == 1 and self.has_affine_scores

    @property
    def least_rows(self) -> int:
        """Least count of rows of a sample."""
        return least_rows(self.coupling, self.n_heads)

    def module(self, problem: Problem, **how: Any) -> DiagonalAttention:
        """Make an untrained module for the problem."""
        return DiagonalAttention(
            problem.n_features,
            self.n_heads,
            problem.n_outputs,
            problem.n_covariates,
            score_form=self.score_form.name,
            coupling=self.coupling,
            **how,
        ).to(problem.device, problem.dtype)


@dataclass(frozen=True)
class Fitted:
    """The result of a solver.

    With M averaged restarts, head r of restart m is line m·R + r.

    Attributes
    ----------
    module : DiagonalAttention
    solver : Solver
        The solver that made the fit; after a contest, the winner.
    family : Family, optional
        The problem's family with the shape that belongs to the fit, if that was estimated.
    history : list of lists of dicts
        Progress of every run.
    n_restarts : int
        M.
    log_likelihood : float, optional
        Log-likelihood of rows and responses, if the solver has a model of rows.
    dispersion : float, optional
        φ̂, if the solver estimated it.
    value_covariance : tensor, optional
        Covariance of the estimates of (V, b, γ), output by output, (P, P); or, of wide rows, their
        variances alone, (P,).
    errors_note : str
        How that covariance was found, or why there is none.
    report : list of dicts
        The starts or the counts of heads that were compared.
    contest : list of dicts
        Contestants with their scores out of fold.
    described : str
        Words that distinguish the reported fit from the other contestants.
    blend : Blend, optional
        Several fits that predict together; `module` is then the one whose coefficients are
        reported, in the original features.
    out_of_fold : OutOfFold, optional
        Fits that left samples out, if the solver made any.
    finds_rows : bool, optional
        Whether attention improves predictions out of fold, if that was tested.
    prevalence : float, optional
        π̂, the share of samples that have a row of interest, if some may have none.
    prevalence_interval : pair of floats, optional
        Ends of a 95 % interval for it, by the likelihood ratio.
    row_gaussians : pair of tensors, optional
        Means (2, d) and covariances (2, d, d) of background and of active rows, if the solver has
        a model of rows that integrates missing entries out.
    state : object
        What this solver needs to continue the fit, besides the module.
    """

    module: DiagonalAttention
    solver: Solver
    history: list[list[dict[str, float]]]
    n_restarts: int = 1
    log_likelihood: float | None = None
    dispersion: float | None = None
    value_covariance: Tensor | None = None
    errors_note: str = ""
    report: list[dict[str, Any]] = field(default_factory=list)
    state: Any = None
    contest: list[dict[str, Any]] = field(default_factory=list)
    described: str = ""
    blend: Blend | None = None
    out_of_fold: OutOfFold | None = None
    finds_rows: bool | None = None
    family: Family | None = None
    prevalence: float | None = None
    prevalence_interval: tuple[float, float] | None = None
    row_gaussians: tuple[Tensor, Tensor] | None = None

    @property
    def predictor(self) -> DiagonalAttention | Blend:
        """The blend if there is one, otherwise the module."""
        return self.module if self.blend is None else self.blend

    @property
    def value_se(self) -> Tensor | None:
        """Standard errors of (V, b, γ)."""
        found = self.value_covariance
        if found is None:
            return None
        return (found if found.ndim == 1 else found.diagonal()).sqrt()

    def completed(self, samples: Samples) -> Samples:
        """Return samples with missing entries filled in as those of active rows."""
        if samples.missing is None or self.row_gaussians is None:
            return samples if samples.missing is None else replace(samples, missing=None)
        values, shift = filled_in(samples.values, samples.missing, *self.row_gaussians)
        assert shift is not None
        prior = shift if samples.log_prior is None else shift + samples.log_prior.double()
        return replace(samples, values=values, log_prior=prior.to(samples.dtype), missing=None)


class Solver(BaseEstimator, ABC):
    """A way to fit diagonalized attention, with parameters of its own.

    A subclass that has a `name` registers itself under it, so that the name serves as a shorthand.
    """

    name: ClassVar[str]
    #: What each parameter may be; see `diagatt.parameters`.
    rules: ClassVar[Mapping[str, Rule]] = {}
    #: Whether it fits attention at all.
    attends: ClassVar[bool] = True
    #: Whether it can use labels of active rows.
    takes_row_labels: ClassVar[bool] = False
    #: Whether scores are fitted to the response, so that criteria count them as parameters.
    scores_see_response: ClassVar[bool] = True
    #: Whether it assumes Gaussian rows, of which one is active, although it reports attention.
    has_latent_rows: ClassVar[bool] = False
    #: Whether a fit can start from an earlier one.
    goes_on: ClassVar[bool] = True
    #: Whether its fits come with predictions out of fold.
    holds_out: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Register the solver by its name."""
        super().__init_subclass__()
        register_part(cls)
        if "name" in cls.__dict__:
            SOLVERS[cls.name] = cls

    @property
    def allows_none(self) -> bool:
        """Whether samples may have no row of interest: the parameter `none` of most solvers."""
        return bool(getattr(self, "none", False))

    def sees_shape(self, problem: Problem) -> bool:
        """Return whether the fit depends on the shape of the family."""
        return True

    def joint(self, problem: Problem, model: Model, seed: int) -> Any:
        """Return the module that is trained with an encoder (`gradient.adam.Joint`)."""
        raise ValueError(
            f"an MLP or a torch module as encoder is trained with the model, which the {self.name} "
            "solver cannot do: set solver='gradient' or solver='mixture'."
        )

    def integrates(self, problem: Problem, model: Model) -> bool:
        """Return whether missing entries are integrated out; otherwise they must be imputed."""
        return False

    def refuse(self, problem: Problem, model: Model) -> str | None:
        """Return why this solver cannot be used, before any work; None if it can."""
        return None

    @abstractmethod
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
        """Fit the model.

        Parameters
        ----------
        problem : Problem
        model : Model
        seed : int
            Decides everything that is random.
        start : Fitted, optional
            An earlier fit of the same model, from which this one starts.
        checkpoint : Checkpoint, optional
            File in which the state is kept; an interrupted fit resumes from it.
        verbose : bool
            Show progress bars.
        """

    def errors(self, fitted: Fitted, samples: Samples, model: Model) -> Errors:
        """Return the covariance of values, intercept and covariate effects, or why there is none.

        `diagatt.solvers.sandwich` computes it for every fit that minimizes an `Objective`.
        """
        return Errors(None, f"no standard errors: the {self.name} solver has none.")

    def n_response_parameters(self, module: DiagonalAttention) -> int:
        """Return how many parameters were fitted to the response.

        Scores that were fitted to rows alone are not counted.
        """
        count = sum(parameter.numel() for parameter in module.effects())
        if self.scores_see_response:
            D = module.score_form.side(module.n_features)
            count += module.n_heads * D * (D + 1) // 2  # only the symmetric part of W counts
        return count + (module.none_score.numel() if module.none_score is not None else 0)


def with_errors(fitted: Fitted, problem: Problem, model: Model) -> Fitted:
    """Return the fit with standard errors, or with a note that says why it has none."""
    if fitted.family is not None:
        problem = problem.with_family(fitted.family)
    if problem.family.couples_samples and fitted.solver.has_latent_rows:
        return replace(fitted, value_covariance=None, errors_note=BASELINE)
    samples = loaded(problem)
    if samples is None:
        if fitted.value_covariance is not None:
            return replace(fitted, errors_note=OBSERVED)
        return replace(fitted, errors_note="no standard errors: too many samples for memory.")
    try:
        found = fitted.solver.errors(fitted, samples, model)
    except (ArithmeticError, torch.linalg.LinAlgError) as error:  # type: ignore[attr-defined]
        found = Errors(None, f"no standard errors: {error}")
    known = {"value_covariance": found.covariance, "prevalence_interval": found.prevalence_interval}
    return replace(fitted, errors_note=found.note, **known)  # type: ignore[arg-type]


def loaded(problem: Problem) -> Samples | None:
    """Return all samples in memory; None for a store with too many samples or products."""
    if problem.in_memory is not None:
        return problem.in_memory
    entries = problem.n_rows * problem.n_features * (problem.n_features + 3)
    if entries > MOST_LOADED or problem.n_samples > problem.most_in_memory:
        return None
    return problem.load(torch.arange(problem.n_samples, device=problem.device))


def trial_part(problem: Problem, generator: np.random.Generator) -> Samples:
    """Return the samples on which starts are compared; the best start is refined on all data."""
    most = max(TRIAL_SAMPLES, TRIAL_FACTOR * problem.n_features)
    return problem.sample(most, generator)


def refuse_none(none: bool, problem: Problem, model: Model) -> str | None:
    """Return why samples without a row of interest are not supported; None if they are."""
    if none and model.n_heads > 1:
        return "none=True is for one head: set n_heads=1, or none=False."
    if none and problem.in_memory is not None and problem.in_memory.log_prior is not None:
        return "none=True treats all rows alike: leave row weights out, or set none=False."
    return None


@torch.no_grad()
def prevalence(module: DiagonalAttention, problem: Problem) -> float | None:
    """Return the mean probability that a sample has a row of interest, if some may have none."""
    if not module.has_none:
        return None

    def terms(part: Samples) -> list[Tensor]:
        kappa = map_blocks(module.attention, part.values, part.offsets)
        some = segment_sum(kappa, part.offsets).mean(dim=1)  # (n,)
        return [(part.weights * some).sum()]

    return float(problem.total(terms)[0]) / problem.total_weight


def get_solver(solver: str | Solver) -> Solver:
    """Return the solver itself, or the one of this name with its default parameters.

    Examples
    --------
    >>> from diagatt.solvers import get_solver
    >>> get_solver("likelihood")
    Likelihood()
    """
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(
            f"unknown solver {solver!r}: choose one of {sorted(SOLVERS)}, or give a solver object "
            "such as diagatt.solvers.Gradient(rank=2)."
        )
    return SOLVERS[solver]()


def with_solver(solver: str, flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimator's parameters with those of the named solver moved into a solver object.

    Examples
    --------
    >>> from diagatt.solvers import with_solver
    >>> with_solver("likelihood", {"ridge": 2.0, "covariance": "tied"})
    {'ridge': 2.0, 'solver': Likelihood(covariance='tied')}
    """
    kind = SOLVERS[solver]
    own = {name: value for name, value in flat.items() if name in kind.rules}
    rest = {name: value for name, value in flat.items() if name not in own}
    return {**rest, "solver": kind(**own)}


def agreed(tensors: list[Tensor], problem: Problem) -> list[Tensor]:
    """Return the tensors of the first process, because rounding may differ between machines."""
    return problem.group.agree(tensors)


@torch.no_grad()
def copy_parameters(source: DiagonalAttention, target: DiagonalAttention, restart: int = 0) -> None:
    """Start a module where an earlier fit ended (at this restart, if it had several).

    Attention stays that of the earlier fit: scores grow with the temperature that divides them.
    """
    heads = target.n_heads
    restarts = source.n_heads // heads
    lines = slice(restart % restarts * heads, (restart % restarts + 1) * heads)
    ratio = target.temperature / source.temperature
    target.query_key.set_matrix(ratio * source.query_key.matrix()[lines])
    target.value.copy_(source.value[lines] * restarts)
    target.intercept.copy_(source.intercept)
    target.covariate.copy_(source.covariate)
    if source.none is not None and target.none_score is not None and target.none_value is not None:
        target.none_score.copy_(ratio * source.none[0][lines])
        target.none_value.copy_(source.none[1][lines] * restarts)
