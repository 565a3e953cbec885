"""The localization theorems on simulated samples: the bound holds as often as promised."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt.theory import (
    Moments,
    gaussian_radius,
    localization_guarantee,
    moment_radius,
    multi_head_separators,
    score_variance,
    single_head_separator,
    temperature_interval,
)
from tests.theory.draws import entries

P, EPSILON, ETA = 8, 0.05, 0.2


def draw_samples(rng, moments, n, p, df=None, rho=0.0):
    """n samples of p rows with diagonal covariances; row k < s is of class k. (n, p, d)

    ``rho`` correlates the rows of a sample and leaves each row's own distribution's first two
    moments alone.
    """
    background, *classes = moments
    d = background.n_features
    noise = np.sqrt(1 - rho) * entries(rng, (n, p, d), df)
    noise += np.sqrt(rho) * entries(rng, (n, 1, d), df)
    rows = [*classes, *([background] * (p - len(classes)))]
    return np.stack(
        [row.mean + noise[:, j] * np.sqrt(np.diag(row.covariance)) for j, row in enumerate(rows)],
        axis=1,
    )


def softmax_errors(X, heads):
    """‖K − A‖_∞ of every sample, (n,)."""
    worst = np.zeros(len(X))
    for k, head in enumerate(heads):
        scores = head.scores(X)  # (n, p)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        weights[:, k] -= 1
        worst = np.maximum(worst, np.abs(weights).max(axis=1))
    return worst


def frequency_is_kept(errors, epsilon, eta):
    n = len(errors)
    seen = np.mean(errors <= epsilon)
    assert seen >= 1 - eta - 4 * np.sqrt(eta * (1 - eta) / n)
    return seen


def two_classes(rng, d):
    background = Moments(rng.standard_normal(d), np.diag(rng.uniform(0.02, 0.05, d)))
    active = Moments(rng.standard_normal(d), background.covariance + np.eye(d))
    return background, active


@pytest.mark.parametrize("rho", [0.0, 0.6], ids=["independent", "correlated"])
def test_single_head_gaussian_rows(rho):
    rng = np.random.default_rng(20)
    background, active = two_classes(rng, 540)
    radius = gaussian_radius(
        single_head_separator(active, background).W, [active, background], P, ETA
    )
    unit = single_head_separator(active, background)
    interval = temperature_interval(unit.gap, P, EPSILON, unit_radius=radius)
    assert not interval.empty
    tau = interval.high
    found = single_head_separator(active, background, tau)
    verdict = localization_guarantee(found.gap, radius / tau, P, EPSILON, ETA)
    assert verdict.holds
    X = draw_samples(rng, (background, active), 300, P, rho=rho)
    errors = softmax_errors(X, [found])
    frequency_is_kept(errors, EPSILON, ETA)
    frequency_is_kept(errors, verdict.softmax_error, ETA)
    # the radius itself keeps its promise
    deviations = np.abs(found.scores(X) - _centres(found, active, background))
    assert np.mean(deviations.max(axis=1) <= radius / tau) >= 1 - ETA


def _centres(found, active, background):
    means = [np.sum(found.W * row.covariance) for row in (active, background)]
    return np.array([means[0]] + [means[1]] * (P - 1))


@pytest.mark.parametrize("rho", [0.0, 0.5], ids=["independent", "correlated"])
def test_single_head_student_rows_by_moments_only(rho):
    rng = np.random.default_rng(21)
    background, active = two_classes(rng, 320)
    found = single_head_separator(active, background, tau=30.0)
    kurtosis = 6 / (10.0 - 4)
    # A sum of two independent entries has less excess kurtosis than one, so this is an upper bound.
    spread = [score_variance(found.W, row, kurtosis) for row in (active, background)]
    radius = moment_radius([spread[0], *([spread[1]] * (P - 1))], ETA)
    verdict = localization_guarantee(found.gap, radius, P, EPSILON, ETA)
    assert verdict.holds, verdict.reason
    X = draw_samples(rng, (background, active), 300, P, df=10.0, rho=rho)
    frequency_is_kept(softmax_errors(X, [found]), EPSILON, ETA)


@pytest.mark.parametrize(
    ("df", "rho"),
    [(None, 0.0), (8.0, 0.0), (None, 0.6), (8.0, 0.6)],
    ids=["gaussian", "student-t", "gaussian-correlated", "student-t-correlated"],
)
def test_single_head_with_the_tightest_radius(df, rho):
    # Radius measured on other samples, so that the theorem's condition holds with equality and the
    # promised frequency is not met by a mile for free.
    rng = np.random.default_rng(22)
    background, active = two_classes(rng, 60)
    unit = single_head_separator(active, background)
    calibration = unit.scores(draw_samples(rng, (background, active), 4000, P, df, rho))
    deviations = np.abs(calibration - _centres(unit, active, background)).max(axis=1)
    eta = np.mean(deviations > unit.gap / 4) + 0.01
    radius = unit.gap / 4
    assert 0.01 < eta < 0.7
    tau = temperature_interval(unit.gap, P, EPSILON, unit_radius=radius).high
    found = single_head_separator(active, background, tau)
    assert localization_guarantee(found.gap, radius / tau, P, EPSILON, eta).holds
    X = draw_samples(rng, (background, active), 2000, P, df, rho)
    frequency_is_kept(softmax_errors(X, [found]), EPSILON, eta)


@pytest.mark.parametrize("rho", [0.0, 0.5], ids=["independent", "correlated"])
def test_multi_head_gaussian_rows(rho):
    rng = np.random.default_rng(23)
    d = 640
    background = Moments(rng.standard_normal(d), np.diag(rng.uniform(0.01, 0.02, d)))
    own = np.arange(d) < d // 2
    classes = [
        Moments(rng.standard_normal(d), background.covariance + np.diag(np.where(k, 1.0, 0.01)))
        for k in (own, ~own)
    ]
    unit = multi_head_separators(classes, background)
    p, eta = 4, 0.4
    radius = gaussian_radius(unit.W, [background, *classes], p, eta, s=2)
    interval = temperature_interval(unit.gap, p, EPSILON, unit_radius=radius)
    assert not interval.empty, interval.reason
    tau = interval.high
    found = multi_head_separators(classes, background, tau)
    assert localization_guarantee(found.gap, radius / tau, p, EPSILON, eta).holds
    X = draw_samples(rng, (background, *classes), 200, p, rho=rho)
    frequency_is_kept(softmax_errors(X, found.heads), EPSILON, eta)
