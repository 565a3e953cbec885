"""R and the Kronecker identities against definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagatt.images import (
    coefficient_matrices,
    kronecker_sum,
    rearrange,
    restore,
)

sides = st.tuples(*[st.integers(1, 4)] * 4)  # p₁, p₂, d₁, d₂
seeds = st.integers(0, 2**32 - 1)


def vec(matrix):
    """Columns one below the other."""
    return np.concatenate(list(matrix.T))


def written_out(image, d1, d2):
    """The paper's R: blocks (1,1), …, (p₁,1), …, (p₁,p₂), columns of each below one another."""
    rows = []
    for left in range(0, image.shape[1], d2):
        for top in range(0, image.shape[0], d1):
            block = image[top : top + d1, left : left + d2]
            rows.append([block[a, b] for b in range(d2) for a in range(d1)])
    return np.array(rows)


@given(sides, seeds)
def test_r_is_the_papers(sides, seed):
    p1, p2, d1, d2 = sides
    image = np.random.default_rng(seed).normal(size=(p1 * d1, p2 * d2))
    np.testing.assert_array_equal(rearrange(image, (d1, d2)), written_out(image, d1, d2))


@given(sides, seeds, st.integers(1, 3))
def test_kronecker_identities(sides, seed, s):
    p1, p2, d1, d2 = sides
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(p1 * d1, p2 * d2))
    U, V = rng.normal(size=(s, p1, p2)), rng.normal(size=(s, d1, d2))
    C = kronecker_sum(U, V)
    np.testing.assert_allclose(C, sum(np.kron(u, v) for u, v in zip(U, V, strict=True)), atol=1e-12)
    alpha, beta = np.stack([vec(u) for u in U]), np.stack([vec(v) for v in V])
    np.testing.assert_allclose(rearrange(C, (d1, d2)), alpha.T @ beta, rtol=0, atol=1e-12)
    left, right = np.vdot(X, C), np.vdot(rearrange(X, (d1, d2)), rearrange(C, (d1, d2)))
    assert abs(left - right) <= 1e-12 * max(1, abs(left))
    rows = rearrange(X, (d1, d2))
    assert abs(left - np.einsum("kj,jf,kf->", alpha, rows, beta)) <= 1e-12 * max(1, abs(left))


@given(sides, seeds, st.integers(1, 3))
def test_r_has_an_inverse_and_keeps_channels_apart(sides, seed, channels):
    p1, p2, d1, d2 = sides
    image = np.random.default_rng(seed).normal(size=(p1 * d1, p2 * d2, channels))
    rows = rearrange(image, (d1, d2))
    each = [written_out(image[..., c], d1, d2) for c in range(channels)]
    np.testing.assert_array_equal(rows, np.hstack(each))
    back = restore(rows, image.shape[:2], (d1, d2))
    np.testing.assert_array_equal(back, image[..., 0] if channels == 1 else image)


def test_colour_coefficients_are_one_matrix_a_channel():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(2, 3, 4, 3))
    beta = np.stack([np.concatenate([vec(v[..., c]) for c in range(3)]) for v in V])
    np.testing.assert_array_equal(coefficient_matrices(beta, (3, 4)), V)
    U = rng.normal(size=(2, 2, 2))
    C = kronecker_sum(U, V)
    for c in range(3):
        np.testing.assert_allclose(C[..., c], kronecker_sum(U, V[..., c]), atol=1e-12)


def test_class_axis_of_values_is_kept():
    values = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    matrices = coefficient_matrices(values, 2)
    assert matrices.shape == (2, 3, 2, 2)
    np.testing.assert_array_equal(vec(matrices[1, 2]), values[1, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rearrange(np.ones((5, 4)), 2), "5×4 pixels, which patches of 2×2"),
        (lambda: restore(np.ones((3, 4)), (4, 4), 2), "has 4 rows of 4 pixels"),
        (lambda: coefficient_matrices(np.ones((1, 5)), 2), "do not hold whole patches"),
        (lambda: kronecker_sum(np.ones((1, 2, 2)), np.ones((2, 2, 2))), "do not pair"),
    ],
)
def test_shapes_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()
