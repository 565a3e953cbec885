"""The oracle equals brute force."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import chi2, multivariate_normal, multivariate_t

from diagatt import metrics, simulate
from diagatt.simulate import sampling
from diagatt.simulate.oracle import log_density_ratio, placement_posterior

COVARIANCE = simulate.ar1(3, 0.6)
CENTER = np.array([0.5, -1.0, 0.3])


def brute_force_placements(log_weights):
    """Marginals by enumerating every ordered choice of distinct rows."""
    p, s = log_weights.shape
    choices = list(itertools.permutations(range(p), s))
    logs = [sum(log_weights[j, k] for k, j in enumerate(choice)) for choice in choices]
    probabilities = np.exp(np.array(logs) - logsumexp(logs))
    marginals = np.zeros((p, s))
    for choice, probability in zip(choices, probabilities, strict=True):
        marginals[list(choice), range(s)] += probability
    return marginals


@pytest.mark.parametrize("s", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_placements_equal_enumeration(s, scale, monkeypatch):
    monkeypatch.setattr("diagatt.simulate.oracle._BLOCK_STATES", 2**s * 20)
    rng = np.random.default_rng(s)
    lengths = rng.integers(s, 7, size=25)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    weights = scale * rng.normal(size=(offsets[-1], s))
    posterior = placement_posterior(weights, offsets)
    for start, stop in itertools.pairwise(offsets):
        expected = brute_force_placements(weights[start:stop])
        np.testing.assert_allclose(posterior[start:stop], expected, rtol=1e-10, atol=1e-10)


def test_heads_that_want_the_same_row_do_not_underflow():
    weights = np.full((5, 2), -2000.0)
    weights[2] = 3000.0  # the best placement is e^5000 below the product of the two maxima
    posterior = placement_posterior(weights, np.array([0, 5]))
    np.testing.assert_allclose(posterior[2], 0.5, atol=1e-10)
    np.testing.assert_allclose(posterior.sum(axis=0), 1.0)


def joint_log_density(X, rows, components, parameters):
    """Log density of one sample with the given rows active, from scipy's multivariate normal."""
    p = len(X)
    mu, sigma = np.ones(p), np.ones(p)
    mu[rows] = parameters.mu[components]
    sigma[rows] = np.sqrt(parameters.sigma2[components])
    between = np.where(np.eye(p) == 1, 1.0, parameters.rho) * np.outer(sigma, sigma)
    mean, covariance = np.kron(mu, parameters.center), np.kron(between, parameters.covariance)
    return multivariate_normal(mean, covariance).logpdf(X.ravel())


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("covariance", [None, COVARIANCE])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_head_oracle_equals_the_joint_density(rho, covariance, dtype, monkeypatch):
    monkeypatch.setattr(sampling, "_BLOCK_ELEMENTS", 21)
    data = simulate.regression(
        12, p=(1, 5), d=3, sigma2=1.5, rho=rho, covariance=covariance, center=CENTER,
        dtype=dtype, seed=7,
    )  # fmt: skip
    oracle = data.oracle()
    for i, X in enumerate(data.X):
        X = X.astype(np.float64)
        logs = [joint_log_density(X, [j], [0], data.parameters) for j in range(len(X))]
        posterior = np.exp(logs - logsumexp(logs))
        here = slice(*data.X.offsets[i : i + 2])
        np.testing.assert_allclose(oracle.attention[here, 0], posterior, atol=1e-10)
        assert oracle.rows[i, 0] == np.argmax(posterior)
        fitted = X @ data.parameters.beta[0]
        assert oracle.prediction[i] == pytest.approx(posterior @ fitted, abs=1e-10)


