"""The contest: held-out scores by hand, no leaks, and who is dropped."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from diagatt.families import get_family
from diagatt.solvers.auto import many
from diagatt.solvers.auto.contest import Contest, Entry
from diagatt.solvers.auto.contestants import Contestant, likelihood_contestant
from diagatt.solvers.auto.many import LEAST_RIDGE, ManyFits, Penalties
from diagatt.solvers.auto.shared_rows import SharedRows
from diagatt.solvers.base import Model
from diagatt.solvers.folds import content_folds
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.uniform import Uniform
from tests.solvers.auto.samples import problem

GAUSSIAN = get_family("gaussian")
UNIFORM = Contestant("unit", "uniform", Penalties(np.inf, np.inf, 2.0))
POOLED = Contestant("unit", "pooled", Penalties(1, 0.5, 1))
MIXTURE = Contestant("unit", "mixture", Penalties(1, 5, 1))


def contest_of(samples, n_folds=3):
    return Contest(samples, content_folds(samples, n_folds, 0), Model(), 0)


def mean_rows(samples):
    """Mean rows of samples whose rows were scaled to mean 0 and variance 1, by hand."""
    x, w = samples.values.numpy(), samples.weights.numpy().repeat(samples.offsets.diff())
    mean = np.average(x, axis=0, weights=w)
    x = (x - mean) / np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w))
    return np.stack([part.mean(axis=0) for part in np.split(x, samples.offsets[1:-1])])


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0] * 12)])
def test_log_scores_of_a_fit_without_attention(weights, monkeypatch):
    """Ridge regression on mean rows without each fold, with the dispersion out of fold."""
    monkeypatch.setattr(many, "GLM_TOLERANCE", 1e-15)
    samples = problem("gaussian", weights=weights)
    contest = contest_of(samples)
    (entry,) = contest.enter([UNIFORM])
    x, y, w = mean_rows(samples), samples.y.numpy(), samples.weights.numpy()
    x = np.column_stack([x, np.ones(len(y))])
    z, folds = np.empty(len(y)), contest.folds.numpy()
    for fold in range(3):
        train = folds != fold
        gram = x[train].T @ (w[train, None] * x[train]) + np.diag([2.0, 2.0, LEAST_RIDGE])
        z[~train] = x[~train] @ np.linalg.solve(gram, x[train].T @ (w[train] * y[train]))
    np.testing.assert_allclose(entry.z[:, 0], z, atol=1e-5)
    phi = np.average((y - z) ** 2, weights=w)
    np.testing.assert_allclose(entry.log_score, norm.logpdf(y, z, np.sqrt(phi)), atol=1e-4)
    assert contest.mean(entry.log_score) == pytest.approx(
        np.average(norm.logpdf(y, z, np.sqrt(phi)), weights=w), abs=1e-5
    )


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_log_scores_of_a_mixture_are_its_density(family):
    """A fit to nothing but the other folds' samples gives the same density."""
    samples = problem(family)
    contest = contest_of(samples)
    (entry,) = contest.enter([MIXTURE])
    mapped = contest.preparation.of(MIXTURE).samples
    for fold in range(3):
        held_out = contest.folds == fold
        train = mapped.take(torch.nonzero(~held_out)[:, 0])
        fits = ManyFits(SharedRows(train), [MIXTURE.penalties], train.weights[:, None], ["mixture"])
        ((module, phi),) = fits.fitted(fits.fit())
        part = mapped.take(torch.nonzero(held_out)[:, 0])
        density = module.log_density(part.y, part.values, part.offsets, None, phi or 1.0)
        np.testing.assert_allclose(entry.log_score[held_out], density.detach(), atol=1e-5)


@pytest.mark.parametrize("contestant", [UNIFORM, POOLED, MIXTURE, likelihood_contestant(GAUSSIAN)],
                         ids=["uniform", "pooled", "mixture", "likelihood"])  # fmt: skip
