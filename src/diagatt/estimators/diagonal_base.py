"""The base class of estimators by diagonalized attention: parameters and `fit`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from inspect import Signature, signature
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import check_random_state

from diagatt import parameters
from diagatt.attention.coupling import COUPLINGS
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.certainty.rows import LEAST_UNEVENNESS, warn_of_no_row
from diagatt.encoders.trained import is_trained
from diagatt.estimators.containers import from_sources
from diagatt.estimators.diagonal_problem import DiagonalProblem
from diagatt.estimators.incomplete import MISSING
from diagatt.estimators.members import StoredMember
from diagatt.estimators.routing import TakesCovariates
from diagatt.families import Family
from diagatt.files import version
from diagatt.parameters import Rule
from diagatt.scores import SCORE_FORMS, get_score_form
from diagatt.solvers import (
    SOLVERS,
    Auto,
    Checkpoint,
    Fitted,
    Gradient,
    Model,
    Solver,
    Uniform,
    get_solver,
)
from diagatt.solvers.base import with_errors
from diagatt.solvers.criteria import unevenness
from diagatt.solvers.heads import fit_heads, heads_to_try
from diagatt.solvers.problem import Problem
from diagatt.solvers.shape import fit_with_shape, fits_once, with_started_family
from diagatt.user_warnings import warn

# How the label of a contestant names the feature whose extreme it uses.
_EXTREME = re.compile(r"(largest|smallest) x(\d+)")


@contextmanager
def _warning_if_unused(checkpoint: Checkpoint | None, problem: Problem) -> Iterator[None]:
    """Warn if a fit does not write to its checkpoint, so that it could not be resumed."""
    if checkpoint is None:
        yield
        return
    path = Path(checkpoint.path)
    before = version(path)
    yield
    if problem.group.rank == 0 and version(path) == before:
        warn(
            f"checkpoint {path} was not used: fits by L-BFGS, fits without attention and shapes "
            "that are found in turns keep no state, and begin anew after an interruption.",
        )


class _ParametersAsSignature:
    """The signature of an estimator's class: its parameters, not the arguments of `__new__`."""

    def __get__(self, instance: Any, kind: type) -> Signature:
        _, *given = signature(kind.__init__).parameters.values()  # type: ignore[misc]
        return Signature(given)