@pytest.mark.parametrize("s", [2, 3])
def test_several_heads_oracle_equals_the_joint_density(s):
    data = simulate.regression(
        8, p=(s, 6), d=3, s=s, mu=(1, 4, -4)[:s], sigma2=(3, 2, 2)[:s], covariance=COVARIANCE,
        center=CENTER, dtype=np.float64, seed=8,
    )  # fmt: skip
    oracle, parameters = data.oracle(), data.parameters
    for i, X in enumerate(data.X):
        choices = list(itertools.permutations(range(len(X)), s))
        logs = [joint_log_density(X, list(c), range(s), parameters) for c in choices]
        posterior = np.exp(logs - logsumexp(logs))
        means = [sum(X[j] @ parameters.beta[k] for k, j in enumerate(c)) for c in choices]
        assert oracle.prediction[i] == pytest.approx(posterior @ np.array(means), abs=1e-9)
        overlap = {  # expected number of active rows in every candidate set
            located: sum(
                q * len({*c} & {*located}) for q, c in zip(posterior, choices, strict=True)
            )
            for located in itertools.combinations(range(len(X)), s)
        }
        chosen = tuple(sorted(oracle.rows[i].tolist()))
        assert overlap[chosen] == pytest.approx(max(overlap.values()), abs=1e-10)


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_classification_oracle_equals_the_joint_density(rho):
    data = simulate.classification(
        12, p=(1, 5), d=3, pi=0.3, mu=(1.5, -1), sigma2=(2, 1.5), rho=rho, center=CENTER,
        dtype=np.float64, seed=9,
    )  # fmt: skip
    oracle = data.oracle()
    for i, X in enumerate(data.X):
        logs = np.array([
            [joint_log_density(X, [j], [c], data.parameters) for c in (0, 1)]
            for j in range(len(X))
        ]) + np.log([0.3, 0.7])  # fmt: skip
        joint = np.exp(logs - logsumexp(logs))
        here = slice(*data.X.offsets[i : i + 2])
        np.testing.assert_allclose(oracle.attention[here, 0], joint.sum(axis=1), atol=1e-10)
        assert oracle.prediction[i] == pytest.approx(joint[:, 0].sum(), abs=1e-10)
        assert oracle.rows[i, 0] == np.argmax(joint.sum(axis=1))


def test_t_rows_oracle_equals_the_t_density():
    nu = 5.0
    data = simulate.regression(
        10, p=4, d=3, center=CENTER, covariance=COVARIANCE, degrees_of_freedom=nu,
        dtype=np.float64, seed=1,
    )  # fmt: skip
    shape = (nu - 2) / nu * COVARIANCE
    active = multivariate_t(2 * CENTER, 2 * shape, df=nu).logpdf(data.X.values)
    background = multivariate_t(CENTER, shape, df=nu).logpdf(data.X.values)
    ratio = log_density_ratio(data.X, data.parameters)
    np.testing.assert_allclose(ratio[:, 0], active - background, atol=1e-10)


def test_oracle_finds_as_many_rows_as_theory_says():
    """With equal means the largest ‖x − m‖² wins: σ²χ²_d against p − 1 draws of χ²_d."""
    data = simulate.regression(3000, p=30, d=20, mu=1, sigma2=2, seed=0)
    expected, _ = quad(
        lambda q: chi2.pdf(q / 2, 20) / 2 * chi2.cdf(q, 20) ** 29, 0, 300, points=[20, 40, 80]
    )
    assert metrics.crlr(data.rows, data.oracle().rows) == pytest.approx(expected, abs=0.025)


def test_posterior_is_calibrated_and_predicts_better_than_its_argmax():
    data = simulate.regression(4000, p=20, d=10, s=2, mu=(1, 4), sigma2=(3, 2), seed=3)
    oracle = data.oracle()
    starts = data.X.offsets[:-1]
    for k in range(2):
        believed = np.maximum.reduceat(oracle.attention[:, k], starts).mean()
        guess = [int(np.argmax(a)) for a in np.split(oracle.attention[:, k], starts[1:])]
        assert believed == pytest.approx(np.mean(data.rows[:, k] == guess), abs=0.025)
    hard = sum(
        data.X.values[starts + oracle.rows[:, k]] @ data.parameters.beta[k] for k in range(2)
    )
    assert metrics.rmse(data.y, oracle.prediction) < metrics.rmse(data.y, hard)


def test_heads_of_the_same_kind_still_get_distinct_rows():
    data = simulate.regression(200, p=10, d=40, s=2, mu=1, sigma2=4, seed=0)
    rows = data.oracle().rows
    assert np.all(rows[:, 0] != rows[:, 1])
    assert metrics.crlr(data.rows, rows) > 0.98


def test_far_apart_heads_are_named_in_the_order_of_the_coefficients():
    data = simulate.regression(
        100, p=10, d=40, mu=(20, -20, 60), sigma2=(2, 2, 2), center=np.full(40, 0.5), seed=0
    )
    np.testing.assert_array_equal(data.oracle().rows, data.rows)


def test_oracle_works_in_blocks():
    data = simulate.regression(3000, p=100, d=70, seed=0)
    tracemalloc.start()
    data.oracle()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * data.X.nbytes  # float64 copies of all rows would take 2 and more
