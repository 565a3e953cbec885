"""Cross-fitting: every sample is predicted by a fit that left it out and had a cold start."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from diagatt.solvers.auto import Auto
from diagatt.solvers.base import Model, Solver
from diagatt.solvers.existence import Existence, existence_test, together
from diagatt.solvers.folds import OutOfFold, content_folds
from diagatt.solvers.gradient.train import predictors
from diagatt.solvers.outlying_rows import outlying_row_test
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.uniform import Uniform

# Most samples that are used; with more, the outcome of five fits would hardly change.
MOST_SAMPLES = 2000
N_FOLDS = 5


def head_test(solver: Solver, problem: Problem, model: Model, seed: int) -> Existence:
    """Test whether the model's last head adds anything to a model with one head fewer.

    Both models are fitted without each of five folds. The null hypothesis is that the rows of the
    smaller model, mean rows and covariates explain everything.
    """
    if model.n_heads == 1:
        return cross_fit(solver, problem, model, seed).tested()
    fewer = replace(model, n_heads=model.n_heads - 1)
    fits = [cross_fit(solver, problem, tried, seed) for tried in (model, fewer)]
    eta, of_fewer = (unseen.predictions() for unseen in fits)
    return existence_test(fits[0].samples, fits[0].folds, eta, of_fewer, explained=True)


def cross_fit(solver: Solver, problem: Problem, model: Model, seed: int) -> OutOfFold:
    """Return fits of the solver that leave out one of five folds each; `Auto` has them already.

    Samples of one row have a regression in place of the solver.

    Parameters
    ----------
    solver : Solver
    problem : Problem
        If it has more than 2000 samples, 2000 are drawn at random.
    model : Model
    seed : int
    """
    if problem.has_one_row_samples_only:
        solver = Uniform()
    if isinstance(solver, Auto):
        return solver.out_of_fold(problem, model, seed=seed)
    samples = problem.sample(MOST_SAMPLES, np.random.default_rng(seed))
    groups = None if samples.groups is None else samples.groups.cpu().numpy()
    folds = content_folds(samples, N_FOLDS, seed, groups)
    if int(folds.max()) == 0:
        raise ValueError("all samples are copies of one, or one group: nothing can be held out.")
    found, attending, pooled = [], [], []
    place, parts = [], []
    for fold in range(int(folds.max()) + 1):
        held_out = torch.nonzero(folds == fold)[:, 0]
        train, part = samples.take(torch.nonzero(folds != fold)[:, 0]), samples.take(held_out)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = solver.fit(train, model, seed=seed)
        found.append(fitted.predictor)
        uniform = Uniform().fit(train, model).module
        pooled.append(predictors(uniform, part).double())
        parts.append(fitted.completed(part))
        attending.append(predictors(found[-1], parts[-1]).double())
        place.append(held_out)
    back = torch.cat(place).argsort()
    if samples.missing is not None:  # rows are completed by the fit without their sample
        seen = Samples.joined(parts)
        samples = replace(
            samples.take(torch.cat(place)),
            values=seen.values,
            log_prior=seen.log_prior,
            missing=None,
        ).take(back)
    if samples.has_one_row_samples_only:
        return OutOfFold(samples, folds, found, None)
    eta, of_means = torch.cat(attending)[back], torch.cat(pooled)[back]
    test = existence_test(samples, folds, eta, of_means)
    outlying, share = outlying_row_test(samples, of_means, seed)
    return OutOfFold(samples, folds, found, together([(test, 1 - share), (outlying, share)]))
