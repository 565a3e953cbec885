"""Several heads: identities of every construction, over random moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.theory import (
    Moments,
    SeparationError,
    envelope,
    multi_head_envelope_separators,
    multi_head_separators,
    multi_head_subspace_separators,
    score_gap,
)
from tests.theory.draws import annihilates, blocks, check_shape, seeds, taus

PROPERTY = settings(max_examples=60)


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
    assert found.lambda_min == min(h.lambda_min for h in found.heads)
    assert found.gamma_max < 1
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


def test_subspace_bound_where_the_sum_of_contrasts_would_promise_too_much():
    # Inside head 0's subspace the rivals' contrasts are +3 and −3: their sum is 0, which would
    # promise a gap of d*, but the first rival alone takes 3/10 of it.
    d, axes = 6, np.eye(6)
    background = Moments(np.zeros(d), 4 * np.eye(d))
    inside = np.arange(d) < 2

    def row(level):
        return Moments(np.zeros(d), np.diag(np.where(inside, 4.0 + level, 14.0)))

    classes = [row(10.0), row(3.0), row(-3.0)]
    bases = [axes[:, :2], axes[:, 2:], axes[:, 2:]]
    with pytest.raises(SeparationError):  # heads 1 and 2 are equal outside
        multi_head_subspace_separators(classes, background, bases)
    classes[1:] = [
        Moments(np.zeros(d), c.covariance + np.diag(40.0 * (np.arange(d) // 2 == k)))
        for k, c in enumerate(classes[1:], start=1)
    ]
    bases = [axes[:, :2], axes[:, 2:4], axes[:, 4:]]
    head = multi_head_subspace_separators(classes, background, bases).heads[0]
    assert head.d_star == 2
    assert head.gamma_bar == pytest.approx(0.3)
    assert score_gap(head.W, classes[0], [classes[1]]) == pytest.approx(head.signal_gap_bound)


def test_whole_space_bases_give_the_full_multi_head_construction():
    classes, background = blocks(np.random.default_rng(1), 2, 8)
    full = multi_head_separators(classes, background, d_star=4)
    lifted = multi_head_subspace_separators(classes, background, [None, np.eye(16)], d_star=4)
    np.testing.assert_allclose(lifted.W, full.W, atol=1e-10)