def test_responses_of_held_out_samples_do_not_leak(contestant):
    samples = problem("bernoulli")
    contest = contest_of(samples)
    held_out = contest.folds == 1
    other = replace(samples, y=torch.where(held_out, 1 - samples.y, samples.y))
    (one,) = contest.enter([contestant])
    (two,) = Contest(other, contest.folds, Model(), 0).enter([contestant])
    np.testing.assert_allclose(two.z[held_out], one.z[held_out], rtol=0, atol=1e-9)
    assert float((two.z - one.z)[~held_out].abs().max()) > 1e-3


def test_contestants_do_not_feel_who_else_competes():
    samples = problem("gaussian")
    together = contest_of(samples).enter([UNIFORM, POOLED, MIXTURE])
    for entry in together:
        (alone,) = contest_of(samples).enter([entry.contestant])
        np.testing.assert_allclose(entry.log_score, alone.log_score, atol=1e-6)


def dropped(stage, gaps, kinds=None, spread=1.0, dtype=torch.float64):
    """Who is alive after a stage, if contestants are so many standard errors behind the first."""
    samples = problem("gaussian", n=40)
    contest = replace(contest_of(samples), dtype=dtype)
    wave = torch.tensor([1.0, -1.0] * 20, dtype=torch.float64) * spread
    error = spread / 40**0.5
    for gap, contestant in zip(gaps, kinds or [POOLED] * len(gaps), strict=True):
        scores = -gap * error + (wave if gap else 0 * wave)
        contest.entries.append(Entry(contestant, torch.zeros(40, 1), scores, scores.clone()))
    everyone = torch.ones(40, dtype=torch.bool)
    contest._drop(contest.entries, everyone, stage)
    return [entry.is_alive for entry in contest.entries]


def test_contestants_far_behind_are_dropped():
    assert dropped(0, [0, 2.9, 3.1]) == [True, True, False]
    assert dropped(1, [0, 1.9, 2.1]) == [True, True, False]


def test_solvers_that_fit_alone_must_be_nearer_after_one_fold_of_many_rows():
    kinds = [POOLED, *[Contestant("unit", solver=Likelihood())] * 2]
    many = {"dtype": torch.float32}  # which large contests compute in
    assert dropped(0, [0, 0.9, 1.1], kinds, **many) == [True, True, False]
    assert dropped(1, [0, 1.9, 2.1], kinds, **many) == [True, True, False]
    assert dropped(0, [0, 2.9, 3.1], kinds) == [True, True, False]


@pytest.mark.parametrize("stage", [0, 1])
def test_one_with_and_one_without_attention_are_kept(stage):
    """However far behind they are."""
    kinds = [POOLED, UNIFORM, UNIFORM, MIXTURE]
    assert dropped(stage, [0, 50, 60, 70], kinds) == [True, True, False, False]
    kinds = [UNIFORM, POOLED, MIXTURE]
    assert dropped(stage, [0, 60, 50], kinds) == [True, False, True]
    kinds = [Contestant("unit", "uniform", solver=Uniform()), POOLED]
    assert dropped(stage, [50, 0], kinds) == [True, True]


def test_the_ridge_of_the_model_scales_that_of_values():
    samples = problem("gaussian")
    folds = content_folds(samples, 3, 0)
    stiff = UNIFORM.penalties._replace(value=14.0)
    (ours,) = Contest(samples, folds, Model(ridge=7.0), 0).enter([UNIFORM])
    (theirs,) = Contest(samples, folds, Model(), 0).enter([replace(UNIFORM, penalties=stiff)])
    np.testing.assert_array_equal(ours.z, theirs.z)


def test_features_of_samples_stand_after_the_covariates():
    samples = problem("gaussian", q=2)
    contest = contest_of(samples)
    prepared = contest.preparation.of(replace(POOLED, features=("size", "sum")))
    assert prepared.samples.n_covariates == 2 + 2 + 2
    torch.testing.assert_close(prepared.samples.covariates[:, :2], samples.covariates)
    again = prepared.apply(samples)
    torch.testing.assert_close(again.covariates, prepared.samples.covariates)
    torch.testing.assert_close(again.values, prepared.samples.values)
