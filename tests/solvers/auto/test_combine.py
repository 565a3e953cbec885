"""Weights of contestants: against their formula, by hand."""

import math

import numpy as np
import pytest
import torch

from diagatt.solvers.auto.combine import (
    ATTENTION_TEMPERATURE,
    LEAST_WEIGHT,
    UNIFORM_TEMPERATURE,
    _trimmed,
    judge,
)
from diagatt.solvers.auto.contest import Contest, Entry
from diagatt.solvers.auto.contestants import Contestant
from diagatt.solvers.base import Model
from tests.solvers.auto.samples import problem


def contest_of(family="gaussian", weights=None, n=24):
    samples = problem(family, n, weights=weights)
    return Contest(samples, torch.arange(n) % 3, Model(), 0)


def entry(contest, readout, z, log_score, is_alive=True):
    """A contestant that said z of every sample and has this mean log score."""
    n = contest.samples.n_samples
    z = torch.as_tensor(z, dtype=torch.float64).reshape(-1, 1).expand(n, 1)
    scores = torch.full((n,), float(log_score), dtype=torch.float64)
    return Entry(Contestant("unit", readout), z, scores, scores.clone(), is_alive=is_alive)


def noisy(contest, size, seed=0):
    """Predictions that miss the response by this much."""
    return contest.samples.y + size * torch.from_numpy(
        np.random.default_rng(seed).normal(size=contest.samples.n_samples)
    )


@pytest.mark.parametrize("weights", [None, np.array([1.0, 3.0] * 12)])
def test_weights_within_a_group_follow_log_scores(weights):
    contest = contest_of(weights=weights)
    total = contest.samples.total_weight
    gaps = np.array([0.0, 0.02, 0.05])
    for readout, t in (("uniform", UNIFORM_TEMPERATURE), ("pooled", ATTENTION_TEMPERATURE)):
        entries = [entry(contest, readout, noisy(contest, 0.5), -1 - gap) for gap in gaps]
        raw = np.exp(-total * gaps / t)
        assert (raw > LEAST_WEIGHT * raw.sum()).all()
        verdict = judge(contest, entries)
        np.testing.assert_allclose(verdict.weights, raw / raw.sum(), rtol=1e-9)
        expected = raw / raw.sum() if readout == "pooled" else np.zeros(3)
        np.testing.assert_allclose(verdict.votes, expected, rtol=1e-9)


def test_who_was_dropped_has_no_weight():
    contest = contest_of()
    entries = [entry(contest, "pooled", 0.0, -1), entry(contest, "pooled", 0.0, 5, is_alive=False)]
    assert judge(contest, entries).weights == [1.0, 0.0]


def test_a_perfect_group_has_all_the_weight():
    contest = contest_of()
    good, bad = contest.samples.y, noisy(contest, 3.0)
    both = [entry(contest, "uniform", bad, -2), entry(contest, "mixture", good, 0)]
    verdict = judge(contest, both)
    assert (verdict.weights, verdict.votes) == ([0.0, 1.0], [0.0, 1.0])
    assert verdict.t_statistic > 2
    assert verdict.existence.statistic > 0
    both = [entry(contest, "uniform", good, 0), entry(contest, "mixture", bad, -2)]
    verdict = judge(contest, both)
    assert (verdict.weights, verdict.votes) == ([1.0, 0.0], [0.0, 1.0])
    assert verdict.t_statistic < -2
    assert not verdict.finds_rows


@pytest.mark.parametrize("weights", [None, np.array([1.0, 3.0] * 12)])
def test_the_mixing_weight_and_t_by_hand(weights):
    contest = contest_of(weights=weights)
    y, w = contest.samples.y.numpy(), contest.samples.weights.numpy()
    a, u = noisy(contest, 0.6, 1).numpy(), noisy(contest, 0.7, 2).numpy()
    verdict = judge(contest, [entry(contest, "uniform", u, -1), entry(contest, "pooled", a, -1)])
    grid = np.arange(21) / 20
    losses = [np.average((y - alpha * a - (1 - alpha) * u) ** 2, weights=w) for alpha in grid]
    alpha = grid[np.argmin(losses)]
    assert 0 < alpha < 1
    np.testing.assert_allclose(verdict.weights, [1 - alpha, alpha])
    gain = 0.5 * ((y - u) ** 2 - (y - a) ** 2)
    mean = np.average(gain, weights=w)
    error = math.sqrt(np.average((gain - mean) ** 2, weights=w) / w.sum())
    assert verdict.t_statistic == pytest.approx(mean / error)


def test_means_not_predictors_are_mixed():
    """Of two classes, probabilities are averaged: α by brute force."""
    contest = contest_of("bernoulli")
    y = contest.samples.y.numpy()
    rng = np.random.default_rng(0)
    a, u = (2 * (2 * y - 1) + rng.normal(size=24) * s for s in (2.0, 3.0))
    verdict = judge(contest, [entry(contest, "uniform", u, -1), entry(contest, "pooled", a, -1)])

    def loss(alpha):
        p = alpha / (1 + np.exp(-a)) + (1 - alpha) / (1 + np.exp(-u))
        return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))

    grid = np.arange(21) / 20
    alpha = grid[np.argmin([loss(alpha) for alpha in grid])]
    np.testing.assert_allclose(verdict.weights, _trimmed([1 - alpha, alpha]))


def test_equal_groups_show_nothing():
    contest = contest_of()
    both = [entry(contest, readout, 0.0, -1) for readout in ("uniform", "pooled")]
    assert judge(contest, both).t_statistic == 0.0
    assert not judge(contest, both).finds_rows


def test_one_group_alone():
    contest = contest_of()
    attending = judge(contest, [entry(contest, "pooled", 0.0, -1)])
    assert (attending.weights, attending.t_statistic) == ([1.0], math.inf)
    without = judge(contest, [entry(contest, "uniform", 0.0, -1)])
    assert (without.weights, without.votes, without.finds_rows) == ([1.0], [0.0], False)


def test_small_weights_are_left_out_and_the_rest_sums_to_one():
    found = _trimmed([0.6, 0.015, 0.385, 0.0])
    assert found[1] == found[3] == 0.0
    assert sum(found) == pytest.approx(1.0)
    assert found[0] / found[2] == pytest.approx(0.6 / 0.385)
    assert _trimmed([0.0, 0.0]) == [0.0, 0.0]


def test_one_stands_for_many_that_do_equally_well():
    """A constant response: more contestants than the least weight lets in are all right."""
    assert _trimmed([0.01] * 100) == [1.0] + [0.0] * 99
