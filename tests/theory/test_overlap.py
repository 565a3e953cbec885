"""Spectral overlap and its closed families."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.theory import (
    analytic_family,
    analytic_overlap,
    contrast_overlap,
    interlacing_bounds,
    preprojection_average,
    shared_specific_family,
    shared_specific_spectrum,
    spectral_overlap,
)
from tests.theory.draws import blocks, seeds, spd

PROPERTY = settings(max_examples=40)


@PROPERTY
@given(seed=seeds, s=st.integers(2, 4), r=st.integers(2, 6), data=st.data())
def test_fast_spectrum_equals_the_dense_one(seed, s, r, data):
    r_cs = data.draw(st.integers(0, r))
    rng = np.random.default_rng(seed)
    d = s * r
    means = rng.standard_normal((d, min(s + 1, d - r)))
    dense = contrast_overlap(shared_specific_family(d, s, r_cs, 1.0, 0.05), means, d_star=r)
    for k, head in enumerate(dense.heads):
        fast = shared_specific_spectrum(means, s, r_cs, k, 1.0, 0.05)
        np.testing.assert_allclose(fast, head.eigenvalues, rtol=1e-8, atol=1e-8)
        assert head.gamma_pre == pytest.approx(preprojection_average(r_cs / r, s, 1.0, 0.05))


@PROPERTY
@given(seed=seeds, s=st.integers(2, 4), size=st.integers(5, 8))
def test_interlacing_holds(seed, s, size):
    rng = np.random.default_rng(seed)
    classes, background = blocks(rng, s, size, strength=3.0)
    for head in spectral_overlap(classes, background, d_star=2).heads:
        assert head.mean_rank == s + 1
        assert head.gamma_pre - 1e-9 <= head.gamma_bar <= head.upper + 1e-9


@PROPERTY
@given(seed=seeds, s=st.integers(2, 5), b=st.floats(0.01, 2), excess=st.floats(0.01, 5))
def test_analytic_family(seed, s, b, excess):
    a = (s - 2) * b + excess
    deltas = analytic_family(4 * s + 1, s, a, b, seed=seed)
    found = contrast_overlap(deltas)
    assert found.gamma_max == pytest.approx(analytic_overlap(s, a, b), rel=1e-8)
    assert found.holds
    with pytest.raises(ValueError, match="condition fails"):
        analytic_overlap(s + 1, (s - 1) * b * 0.999, b)


def test_shared_endpoint_fails_whatever_the_means():
    rng = np.random.default_rng(4)
    found = contrast_overlap([spd(rng, 12)] * 3, rng.standard_normal((12, 4)))
    assert found.gamma_max == pytest.approx(2.0)
    assert not found.identifiable.any()


def test_rotation_changes_nothing():
    rng = np.random.default_rng(5)
    means = rng.standard_normal((12, 3))
    basis = np.linalg.qr(np.random.default_rng(8).standard_normal((12, 12)))[0]
    straight = contrast_overlap(shared_specific_family(12, 3, 2), means)
    rotated = contrast_overlap(shared_specific_family(12, 3, 2, seed=8), basis @ means)
    assert straight.gamma_max == pytest.approx(rotated.gamma_max, rel=1e-9)


def test_bad_arguments():
    with pytest.raises(ValueError, match="divisible"):
        shared_specific_family(10, 3, 1)
    with pytest.raises(ValueError, match="two"):
        contrast_overlap([np.eye(2)])
    with pytest.raises(ValueError, match="directions left"):
        contrast_overlap([np.eye(3)] * 2, d_star=4)
    with pytest.raises(ValueError, match="d\\*"):
        interlacing_bounds([1.0, 2.0], 1, 2)
    with pytest.raises(ValueError, match="c_eps"):
        shared_specific_family(4, 2, 1, c_eps=0.0)