@dataclass(eq=False, repr=False)
class _DiagAtt(TakesCovariates, DiagonalProblem):
    """The base class of estimators by diagonalized attention."""

    n_heads: int | str | Sequence[int] = 1
    _: KW_ONLY
    solver: str | Solver = "auto"
    family: str = "auto"
    score_form: str = "affine"
    coupling: str = "distinct"
    ridge: float = 1.0
    selection: str | int = "auto"
    warm_start: bool = False
    checkpoint: Any = None
    random_state: Any = None
    device: str = "cpu"
    verbose: bool = False
    encoder: Any = None
    missing: str = "refuse"

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_heads": parameters.several(parameters.count(1)),
        "solver": Rule(  # a user's own solver may register itself later
            "the name of a solver or a solver object",
            lambda solver: (
                isinstance(solver, Solver) or (isinstance(solver, str) and solver in SOLVERS)
            ),
        ),
        "score_form": parameters.one_of(*SCORE_FORMS),
        "coupling": parameters.one_of(*COUPLINGS),
        "ridge": parameters.at_least(0),
        "selection": parameters.either(
            parameters.one_of("auto", "holdout", "bic", "test"), parameters.count(2)
        ),
        "warm_start": parameters.boolean(),
        "checkpoint": parameters.optional(parameters.path()),
        "random_state": parameters.seed(),
        "device": parameters.device(),
        "missing": parameters.one_of(*MISSING),
        "verbose": parameters.boolean(),
        "encoder": parameters.optional(
            Rule(
                "a transformer with fit and transform, an MLP or a torch module",
                lambda value: (
                    is_trained(value) or (hasattr(value, "fit") and hasattr(value, "transform"))
                ),
            )
        ),
    }
    __signature__ = _ParametersAsSignature()
    _takes_row_weights: ClassVar[bool] = True
    _papers_temperature: ClassVar[float] = 100.0
    later_parameters: ClassVar[Mapping[str, Any]] = {"encoder": None, "missing": "refuse"}

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Make an estimator; refuse parameters that belong to a solver or to `fit`."""
        for name in given:
            if name in signature(cls.fit).parameters:
                raise TypeError(
                    f"{name} is about the samples, so that it is an argument of fit, not of "
                    f"{cls.__name__}: write fit(X, y, {name}=…)."
                )
            if name in cls.former_parameters:
                raise TypeError(
                    f"{name} is not a parameter: a fit has the type of its samples; write "
                    'fit(RaggedRows.coerce(X).astype("float32"), y) or pass float64 rows.'
                )
            owners = [kind.__name__ for kind in SOLVERS.values() if name in kind.rules]
            if owners and name not in cls._get_param_names():
                raise TypeError(
                    f"{name} is a parameter of the solver, not of {cls.__name__}: write "
                    f"solver={' or '.join(f'{owner}({name}=…)' for owner in owners)}, with "
                    "from diagatt.solvers import …"
                )
        return super().__new__(cls)

    def set_params(self, **given: Any) -> Self:
        """Set parameters, also those of a solver that is given by name."""
        if any(name.startswith("solver__") for name in given):
            given = {**given, "solver": get_solver(given.get("solver", self.solver))}
        return super().set_params(**given)

    @classmethod
    def preset(cls, name: str, **parameters: Any) -> Self:
        """Make an estimator with named settings; further parameters override them.

        Parameters of the solver are named as in a grid search, ``solver__max_epochs=10``.

        Parameters
        ----------
        name : {"paper"}
            "paper" trains as the paper does (supplement S7.1 and S7.2).

        Examples
        --------
        >>> from diagatt import DiagAttRegressor
        >>> DiagAttRegressor.preset("paper", n_heads=2).solver.temperature
        100.0
        """
        if name != "paper":
            raise ValueError(f"unknown preset {name!r}: choose 'paper'.")
        # Supplement S7.1 says "Adam, default settings" and gives the temperatures. Batch size,
        # epochs and start are unstated; these reproduce the published tables.
        solver = Gradient(
            "factored",
            temperature=cls._papers_temperature,
            score_ridge=0.0,
            optimizer="adam",
            learning_rate=1e-3,
            batch_size=32,
            max_epochs=40,
            init="zero",
            init_scale=1.0,
        )
        settings: dict[str, Any] = {
            "score_form": "quadratic",
            "coupling": "independent",
            "ridge": 0.0,
        }
        return cls(solver=solver, **settings).set_params(**parameters)

    @from_sources
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        covariates: Any = None,
        groups: Any = None,
        offset: Any = None,
        exposure: Any = None,
        row_labels: Any = None,
    ) -> Self:
        """Fit to samples and their responses or classes.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, (n, d) array, or RowStore
            Samples. A 2-D array is n one-row samples, for which the model is a plain GLM. A
            `diagatt.stores.RowStore` is fitted in passes over its shards, in bounded memory; it
            holds its own responses, weights and covariates. An AnnData object is read as
            ``fit(adata, sample_key="patient", target="disease")``, where `layer` or `obsm` names
            the features, and `covariates`, `groups` and `sample_weight` are columns of its obs
            (`diagatt.cells.read_cells`).
        y : array of shape (n,), or (n, q) for several outcomes
            Left out with a RowStore or AnnData. Several outcomes share the attention: one set of
            rows explains all of them.
        sample_weight : array of shape (n,), optional
        covariates : array of shape (n, q), optional
            Shared covariates z whose effect is added to the predictor.
        groups : array of shape (n,), optional
            Patients, sites, scaffolds: samples of one group are held out together when ways to fit
            are compared (``solver="auto"``), and standard errors take them as dependent.
        offset : array of shape (n,), optional
            A known part of the linear predictor.
        exposure : array of shape (n,), optional
            Years, areas or sequencing depths over which counts were collected, for families with a
            log link: an offset of their logarithms. Predictions are per unit of exposure unless
            `predict` is given one.
        row_labels : int array of shape (n,), optional
            The active row of each sample where it is known, from 0, and −1 elsewhere; for the
            likelihood and the mixture solver and one head.
        """
        known = {"groups": groups, "offset": offset, "exposure": exposure, "row_labels": row_labels}
        return self._fit(X, y, sample_weight, covariates, **known)

    @property
    def _depends_on_units(self) -> bool:
        return not isinstance(get_solver(self.solver), Auto)

    @torch.random.fork_rng(devices=[])  # seeds are our own; the user's generator stays as it is
    def _fit_problem(self, problem: Problem) -> None:
        """Let the solver fit the model to the problem, and keep the result."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        solver, problem = get_solver(self.solver), with_started_family(problem)
        model = Model(1, get_score_form(self.score_form), self.coupling, self.ridge)
        problem, begun = self._with_trained_encoder(problem, solver, model, seed)
        start, checkpoint = self._warm_start(problem) or begun, Checkpoint.of(self.checkpoint)
        self._refuse_model(problem, solver, model)
        keeps_state = fits_once(problem, solver)

        def fit(part: Problem, model: Model, is_last: bool) -> Fitted:
            def once(samples: Problem, before: Fitted | None) -> Fitted:
                if samples.has_one_row_samples_only:  # attention has nothing to choose
                    return Uniform().fit(samples, model)
                kept: dict[str, Any] = {"seed": seed, "verbose": self.verbose, "start": before}
                if is_last and samples.n_samples == problem.n_samples and keeps_state:
                    kept["checkpoint"] = checkpoint
                return solver.fit(samples, model, **kept)

            goes_on = is_last and start is not None
            goes_on = goes_on and (begun is not None or self.n_heads_ == model.n_heads)
            return fit_with_shape(once, part, model, solver, start if goes_on else None)

        with _warning_if_unused(checkpoint, problem):
            fitted, n_heads, criteria = fit_heads(
                self.n_heads, model, problem, fit, self.selection, seed, solver
            )
        if not fitted.errors_note:
            fitted = with_errors(fitted, problem, replace(model, n_heads=n_heads))
        if self._integrates(problem):
            self._keep_row_model(fitted)
        self._keep(fitted, n_heads, criteria, problem)
        if self.has_row_of_interest_ is False:
            warn_of_no_row()

    def _refuse_model(self, problem: Problem, solver: Solver, model: Model) -> None:
        """Refuse, before any work, a model that the solver cannot fit to the problem."""
        if problem.has_one_row_samples_only:  # no solver is used
            return
        for R in heads_to_try(self.n_heads, model, problem):
            reason = solver.refuse(problem, replace(model, n_heads=R))
            if reason is not None:
                raise ValueError(reason)

    # ------------------------------------------------------------------ fitted attributes

    def _keep(self, fitted: Fitted, n_heads: int, criteria: list[dict], problem: Problem) -> None:
        """Set the fitted attributes; of a blend, coefficients are those of one fit."""
        self.n_heads_, self.n_restarts_ = n_heads, fitted.n_restarts
        self._keep_parameters(fitted.module)
        self.members_ = []
        if fitted.blend is not None:
            self.members_ = [StoredMember.of(member) for member in fitted.blend.members_list]
        self.value_se_ = None
        if fitted.value_se is not None:
            by_output = fitted.value_se.cpu().numpy().reshape(problem.n_outputs, -1)
            self.value_se_ = _drop_single(by_output, axis=0)
        self._change_units(problem.family)
        self.errors_note_ = fitted.errors_note
        self.shape_ = (fitted.family or problem.family).shape.numpy()
        self.prevalence_, ends = fitted.prevalence, fitted.prevalence_interval
        self.prevalence_interval_ = None if ends is None else np.array(ends)
        self._keep_report(fitted, criteria, problem)
        self._keep_evidence(fitted, problem)
        self._state = fitted.state

    def _keep_parameters(self, module: DiagonalAttention) -> None:
        """Keep the parameters of a module as arrays, and its settings."""
        query, key = module.small_factors or (module.query_key.matrix(), None)
        self.query_ = query.detach().cpu().numpy()  # (M·R, D, q), or W itself
        self.key_ = None if key is None else key.detach().cpu().numpy()
        self.value_ = _drop_single(module.value.mT.detach().cpu().numpy(), axis=1)  # (M·R, [K,] d)
        self.intercept_ = _drop_single(module.intercept.detach().cpu().numpy(), axis=0)
        self.covariate_coef_ = _drop_single(module.covariate.T.detach().cpu().numpy(), axis=0)
        self.n_covariates_ = len(module.covariate)
        self.none_score_ = self.none_value_ = None
        if module.none is not None:
            self.none_score_, value = (t.detach().cpu().numpy() for t in module.none)
            self.none_value_ = _drop_single(value, axis=1)
        self.temperature_ = float(module.temperature)
        self.score_form_ = module.score_form.name
        self.coupling_, self.readout_ = module.coupling, module.readout

    def _keep_report(self, fitted: Fitted, criteria: list[dict], problem: Problem) -> None:
        """Keep how the fit was found, and what was compared with it."""
        self.solver_ = "glm" if problem.has_one_row_samples_only else fitted.solver.name
        self.n_samples_, self.n_rows_ = problem.n_samples, problem.n_rows
        self.history_, self.selection_ = fitted.history, fitted.report
        self.n_iter_ = max(len(history) for history in fitted.history)
        self.log_likelihood_, self.criteria_ = fitted.log_likelihood, criteria
        self.contest_ = [
            {**line, "what": self._with_names(line["what"])} for line in fitted.contest
        ]
        self.described_ = self._with_names(fitted.described)
        self.communication_ = {
            "processes": problem.group.size,
            "reductions": problem.group.reductions,
            "bytes": problem.group.traffic,
            "sample_bytes": problem.group.exchanged,
        }

    def _keep_evidence(self, fitted: Fitted, problem: Problem) -> None:
        """Keep how uneven attention is, whether rows matter, and the calibration."""
        self.unevenness_, self.has_row_of_interest_ = [], fitted.finds_rows
        if not problem.has_one_row_samples_only:
            self.unevenness_ = unevenness(fitted.predictor, problem, fitted.completed)
            if max(self.unevenness_) < LEAST_UNEVENNESS and fitted.finds_rows is None:
                self.has_row_of_interest_ = False
        self._keep_calibration(fitted.out_of_fold)

    def _with_names(self, label: str) -> str:
        """Return the label of a contestant with the name of the feature whose extreme it uses."""
        names = self._encoded_names()
        return _EXTREME.sub(lambda found: f"{found[1]} {names[int(found[2])]}", label)

    def _change_units(self, family: Family) -> None:
        """Convert coefficients to the units of y; those of one outcome already have them."""


def _drop_single(array: np.ndarray, axis: int) -> Any:
    """Drop the axis of outputs if there is one output."""
    return array.squeeze(axis) if array.shape[axis] == 1 else array
