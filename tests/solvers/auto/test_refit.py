"""After the contest: members on all samples, and the one that is reported."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch

from diagatt.families import get_family
from diagatt.solvers.auto.combine import Verdict
from diagatt.solvers.auto.contest import Contest
from diagatt.solvers.auto.contestants import Contestant, likelihood_contestant
from diagatt.solvers.auto.many import ManyFits, Penalties
from diagatt.solvers.auto.refit import _reported, refit
from diagatt.solvers.auto.shared_rows import SharedRows
from diagatt.solvers.base import Model
from diagatt.solvers.existence import Existence
from diagatt.solvers.folds import content_folds
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.subspace import in_original_features
from tests.solvers.auto.samples import problem

refits = import_module("diagatt.solvers.auto.refit")  # the package has a function of this name

GAUSSIAN = get_family("gaussian")
UNIFORM = Contestant("unit", "uniform", Penalties(np.inf, np.inf, 2.0))
POOLED = Contestant("common", "pooled", Penalties(1, 0.5, 1))
MIXTURE = Contestant("unit", "mixture", Penalties(1, 5, 1), ("size",))
BENT = Contestant("squares", "pooled", Penalties(10, 5, 1))


def contest_of(samples, contestants):
    contest = Contest(samples, content_folds(samples, 2, 0), Model(), 0)
    contest.enter(contestants)
    return contest


def refitted(samples, contestants, weights, votes, whole=None):
    contest = contest_of(samples, contestants)
    verdict = Verdict(weights, votes, 3.0, Existence(3.0, 0.001, 100, 5))
    return refit(contest, verdict, samples if whole is None else whole, Model(), seed=0), contest


def given(samples):
    return samples.values, samples.offsets, samples.covariates


def alone(contestant, prepared):
    """The contestant's fit to all prepared samples, on its own."""
    samples = prepared.samples
    free = samples.n_covariates - len(prepared.features.shift)
    fits = ManyFits(
        *(SharedRows(samples), [contestant.penalties], samples.weights[:, None]),
        *([contestant.readout], free),
    )
    return fits.fitted(fits.fit())[0][0]


def test_members_are_those_with_weight_or_vote():
    samples = problem("gaussian", q=1)
    contestants = [UNIFORM, POOLED, MIXTURE, BENT]
    fitted, contest = refitted(samples, contestants, [0.3, 0, 0.7, 0], [0, 0.4, 0.6, 0])
    found = [(m.rows.name, m.weight, m.vote) for m in fitted.blend.members_list]
    assert found == [("unit", 0.3, 0), ("common", 0, 0.4), ("unit", 0.7, 0.6)]
    assert fitted.finds_rows is True
    for member, contestant in zip(fitted.blend.members_list, contestants, strict=False):
        own = alone(contestant, contest.preparation.of(contestant))
        with torch.no_grad():
            mapped = member.rows(samples.values)
            beside = torch.cat(
                [samples.covariates, member.features(mapped, samples.offsets)], dim=1
            )
            expected = own(mapped, samples.offsets, beside)
            np.testing.assert_allclose(member(mapped, *given(samples)[1:]), expected, atol=1e-5)


@pytest.mark.parametrize("contestant", [UNIFORM, POOLED, replace(MIXTURE, features=())],
                         ids=["uniform", "pooled", "mixture"])  # fmt: skip
@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_the_reported_fit_is_its_member_in_original_features(family, contestant):
    samples = problem(family, q=1)
    fitted, _ = refitted(samples, [contestant], [1.0], [1.0])
    assert fitted.described == contestant.label
    with torch.no_grad():
        np.testing.assert_allclose(
            fitted.module(*given(samples)), fitted.blend(*given(samples)), rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(
            fitted.module.attention(*given(samples)[:2]),
            fitted.blend.attention(*given(samples)[:2]),
            atol=1e-9,
        )


def test_bent_rows_and_features_of_samples_are_never_reported():
    samples = problem("gaussian")
    fitted, contest = refitted(samples, [BENT, MIXTURE, UNIFORM], [1.0, 0, 0], [1.0, 0, 0])
    assert fitted.described == UNIFORM.label
    assert [m.rows.name for m in fitted.blend.members_list] == ["squares"]
    contest.entries[2].is_alive = False  # even if everyone else was dropped
    assert _reported(contest) is contest.entries[2]


def test_modules_have_the_type_of_the_problem_and_maps_stay_exact():
    samples = problem("gaussian").to(torch.float32)
    fitted, _ = refitted(samples, [UNIFORM, POOLED], [0.5, 0.5], [0, 1.0])
    assert fitted.module.value.dtype == torch.float32
    for member in fitted.blend.members_list:
        assert member.attention.value.dtype == torch.float32
        assert member.rows.shift.dtype == torch.float64


def test_a_contest_on_a_part_is_refitted_to_everything():
    whole = problem("gaussian", n=40, q=1)
    part = whole.take(torch.arange(0, 40, 2))
    fitted, contest = refitted(part, [MIXTURE, UNIFORM], [1.0, 0.0], [1.0, 0.0], whole)
    prepared = contest.preparation.of(MIXTURE)
    everything = prepared.apply(whole)
    free = everything.n_covariates - len(prepared.features.shift)
    fits = ManyFits(
        *(SharedRows(everything), [MIXTURE.penalties], everything.weights[:, None]),
        *(["mixture"], free),
    )
    own = fits.fitted(fits.fit())[0][0]
    with torch.no_grad():
        expected = own(everything.values, everything.offsets, everything.covariates)
        np.testing.assert_allclose(fitted.blend(*given(whole)), expected, atol=1e-6)


def test_fits_too_large_for_a_batch_use_the_solver_of_the_same_objective(monkeypatch):
    samples = problem("gaussian", n=30)
    batched, _ = refitted(samples, [UNIFORM, POOLED], [0, 1.0], [0, 1.0])
    monkeypatch.setattr(refits, "MOST_ENTRIES", 0)
    own, _ = refitted(samples, [UNIFORM, POOLED], [0, 1.0], [0, 1.0])
    with torch.no_grad():
        ours, theirs = (fitted.blend(*given(samples))[:, 0] for fitted in (batched, own))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.9


def test_the_likelihood_is_that_of_original_rows():
    """The density of rows changes with their units; the fit itself does not feel them."""
    samples = problem("gaussian", n=40)
    units = torch.tensor([0.2, 5.0], dtype=torch.float64)  # no variance is near the floor
    samples = replace(samples, values=samples.values * units + 3.0)
    fitted, contest = refitted(
        samples, [UNIFORM, likelihood_contestant(GAUSSIAN)], [0, 1.0], [0, 1.0]
    )
    contest.entries[0].is_alive = False
    entry = contest.entries[1]
    free = Model(ridge=0.0)  # a ridge feels units
    fits = refits._fits(contest, [entry], samples, free, seed=0)
    reported = in_original_features(fits[0], contest.preparation.of(entry.contestant).rows, samples)
    direct = Likelihood().fit(samples, free, seed=0)
    assert reported.log_likelihood == pytest.approx(direct.log_likelihood, abs=0.05)
    np.testing.assert_allclose(reported.value_se, direct.value_se, rtol=0.02)
    with torch.no_grad():
        np.testing.assert_allclose(
            reported.module.attention(*given(samples)[:2]),
            direct.module.attention(*given(samples)[:2]),
            atol=1e-2,
        )
    assert fitted.blend is not None
