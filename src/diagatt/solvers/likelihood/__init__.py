"""`Likelihood`: maximum likelihood of the latent-row model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.coupling import READOUTS
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.parameters import Rule, at_least, boolean, count, one_of, optional, share
from diagatt.solvers.base import (
    OBSERVED,
    Fitted,
    Model,
    Solver,
    agreed,
    refuse_none,
    trial_part,
)
from diagatt.solvers.checkpoint import Checkpoint, RunState
from diagatt.solvers.likelihood.covariance import COVARIANCES
from diagatt.solvers.likelihood.em import (
    EM,
    EMSettings,
    EMState,
    Expectation,
    LikelihoodFit,
    value_covariance,
)
from diagatt.solvers.likelihood.errors import latent_errors
from diagatt.solvers.likelihood.latent_rows import LatentRows
from diagatt.solvers.likelihood.prevalence import (
    MOST_SAMPLES,
    NONE_TOLERANCE,
    prefer_all_active,
    prevalence_interval,
    with_prevalence_below_one,
)
from diagatt.solvers.likelihood.starts import best_start
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.sandwich import Errors
from diagatt.solvers.subspace import fit_in_subspace, fit_mapped, is_too_wide, varying_features

__all__ = ["Likelihood"]


@dataclass(eq=False, repr=False)
class Likelihood(Solver):
    """Maximum likelihood by EM over unknown rows, with Gaussian active and background rows.

    Scores are the log density ratios of active and background rows, so they need no temperature.

    Parameters
    ----------
    covariance : {"full", "tied", "diagonal", "low_rank"}
        Covariance of active rows relative to that of the background: unrestricted, proportional,
        diagonal, or different in `rank` directions.
    rank : int
        Count of directions of a "low_rank" covariance.
    shrinkage : float, optional
        How far a "full" covariance is drawn towards the proportional one, from 0 to 1; by default,
        oracle-approximating shrinkage decides.
    max_iterations : int
        Largest count of EM iterations on all samples.
    tolerance : float
        Stop when the log-likelihood gains less than this per sample; with ``none=True``, less than
        a hundredth of it, because the share π converges slowly.
    none : bool
        Whether samples may have no row of interest; the share π of those that have one is
        estimated, and the responses of the others have a mean of their own. The estimate is 1 if
        the log-likelihood then falls by less than 1. This is for one head whose scores do not
        depend on the context.
    readout : {"auto", "pooled", "mixture"}
        Predict from the pooled row, as the paper does, or by the mean over the rows' predictions,
        Σ_j κ_j g⁻¹(⟨v, x_j⟩ + b), which is the prediction of the latent-row model for a new sample.
        "auto" takes the mixture for ordered classes, where a pooled row between a low and a high
        one would predict a class in the middle, and the pooled row for all other responses. For
        numbers with an identity link, both are the same.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor
    >>> from diagatt.solvers import Likelihood
    >>> DiagAttRegressor(solver=Likelihood("diagonal")).get_params()["solver__covariance"]
    'diagonal'
    """

    covariance: str = "full"
    _: KW_ONLY
    rank: int = 2
    shrinkage: float | None = None
    max_iterations: int = 100
    tolerance: float = 1e-4
    none: bool = False
    readout: str = "auto"

    name = "likelihood"
    scores_see_response = False
    has_latent_rows = True
    takes_row_labels = True
    rules: ClassVar[Mapping[str, Rule]] = {
        "covariance": one_of(*COVARIANCES),
        "rank": count(1),
        "shrinkage": optional(share(whole=True)),
        "max_iterations": count(1),
        "tolerance": at_least(0),
        "none": boolean(),
        "readout": one_of("auto", *READOUTS),
    }
    later_parameters: ClassVar[Mapping[str, Any]] = {"none": False, "readout": "auto"}

    def refuse(self, problem: Problem, model: Model) -> str | None:
        """Refuse outcomes and row weights of other solvers, and unsupported uses of `none`."""
        if self.readout == "mixture" and not problem.family.predicts_mixtures:
            return (
                f"a mixture over rows does not predict what the {problem.family.name} family does: "
                "set readout='pooled'."
            )
        if self.none and model.score_form.has_context:
            return "none=True is for score_form='affine' or 'quadratic': set one of them."
        if problem.family.n_outcomes > 1 and problem.family.curvature_bound is None:
            return (
                f"the likelihood solver fits several outcomes of the gaussian and the bernoulli "
                f"family, not of {problem.family.name!r}: use solver='mixture', 'gradient' or "
                "'auto'."
            )
        if problem.smallest_row_weight < 1:
            return (
                "the likelihood solver takes row weights as counts of rows, and one is "
                f"{problem.smallest_row_weight:.3g}: multiply all of them by one number, so that "
                "none is below 1, or use another solver."
            )
        return refuse_none(self.none, problem, model)

    def settings(self, model: Model) -> EMSettings:
        """Return the settings of EM."""
        tolerance = self.tolerance * (NONE_TOLERANCE if self.none else 1.0)
        given = (self.covariance, self.rank, self.shrinkage, model.ridge, tolerance)
        return EMSettings(*given, none=self.none)

    def integrates(self, problem: Problem, model: Model) -> bool:
        """Return True for one head and one predictor, where rows do not depend on a context."""
        if is_too_wide(problem):
            return False
        alone = model.n_heads == 1 and problem.n_outputs == 1
        return alone and not model.score_form.has_context and not problem.has_one_row_samples_only

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
        """Build and rank starts on a part of the samples, then refine the best on all samples.

        With `start`, or with a checkpoint that was written before, no starts are built. Very wide
        rows are fitted in a principal subspace, and constant features are left out
        (`diagatt.solvers.subspace`).
        """
        given: dict[str, Any] = {"checkpoint": checkpoint, "verbose": verbose}
        if is_too_wide(problem):
            return fit_in_subspace(self, problem, model, seed=seed, start=start, **given)
        varying = varying_features(problem, model)
        if varying is not None:
            given |= {"seed": seed, "start": start, "keeps_state": True}
            return fit_mapped(self, varying, problem, model, **given)
        here = problem.in_memory
        if here is not None and here.missing is not None and not self.integrates(problem, model):
            problem = replace(here, missing=None)
        settings = replace(self.settings(model), verbose=verbose)
        form, file, report = model.score_form, None, list[dict]()
        state = None if start is None else start.state
        latent = state if isinstance(state, LatentRows) else None  # others have other states
        if latent is not None and (latent.response.none is not None) != self.none:
            latent = None
        latent = None if latent is None else with_prevalence_below_one(latent)
        if checkpoint is not None:
            run = asdict(replace(settings, verbose=False))
            if not self.none:
                del run["none"]  # as in checkpoints that are older than the parameter
            parts = (run, form.name, model.coupling, model.n_heads, seed)
            file = RunState(checkpoint, problem, *parts)
            written = EMState.read(file, problem.device)
            latent = latent if written is None else written.model
            report = file.notes.get("starts", report)
        if latent is None:
            generator = np.random.default_rng(seed)
            trial = trial_part(problem, generator)
            trial = replace(trial, missing=None)  # imputed entries are good enough to start from
            setting = (form, model.is_distinct, settings, model.n_heads, generator)
            latent, report = best_start(trial, *setting)
            if file is not None:
                file.notes["starts"] = report
        tensors = latent.tensors()
        same = agreed(list(tensors.values()), problem)
        latent = LatentRows.of(dict(zip(tensors, same, strict=True)))
        em = EM(Expectation(problem, form, model.is_distinct), settings)
        fit = em.run(latent, self.max_iterations, file=file)
        if self.none:
            fit = prefer_all_active(em, fit, self.max_iterations)
        return Fitted(
            _module(fit.model, problem, model, self._readout(problem)),
            self,
            [fit.history],
            log_likelihood=fit.log_likelihood,
            dispersion=fit.model.response.phi,
            value_covariance=value_covariance(em, fit.model),
            report=report,
            state=fit.model,
            prevalence=fit.model.prevalence,
            row_gaussians=_gaussians(fit.model) if self.integrates(problem, model) else None,
        )

    def _readout(self, problem: Problem) -> str:
        """Return the readout, "pooled" or "mixture"."""
        if self.readout != "auto":
            return self.readout
        return "mixture" if problem.family.needs_mixture else "pooled"

    def errors(self, fitted: Fitted, samples: Samples, model: Model) -> Errors:
        """Return the sandwich over the distributions of rows and the response, and π's interval.

        Where covariances are structured, rows depend on their context, or parameters are too many,
        distributions of rows are taken as known, unless samples of groups depend on each other.
        """
        found = Errors(None, "")
        complete = samples.missing is None
        if self.covariance == "full" and complete and not model.score_form.has_context:
            given = (model.score_form, model.is_distinct, model.ridge)
            found = latent_errors(fitted.state, samples, *given)
        if found.covariance is None and samples.groups is not None:
            # The information takes samples as independent of each other.
            if not found.note:
                found = Errors(None, "no standard errors: those of groups need free covariances.")
        elif found.covariance is None and fitted.value_covariance is not None:
            reason = f" ({found.note})" if found.note else ""
            found = Errors(fitted.value_covariance, OBSERVED + reason)
        elif not found.note:
            found = Errors(None, "no standard errors: several outputs.")
        if fitted.prevalence is None or samples.n_samples > MOST_SAMPLES:
            return found
        expectation = Expectation(samples, model.score_form, model.is_distinct)
        fit = LikelihoodFit(fitted.state, float(fitted.log_likelihood or 0.0), [])
        em = EM(expectation, self.settings(model))
        return found._replace(prevalence_interval=prevalence_interval(em, fit))


def _gaussians(latent: LatentRows) -> tuple[Tensor, Tensor]:
    """Return means (2, d) and covariances (2, d, d) of background and active rows."""
    return latent.rows.A.sum(dim=2), latent.rows.C  # without a constant, means are 0


@torch.no_grad()
def _module(latent: LatentRows, problem: Problem, model: Model, readout: str) -> DiagonalAttention:
    """Return the fitted model as ordinary parameters of diagonalized attention."""
    response, like, none = latent.response, (problem.device, problem.dtype), None
    if response.none is not None:
        share, context = response.none.prevalence, latent.rows.A.new_ones(1, latent.rows.A.shape[2])
        odds = math.log1p(-share) - math.log(share) - latent.rows.score_constants(context)[0]
        none = odds.to(*like), response.none.value[None].to(*like)  # (1,), (1, K)
    return DiagonalAttention.with_parameters(
        latent.rows.query_key(model.score_form).to(*like),
        None,
        response.value.to(*like),
        response.shared[0].to(*like),
        response.shared[1:].to(*like),
        none=none,
        score_form=model.score_form.name,
        coupling=model.coupling,
        readout=readout,
        family=problem.family if readout == "mixture" else None,
    )
