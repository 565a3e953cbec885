"""Families with a shape parameter, which is estimated in turns with the model.

A solver takes the shape as known. Its fit then determines the most likely shape, with which the
solver continues. In large data the shape is estimated on a part of the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import segment_logsumexp, spread
from diagatt.solvers.auto.contest import as_mixture
from diagatt.solvers.base import Fitted, Model, Solver
from diagatt.solvers.gradient.train import predictors
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.uniform import Uniform

# Most samples on which a shape is found, and most responses from which a first shape is computed.
MOST_SAMPLES, MOST_RESPONSES = 2000, 100_000
# Turns, and the change of the logarithm of a shape that ends them: of a GLM, whose steps are cheap;
# of a solver that starts from its last fit; and of one that starts from scratch.
GLM_TURNS, GLM_TOLERANCE = 100, 1e-10
TURNS, TOLERANCE = 10, 1e-3
COLD_TURNS, COLD_TOLERANCE = 2, 0.05

#: Fits a problem, starting from an earlier fit if there is one.
Fit = Callable[[Problem, Fitted | None], Fitted]


def with_started_family(problem: Problem) -> Problem:
    """Return the problem whose family has a shape to start from."""
    some = problem.in_memory or problem.sample(MOST_RESPONSES, np.random.default_rng(0))
    return problem.with_family(problem.family.started(some.y, some.weights))


def fits_once(problem: Problem, solver: Solver) -> bool:
    """Return whether all samples are fitted once, so that a checkpoint belongs to that fit.

    A shape that is estimated on all samples takes several fits, each with another family.
    """
    matters = problem.family.estimates_shape and solver.sees_shape(problem)
    return not matters or problem.n_samples > MOST_SAMPLES


def fit_with_shape(
    fit: Fit, problem: Problem, model: Model, solver: Solver, start: Fitted | None = None
) -> Fitted:
    """Fit the problem and the shape of its family, if that is estimated."""
    if not problem.family.estimates_shape:
        return fit(problem, start)
    if not solver.sees_shape(problem):
        return _with_family(fit(problem, start), problem)
    some: Problem = problem.sample(MOST_SAMPLES, np.random.default_rng(0))
    is_glm = problem.has_one_row_samples_only
    uniform = _in_turns(
        lambda part, _: Uniform().fit(part, model),
        problem if is_glm else some,
        None,
        GLM_TURNS if Uniform().sees_shape(some) else 1,
        GLM_TOLERANCE if is_glm else TOLERANCE,
    )
    if is_glm or not solver.attends:
        return uniform
    family = uniform.family or problem.family
    turns, tolerance = (TURNS, TOLERANCE) if solver.goes_on else (COLD_TURNS, COLD_TOLERANCE)
    whole = some.n_samples == problem.n_samples
    if whole:
        some = problem  # its fit is the answer
    fitted = _in_turns(fit, some.with_family(family), start, turns, tolerance)
    if whole:
        return fitted
    known = problem.with_family(fitted.family or family)
    return _with_family(fit(known, start), known)


def _in_turns(
    fit: Fit, problem: Problem, start: Fitted | None, turns: int, tolerance: float
) -> Fitted:
    for _ in range(turns):
        fitted = _with_family(fit(problem, start), problem)
        assert fitted.family is not None
        moved = fitted.family.distance(problem.family)
        problem, start = problem.with_family(fitted.family), fitted
        if moved < tolerance:
            break
    return fitted


@torch.no_grad()
def _with_family(fitted: Fitted, problem: Problem) -> Fitted:
    """Return the fit with the most likely shape given it."""
    some = problem.sample(MOST_RESPONSES, np.random.default_rng(0))
    module = fitted.module
    if fitted.solver.has_latent_rows and module.readout == "pooled":
        module = as_mixture(module, problem.family)
    if module.readout == "mixture" and module.groups == 1:
        given = _chosen_rows(module, some, fitted.dispersion or 1.0)
    else:
        given = (some.y, predictors(module, some), some.weights)
    return replace(fitted, family=problem.family.refined(*given))


def _chosen_rows(
    module: DiagonalAttention, part: Samples, phi: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return responses, predictors and weights of rows, by the probability that each is active."""
    found = []
    for slices in module.blocks(part.offsets):
        b = part.block(*slices)
        terms, z, places = module.joint_density(
            b.y, b.values, b.offsets, b.covariates, phi, b.offset, log_prior=b.log_prior
        )
        evidence = segment_logsumexp(terms, places)
        responsible = (terms - spread(evidence, places)).exp()
        found.append((spread(b.y, places), z, spread(b.weights, places) * responsible))
    y, z, weights = (torch.cat(tensors) for tensors in zip(*found, strict=True))
    return y, z, weights
