"""Simulated data have the distribution they claim."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy.stats import chisquare

from diagatt import simulate
from diagatt.simulate import sampling

COVARIANCE = simulate.ar1(3, 0.6)
CENTER = np.array([0.5, -1.0, 0.3])


def equal(a, b):
    return a.X == b.X and np.array_equal(a.y, b.y) and np.array_equal(a.rows, b.rows)


def active_rows(data, k=0):
    return data.X.values[data.X.offsets[:-1] + data.rows[:, k]].astype(float)


def background_rows(data):
    keep = np.ones(data.X.n_rows, dtype=bool)
    keep[(data.X.offsets[:-1, None] + data.rows).ravel()] = False
    return data.X.values[keep].astype(float)


def assert_moments(rows, mean, covariance, tolerance):
    np.testing.assert_allclose(rows.mean(axis=0), mean, atol=tolerance)
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=2 * tolerance)


@pytest.mark.parametrize("nu", [None, 8.0])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_moments_of_rows(nu, rho):
    data = simulate.regression(
        20000, p=(2, 5), d=3, mu=(2, -1), sigma2=(2, 3), rho=rho, covariance=COVARIANCE,
        center=CENTER, degrees_of_freedom=nu, seed=3,
    )  # fmt: skip
    assert_moments(background_rows(data), CENTER, COVARIANCE, 0.04)
    assert_moments(active_rows(data, 0), 2 * CENTER, 2 * COVARIANCE, 0.1)
    assert_moments(active_rows(data, 1), -CENTER, 3 * COVARIANCE, 0.1)
    pair = np.hstack([active_rows(data, 0), active_rows(data, 1)])
    between = np.cov(pair.T)[:3, 3:]  # Cov(x_j, x_k) = ρ Var(x_j)^½ Var(x_k)^½
    np.testing.assert_allclose(between, rho * np.sqrt(6) * COVARIANCE, atol=0.1)


def test_t_rows_have_heavier_tails_at_the_same_covariance():
    data = simulate.regression(4000, p=5, d=3, degrees_of_freedom=5, seed=0)
    rows = background_rows(data)
    fourth = np.mean((rows - rows.mean(axis=0)) ** 4)
    assert fourth > 5  # 3 for the Gaussian, 9 for five degrees of freedom


def test_samples_are_independent_of_each_other_but_share_a_direction_within():
    data = simulate.regression(5000, p=2, d=2, mu=1, sigma2=1, rho=0.6, seed=0)
    X = data.X.values.reshape(5000, 2, 2)
    assert np.corrcoef(X[:, 0, 0], X[:, 1, 0])[0, 1] == pytest.approx(0.6, abs=0.04)
    assert np.corrcoef(X[:, 0, 0], X[:, 1, 1])[0, 1] == pytest.approx(0.0, abs=0.05)
    assert np.corrcoef(X[:-1, 0, 0], X[1:, 0, 0])[0, 1] == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_response_is_the_sum_over_active_rows(s):
    beta = np.arange(s * 4.0).reshape(s, 4)
    options = {"p": (3, 6), "d": 4, "s": s, "beta": beta, "dtype": np.float64, "seed": 1}
    exact = simulate.regression(500, noise=0, **options)
    expected = sum(active_rows(exact, k) @ beta[k] for k in range(s))
    np.testing.assert_allclose(exact.y, expected)
    noisy = simulate.regression(4000, noise=2.0, **options)
    residual = noisy.y - sum(active_rows(noisy, k) @ beta[k] for k in range(s))
    assert residual.std() == pytest.approx(2.0, abs=0.1)


def test_default_coefficients_and_center_follow_the_paper():
    parameters = simulate.regression(1, p=1, d=2000, seed=2).parameters
    assert parameters.beta.mean() == pytest.approx(1, abs=0.09)
    assert parameters.beta.std() == pytest.approx(1, abs=0.05)
    assert parameters.center.mean() == pytest.approx(0, abs=0.007)
    assert parameters.center.std() == pytest.approx(0.1, abs=0.005)


def test_active_rows_are_distinct_and_every_ordered_choice_equally_likely():
    data = simulate.regression(12000, p=4, d=1, s=3, seed=5)
    assert all(len(set(rows)) == 3 for rows in data.rows.tolist())
    choices = list(itertools.permutations(range(4), 3))
    counts = np.zeros(len(choices))
    for rows in data.rows.tolist():
        counts[choices.index(tuple(rows))] += 1
    assert chisquare(counts).pvalue > 0.001


def test_ragged_lengths_are_uniform_and_rows_stay_inside():
    data = simulate.regression(9000, p=(2, 4), d=1, s=2, seed=6)
    assert chisquare(np.bincount(data.X.lengths)[2:]).pvalue > 0.001
    assert np.all(data.rows < data.X.lengths[:, None])
    assert np.all(data.rows >= 0)


def test_classification_rows_follow_their_class():
    data = simulate.classification(
        20000, p=3, d=3, pi=0.3, mu=(2, -1), sigma2=(2, 3), center=CENTER, seed=1
    )
    assert data.y.mean() == pytest.approx(0.3, abs=0.02)
    assert data.rows.shape == (20000, 1)
    assert_moments(active_rows(data)[data.y == 1], 2 * CENTER, 2 * np.eye(3), 0.1)
    assert_moments(active_rows(data)[data.y == 0], -CENTER, 3 * np.eye(3), 0.1)
    assert_moments(background_rows(data), CENTER, np.eye(3), 0.04)


# ---------------------------------------------------------------------- seeds, draws, memory

PROCESSES = [
    lambda seed: simulate.regression(30, p=(3, 5), d=4, s=2, rho=0.2, seed=seed),
    lambda seed: simulate.classification(30, p=(3, 5), d=4, degrees_of_freedom=5, seed=seed),
    lambda seed: simulate.paper_setting("table1-p100-d70").draw(5, seed=seed),
]


@pytest.mark.parametrize("process", PROCESSES)
def test_seeds_reproduce_and_leave_the_global_state_alone(process):
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    assert equal(process(1), process(1))
    assert not equal(process(1), process(2))
    assert equal(process((1, 2)), process((1, 2)))
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("process", PROCESSES)
def test_draw_keeps_the_population(process):
    train = process(1)
    test = train.draw(11, seed=2)
    assert test.parameters is train.parameters
    assert (len(test.X), test.X.dtype) == (11, train.X.dtype)
    assert not np.isin(test.X.values[:, 0], train.X.values[:, 0]).any()
    assert equal(train.draw(len(train.X), seed=1), train)


def test_blocks_do_not_change_the_draw(monkeypatch):
    def make():
        return simulate.regression(
            40, p=(2, 6), d=3, s=2, rho=0.3, covariance=COVARIANCE, degrees_of_freedom=4,
            dtype=np.float64, seed=4,
        )  # fmt: skip

    whole = make()
    monkeypatch.setattr(sampling, "_BLOCK_ELEMENTS", 21)  # blocks of 7 rows cut through samples
    np.testing.assert_allclose(make().X.values, whole.X.values, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_of_rows_and_response(dtype):
    data = simulate.regression(5, p=3, d=2, dtype=dtype)
    assert data.X.dtype == data.y.dtype == dtype
    assert simulate.classification(5, p=3, d=2, dtype=dtype).y.dtype == np.int64


def test_rows_are_drawn_where_they_stand():
    covariance = simulate.ar1(70, 0.5)
    tracemalloc.start()
    data = simulate.regression(4000, rho=0.3, covariance=covariance, degrees_of_freedom=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.25 * data.X.nbytes  # a float64 copy would take 3, a second copy 2
