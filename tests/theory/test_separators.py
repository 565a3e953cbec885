"""One head: identities of every construction, over random moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.theory import (
    Moments,
    SeparationError,
    envelope,
    score_gap,
    second_moment_separator,
    single_head_envelope_separator,
    single_head_separator,
    single_head_subspace_separator,
)
from tests.theory.draws import above, annihilates, check_shape, scales, seeds, spd, taus

PROPERTY = settings(max_examples=60)


@PROPERTY
@given(seed=seeds, d=st.integers(3, 25), scale=scales, mean_scale=scales, tau=taus)
def test_single_head_identities(seed, d, scale, mean_scale, tau):
    rng = np.random.default_rng(seed)
    background = Moments(mean_scale * rng.standard_normal(d), scale * spd(rng, d))
    active = Moments(
        mean_scale * rng.standard_normal(d), background.covariance + scale * spd(rng, d)
    )
    found = single_head_separator(active, background, tau)
    check_shape(found, d)
    annihilates(found.W, [active.mean, background.mean])
    assert found.exact
    assert found.rank == d - 2
    contrast = active.covariance - background.covariance
    assert np.sum(found.W * contrast) == pytest.approx((d - 2) / tau, rel=1e-8)
    assert found.gap == pytest.approx((d - 2) / tau, rel=1e-12)


@PROPERTY
@given(seed=seeds, d=st.integers(3, 15), case=st.sampled_from(["zero", "equal", "collinear"]))
def test_single_head_counts_the_rank_of_the_means(seed, d, case):
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(d)
    first, second = {
        "zero": (np.zeros(d), np.zeros(d)),
        "equal": (mean, mean),
        "collinear": (mean, -1e4 * mean),
    }[case]
    base = spd(rng, d)
    found = single_head_separator(Moments(first, base + spd(rng, d)), Moments(second, base))
    assert found.mean_rank == (0 if case == "zero" else 1)
    assert found.gap == d - found.mean_rank
    annihilates(found.W, [first, second])


@PROPERTY
@given(seed=seeds, d=st.integers(6, 20), tau=taus)
def test_subspace_identities(seed, d, tau):
    rng = np.random.default_rng(seed)
    background = Moments(rng.standard_normal(d), spd(rng, d, 1.0, 2.0))
    signs = np.where(np.arange(d) < d - 2, 1.0, -0.5)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    active = Moments(rng.standard_normal(d), background.covariance + (basis * signs) @ basis.T)
    with pytest.raises(SeparationError) as refusal:
        single_head_separator(active, background, tau)
    assert refusal.value.condition == "Δ_Σ = Σ₁ − Σ₀ ≻ 0"
    assert refusal.value.value == pytest.approx(-0.5)
    assert "-0.5" in str(refusal.value)
    U = refusal.value.suggestion
    assert U.shape == (d, d - 2)
    found = single_head_subspace_separator(active, background, U, tau)
    check_shape(found, d)
    annihilates(found.W, [active.mean, background.mean])
    assert found.gap == pytest.approx((d - 4) / tau)
    assert score_gap(found.W, active, [background]) == pytest.approx(found.gap, rel=1e-8)
    # the whole space as a subspace is the full construction, in any basis
    strong = above(rng, background)
    whole = single_head_subspace_separator(strong, background, 3 * basis, tau)
    full = single_head_separator(strong, background, tau)
    np.testing.assert_allclose(whole.W, full.W, atol=1e-8 * full.operator_norm)


@PROPERTY
@given(seed=seeds, d=st.integers(4, 15), kinds=st.integers(1, 4), tau=taus)
def test_heterogeneous_backgrounds(seed, d, kinds, tau):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((kinds, d))
    kinds_of_rows = [Moments(mean, spd(rng, d)) for mean in means]
    upper = envelope([row.second_moment for row in kinds_of_rows])
    for row in kinds_of_rows:
        assert np.linalg.eigvalsh(upper - row.second_moment)[0] >= -1e-9
    active = Moments(rng.standard_normal(d), upper + spd(rng, d))
    found = second_moment_separator(active, upper, tau)
    check_shape(found, d)
    assert not found.exact
    assert found.gap == pytest.approx(d / tau)
    assert score_gap(found.W, active, kinds_of_rows) >= found.gap * (1 - 1e-8)

    cover = envelope([row.covariance for row in kinds_of_rows])
    active = Moments(rng.standard_normal(d), cover + spd(rng, d))
    if kinds + 1 < d:
        found = single_head_envelope_separator(active, cover, list(means), tau)
        annihilates(found.W, [active.mean, *means])
        assert found.gap == pytest.approx((d - kinds - 1) / tau)
        assert score_gap(found.W, active, kinds_of_rows) >= found.gap * (1 - 1e-8)
