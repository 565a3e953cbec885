"""The lemma, sufficient gaps and radii."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.theory import (
    Moments,
    gaussian_radius,
    hanson_wright_tail,
    localization_guarantee,
    moment_radius,
    softmax_error_bound,
    subgaussian_radius,
    sufficient_dimension,
    sufficient_gap,
)
from tests.theory.draws import sample_rows, seeds, spd

PROPERTY = settings(max_examples=200)


@PROPERTY
@given(
    seed=seeds,
    p=st.integers(1, 30),
    gap=st.floats(1e-3, 60),
    radius=st.floats(0, 20),
    extreme=st.booleans(),
)
def test_the_lemma_is_never_violated(seed, p, gap, radius, extreme):
    rng = np.random.default_rng(seed)
    target = rng.integers(p)
    centres = rng.uniform(-gap - 50, -gap, p)
    centres[target] = 0.0
    noise = rng.uniform(-radius, radius, p)
    if extreme:  # the least favourable scores: every competitor at the gap, pushed together
        centres[:] = -gap
        centres[target] = 0.0
        noise = np.full(p, radius)
        noise[target] = -radius
    z = centres + noise
    weights = np.exp(z - z.max())
    weights /= weights.sum()
    weights[target] -= 1
    error = np.abs(weights).max()
    assert error <= softmax_error_bound(gap, radius, p) * (1 + 1e-9) + 1e-12
    for epsilon in (0.3, 0.05, 1e-3):
        if p > 1 and gap >= sufficient_gap(radius, p, epsilon):
            assert error <= epsilon * (1 + 1e-9)
        if p > 1 and gap >= sufficient_gap(radius, p, epsilon, sharp=True):
            assert error <= epsilon * (1 + 1e-9)


@PROPERTY
@given(radius=st.floats(0, 50), p=st.integers(1, 500), epsilon=st.floats(1e-6, 0.99))
def test_the_sharp_gap_is_never_larger(radius, p, epsilon):
    assert sufficient_gap(radius, p, epsilon, sharp=True) <= sufficient_gap(radius, p, epsilon) * (
        1 + 1e-12
    )


def test_guarantee_names_what_fails():
    good = localization_guarantee(31.2, 6.15, 100, 0.01, 0.05)
    assert good.holds
    assert good.needed == pytest.approx(24.6)
    noisy = localization_guarantee(20.0, 6.15, 100, 0.01, 0.05)
    assert not noisy.fluctuation_holds
    assert "no temperature" in noisy.reason
    warm = localization_guarantee(10.0, 1.0, 100, 0.01, 0.05)
    assert warm.fluctuation_holds
    assert not warm.softmax_holds
    factor = sufficient_gap(0.0, 100, 0.01) / 10.0
    assert localization_guarantee(10.0 * factor, 1.0 * factor, 100, 0.01, 0.05).holds
    assert f"{factor:.4g}" in warm.reason
    assert not localization_guarantee(-1.0, 0.0, 2, 0.5, 0.05).holds
    assert localization_guarantee(1.0, 0.1, 1, 0.01, 0.05).holds  # one row: nothing to confuse


@PROPERTY
@given(
    q=st.integers(1, 2000),
    lam=st.floats(0.1, 10),
    K=st.floats(0.1, 3),
    p=st.integers(1, 1000),
    s=st.integers(1, 10),
    eta=st.floats(1e-4, 0.5),
    C=st.floats(0.1, 3),
)
def test_subgaussian_radius_inverts_the_tail_and_cancels_temperature(q, lam, K, p, s, eta, C):
    radius = subgaussian_radius(q, lam, K, p, eta, s=s, C=C)
    assert subgaussian_radius(q, lam, K, p, eta, s=s, C=C, tau=4.0) == pytest.approx(radius / 4)
    # With c = 1 and C = 1 the radius makes the tail of one score at most η/(s p).
    exact = subgaussian_radius(q, lam, K, p, eta, s=s)
    assert s * p * hanson_wright_tail(exact, q, lam, K) <= eta * (1 + 1e-9) or s * p * 1.0 <= eta


@PROPERTY
@given(
    lam=st.floats(0.2, 10),
    K=st.floats(0.2, 2),
    p=st.integers(2, 1000),
    gamma=st.floats(0, 0.9),
    s=st.integers(1, 5),
    C=st.floats(0.05, 1),
)
def test_sufficient_dimension_is_the_smallest(lam, K, p, gamma, s, C):
    q = sufficient_dimension(lam, K, p, 0.05, gamma_max=gamma, s=s, C=C)
    for size, enough in ((q, True), (q - 1, False)):
        if size < 1:
            continue
        margin = size * (1 - gamma) - 4 * subgaussian_radius(size, lam, K, p, 0.05, s=s, C=C)
        assert (margin >= -1e-6 * size) if enough else (margin < 1e-6 * size)


def test_gaussian_radius_covers_gaussian_scores():
    rng = np.random.default_rng(3)
    row = Moments(rng.standard_normal(15), spd(rng, 15))
    W = rng.standard_normal((15, 15))  # neither symmetric nor positive
    x = sample_rows(rng, row, 40_000)
    scores = np.einsum("ij,ij->i", x @ W, x)
    centre = np.sum(W * row.covariance) + row.mean @ W @ row.mean
    for eta in (0.5, 0.1, 0.01):
        radius = gaussian_radius(W, [row], 1, eta)
        assert np.mean(np.abs(scores - centre) > radius) <= eta


def test_gaussian_radius_in_closed_form():
    # W = I, Σ = 4I, mean m: A = 4I, V = 16 d + 2·4·‖m‖², t = log(2 s p/η)
    row = Moments([3.0, 0.0, 4.0], 4 * np.eye(3))
    t = np.log(2 * 2 * 7 / 0.1)
    expected = 2 * np.sqrt(t * (16 * 3 + 8 * 25)) + 2 * t * 4
    assert gaussian_radius(np.eye(3), [row], 7, 0.1, s=2) == pytest.approx(expected)
    assert gaussian_radius(np.stack([np.eye(3)] * 2), [row], 7, 0.1) == pytest.approx(expected)


def test_radius_arguments_are_checked():
    row = Moments([0.0], [[1.0]])
    with pytest.raises(ValueError, match="eta"):
        gaussian_radius([[1.0]], [row], 10, 1.5)
    with pytest.raises(ValueError, match="p_max"):
        subgaussian_radius(3, 1.0, 1.0, 0, 0.1)
    with pytest.raises(ValueError, match="variances"):
        moment_radius([-1.0], 0.1)
    with pytest.raises(ValueError, match="radius"):
        softmax_error_bound(1.0, -1.0, 3)
    with pytest.raises(ValueError, match="epsilon"):
        sufficient_gap(1.0, 3, 0.0)
    with pytest.raises(ValueError, match="γ̄"):
        sufficient_dimension(1.0, 1.0, 10, 0.1, gamma_max=1.0)
