"""Separating matrices: identities of every construction, over random moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.theory import (
    Moments,
    SeparationError,
    envelope,
    informative_subspace,
    multi_head_envelope_separators,
    multi_head_separators,
    multi_head_subspace_separators,
    score_gap,
    second_moment_separator,
    single_head_envelope_separator,
    single_head_separator,
    single_head_subspace_separator,
)
from tests.theory.draws import above, blocks, scales, seeds, spd, taus

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


def check_shape(found, d):
    assert found.W.shape == (d, d)
    np.testing.assert_array_equal(found.W, found.W.T)
    np.testing.assert_allclose(found.W, found.L @ found.L.T, rtol=1e-12, atol=0)
    assert found.rank == found.L.shape[1] == np.linalg.matrix_rank(found.L)
    norm = np.linalg.norm(found.W, 2)
    assert found.operator_norm == pytest.approx(norm, rel=1e-9)
    assert norm <= found.operator_norm_bound * (1 + 1e-9)


def annihilates(W, means):
    for mean in means:
        size = np.linalg.norm(W, 2) * max(np.linalg.norm(mean), 1e-300)
        assert np.linalg.norm(W @ mean) <= 1e-8 * size


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


@PROPERTY
@given(seed=seeds, s=st.integers(2, 4), size=st.integers(6, 9), tau=taus)
def test_multi_head_identities(seed, s, size, tau):
    classes, background = blocks(np.random.default_rng(seed), s, size)
    try:
        found = multi_head_separators(classes, background, tau)
    except SeparationError:
        found = multi_head_separators(classes, background, tau, d_star="best")
    means = [background.mean, *(c.mean for c in classes)]
    for k, head in enumerate(found.heads):
        check_shape(head, s * size)
        annihilates(head.W, means)
        rivals = [c for j, c in enumerate(classes) if j != k]
        assert score_gap(head.W, classes[k], [background]) == pytest.approx(
            head.d_star / tau, rel=1e-8
        )
        exact = score_gap(head.W, classes[k], rivals)
        assert exact == pytest.approx(head.signal_gap, rel=1e-7)
        assert exact >= head.signal_gap_bound - 1e-8 * head.background_gap
        assert head.signal_gap_bound == pytest.approx(
            head.d_star * (1 - head.gamma_bar) / tau, rel=1e-12
        )
        if s == 2:  # one rival is the whole interference: the bound is the gap
            assert exact == pytest.approx(head.signal_gap_bound, rel=1e-7)
    assert found.gap == min(h.gap for h in found.heads)
    assert found.W.shape == (s, s * size, s * size)


@PROPERTY
@given(seed=seeds, tau=taus)
def test_multi_head_envelope(seed, tau):
    rng = np.random.default_rng(seed)
    classes, base = blocks(rng, 2, 8)
    means = [base.mean, rng.standard_normal(16)]
    kinds = [Moments(mean, 0.5 * (1 + f) * base.covariance) for f, mean in enumerate(means)]
    cover = envelope([row.covariance for row in kinds])
    found = multi_head_envelope_separators(classes, cover, means, tau, d_star="best")
    for k, head in enumerate(found.heads):
        annihilates(head.W, [*means, *(c.mean for c in classes)])
        assert not head.background_exact
        assert score_gap(head.W, classes[k], kinds) >= head.background_gap * (1 - 1e-8)
        assert score_gap(head.W, classes[k], [classes[1 - k]]) >= head.signal_gap_bound * (1 - 1e-7)


@PROPERTY
@given(seed=seeds, tau=taus)
def test_multi_head_subspaces_even_where_rivals_vary_less_than_background(seed, tau):
    # Rivals may have negative contrast inside a head's subspace, where summing contrasts
    # as they stand would overstate the gap.
    rng = np.random.default_rng(seed)
    s, d = 3, 21
    background = Moments(rng.standard_normal(d), 4 * np.eye(d))
    classes, bases = [], []
    for k in range(s):
        own = np.arange(d) // 7 == k
        extra = np.where(own, 10.0, rng.uniform(-3.0, 3.0, d))
        classes.append(Moments(rng.standard_normal(d), background.covariance + np.diag(extra)))
        bases.append(np.eye(d)[:, own])
    found = multi_head_subspace_separators(classes, background, bases, tau)
    means = [background.mean, *(c.mean for c in classes)]
    for k, head in enumerate(found.heads):
        check_shape(head, d)
        annihilates(head.W, means)
        assert head.d_star == 7 - 4
        assert score_gap(head.W, classes[k], [background]) == pytest.approx(
            head.background_gap, rel=1e-8
        )
        rivals = [c for j, c in enumerate(classes) if j != k]
        assert score_gap(head.W, classes[k], rivals) >= head.signal_gap_bound * (1 - 1e-8)


def test_whole_space_bases_give_the_full_multi_head_construction():
    classes, background = blocks(np.random.default_rng(1), 2, 8)
    full = multi_head_separators(classes, background, d_star=4)
    lifted = multi_head_subspace_separators(classes, background, [None, np.eye(16)], d_star=4)
    np.testing.assert_allclose(lifted.W, full.W, atol=1e-10)


def test_refusals_name_condition_number_and_head():
    rng = np.random.default_rng(0)
    background = Moments(np.zeros(6), np.eye(6))
    strong = Moments(np.zeros(6), 3 * np.eye(6))
    weak = Moments(np.zeros(6), np.diag([3.0, 3.0, 3.0, 3.0, 3.0, 0.5]))
    with pytest.raises(SeparationError, match=r"head 1: smallest eigenvalue -0\.5") as refusal:
        multi_head_separators([strong, weak], background)
    assert refusal.value.head == 1
    assert refusal.value.suggestion.shape == (6, 5)

    with pytest.raises(SeparationError, match="γ̄") as refusal:
        multi_head_separators([strong, strong], background)
    assert refusal.value.condition == "γ̄* < 1"
    assert refusal.value.value == pytest.approx(1.0)

    classes, base = blocks(rng, 2, 2)  # d = 4: the means leave one direction, d* = 2
    with pytest.raises(SeparationError, match="exceeds d_k = 1") as refusal:
        multi_head_separators(classes, base)
    assert refusal.value.condition == "d* ≤ d_k"

    with pytest.raises(SeparationError, match="rank Z = 2") as refusal:
        single_head_separator(Moments([1.0, 0.0], 2 * np.eye(2)), Moments([0.0, 1.0], np.eye(2)))
    assert refusal.value.condition == "rank(Z) < dimension"

    with pytest.raises(SeparationError, match="no subspace helps") as refusal:
        single_head_separator(background, strong)
    assert refusal.value.suggestion is None

    with pytest.raises(SeparationError, match="more classes than features"):
        multi_head_separators([Moments([0.0], [[2.0]])] * 2, Moments([0.0], [[1.0]]))


def test_refused_second_moments_suggest_a_subspace_that_works():
    active = Moments([3.0, 0.0, 0.0], np.eye(3))
    with pytest.raises(SeparationError) as refusal:
        second_moment_separator(active, np.diag([1.0, 1.0, 2.0]))
    assert refusal.value.condition == "Δ_M = M₁ − M̄₀ ≻ 0"
    found = second_moment_separator(
        active, np.diag([1.0, 1.0, 2.0]), basis=refusal.value.suggestion
    )
    assert found.gap == 1.0


def test_bad_input_is_refused_by_name():
    row = Moments(np.zeros(3), np.eye(3))
    with pytest.raises(ValueError, match="tau must be a positive number"):
        single_head_separator(Moments(np.zeros(3), 2 * np.eye(3)), row, tau=0.0)
    with pytest.raises(ValueError, match="not symmetric"):
        Moments(np.zeros(2), [[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="negative eigenvalue"):
        Moments(np.zeros(2), np.diag([1.0, -1.0]))
    with pytest.raises(ValueError, match="NaN"):
        Moments(np.zeros(2), np.diag([1.0, np.nan]))
    with pytest.raises(ValueError, match="dependent columns"):
        single_head_subspace_separator(row, row, np.ones((3, 2)))
    with pytest.raises(ValueError, match="one class"):
        multi_head_separators([row], row)
    with pytest.raises(ValueError, match="not positive definite"):
        informative_subspace(np.eye(2), np.diag([1.0, -1.0]))


def test_results_are_frozen():
    found = single_head_separator(
        Moments(np.zeros(3), 2 * np.eye(3)), Moments(np.zeros(3), np.eye(3))
    )
    with pytest.raises(AttributeError):
        found.gap = 1.0
