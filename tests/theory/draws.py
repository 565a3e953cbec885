"""Random moments and random rows, shared by the theory tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from diagatt.theory import Moments


def spd(rng: np.random.Generator, d: int, low: float = 0.3, high: float = 3.0) -> np.ndarray:
    """Symmetric matrix with eigenvalues between low and high in a random basis."""
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (basis * rng.uniform(low, high, d)) @ basis.T


def above(rng: np.random.Generator, background: Moments, mean_scale: float = 1.0) -> Moments:
    """A class whose covariance exceeds the background's in every direction."""
    d = background.n_features
    mean = mean_scale * rng.standard_normal(d)
    return Moments(mean, background.covariance + spd(rng, d))


def blocks(
    rng: np.random.Generator, s: int, size: int, strength: float = 20.0, mean_scale: float = 1.0
):
    """s classes, each strong on its own block of directions, in a random basis."""
    d = s * size
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    background = Moments(mean_scale * rng.standard_normal(d), spd(rng, d))
    classes = []
    for k in range(s):
        extra = np.full(d, 0.2)
        extra[k * size : (k + 1) * size] += strength
        cov = background.covariance + (basis * extra) @ basis.T
        classes.append(Moments(mean_scale * rng.standard_normal(d), cov))
    return classes, background


def entries(rng: np.random.Generator, shape: tuple[int, ...], df: float | None) -> np.ndarray:
    """Independent entries of mean 0 and variance 1: Gaussian, or Student t with df > 2."""
    if df is None:
        return rng.standard_normal(shape)
    return rng.standard_t(df, shape) * np.sqrt((df - 2) / df)


def sample_rows(rng: np.random.Generator, row: Moments, n: int, df: float | None = None):
    """n rows with the given moments, (n, d)."""
    values, vectors = np.linalg.eigh(row.covariance)
    root = vectors * np.sqrt(np.clip(values, 0, None))
    return row.mean + entries(rng, (n, row.n_features), df) @ root.T


seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3])
taus = st.floats(0.05, 50.0)


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
