"""Simulated data have the distribution they claim; the oracle equals brute force."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import chi2, chisquare, multivariate_normal, multivariate_t

from diagatt import metrics, simulate
from diagatt.simulate import oracle as oracle_module
from diagatt.simulate import sampling
from diagatt.simulate.placement import placement_posterior

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


# ---------------------------------------------------------------------- distribution


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


def test_oracle_works_in_blocks():
    data = simulate.regression(3000, p=100, d=70, seed=0)
    tracemalloc.start()
    data.oracle()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * data.X.nbytes  # float64 copies of all rows would take 2 and more


# ---------------------------------------------------------------------- oracle


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
    monkeypatch.setattr("diagatt.simulate.placement._BLOCK_STATES", 2**s * 20)
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
    ratio = oracle_module.log_density_ratio(data.X, data.parameters)
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


# ---------------------------------------------------------------------- the paper's settings


def test_every_setting_of_the_paper_is_there():
    tables = ["table1", "table2", "tableS2", "tableS3", "tableS4", "figure1", "figureS2"]
    counts = {table: len(simulate.paper_settings(table)) for table in tables}
    assert counts == dict(zip(tables, [4, 2, 4, 2, 4, 2, 6], strict=True))
    assert len(simulate.paper_settings()) == len(simulate.PAPER_SETTINGS) == 24
    for setting in simulate.paper_settings():
        data = setting.draw(3)
        assert data.X.lengths.tolist() == [setting.p] * 3
        assert data.X.n_features == setting.d
        assert data.rows.shape == (3, data.parameters.s)
        assert setting.n_test == setting.n // 4


@pytest.mark.parametrize(
    ("name", "published", "spread"),
    [
        ("table1-p100-d70", 15.181, 0.2),  # group lasso predicts a constant
        ("table1-p120-d90", 16.145, 0.1),
        ("tableS3-rho0.3", 12.710, 0.1),
        ("tableS3-rho0.6", 9.659, 0.1),
        ("table2-s2", 27.431, 0.05),
        ("table2-s3", 33.401, 0.05),
        ("tableS4-mu1-sigma2-2.5", 16.834, 0.2),
    ],
)
def test_scale_of_coefficients_is_the_papers(name, published, spread):
    parameters = simulate.paper_setting(name).draw(1).parameters
    squared = np.sum(parameters.beta**2, axis=1)
    level = np.sqrt(np.sum(parameters.sigma2 * squared) * (1 - parameters.rho) + 1)
    assert level == pytest.approx(published, abs=spread)


def test_replications_share_the_population_and_options_override():
    setting = simulate.paper_setting("table2-s3")
    one, two = setting.draw(2, seed=0).parameters, setting.draw(2, seed=1).parameters
    np.testing.assert_array_equal(one.beta, two.beta)
    np.testing.assert_array_equal(one.center, two.center)
    assert setting.draw(2, p=(5, 6), degrees_of_freedom=4).parameters.p == (5, 6)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a positive int"),
        ({"p": 0}, "p must be a positive int"),
        ({"p": (5, 3)}, r"\(low, high\) range"),
        ({"d": 0}, "d must be a positive int"),
        ({"p": 2, "s": 3}, "at most the number of rows"),
        ({"s": 0}, "one per kind of active row|at least 1"),
        ({"mu": (1, 2, 3), "s": 2}, "mu must be one number or 2"),
        ({"sigma2": 0.0}, "sigma2 must be positive"),
        ({"rho": 1.0}, "rho must lie in"),
        ({"noise": -1}, "noise must be 0 or more"),
        ({"covariance": np.eye(3)}, r"covariance must have shape \(2, 2\)"),
        ({"covariance": [[1, 2], [2, 1]]}, "positive definite"),
        ({"covariance": [[1, 0.5], [0, 1]]}, "symmetric"),
        ({"beta": np.ones(3)}, r"beta must have shape \(1, 2\)"),
        ({"beta": [np.nan, 1]}, "beta contains NaN"),
        ({"center": np.ones(3)}, r"center must have shape \(2,\)"),
        ({"degrees_of_freedom": 2}, "must exceed 2"),
        ({"dtype": np.int64}, "dtype must be float32 or float64"),
    ],
)
def test_errors_say_what_is_wrong(options, message):
    with pytest.raises(ValueError, match=message):
        simulate.regression(**{"n": 3, "p": 4, "d": 2, **options})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.classification(3, pi=1.0), "pi must lie strictly"),
        (lambda: simulate.classification(3, mu=(1, 2, 3)), "mu must be one number or 2"),
        (lambda: simulate.ar1(3, 1.0), "strictly between -1 and 1"),
        (lambda: simulate.paper_setting("table9"), "unknown setting 'table9'"),
        (lambda: simulate.paper_settings("table9"), "unknown table 'table9'"),
        (
            lambda: simulate.regression(3, p=4, d=2, s=2, rho=0.1).oracle(),
            "several active rows that are correlated",
        ),
        (
            lambda: simulate.regression(3, p=4, d=2, rho=0.1, degrees_of_freedom=5).oracle(),
            "t rows that are correlated",
        ),
    ],
)
def test_other_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_parameters_cannot_be_changed():
    data = simulate.regression(3, p=4, d=2)
    with pytest.raises(AttributeError):
        data.parameters.rho = 0.5
    with pytest.raises(ValueError, match="read-only"):
        data.parameters.beta[0, 0] = 1.0
    assert len(repr(data)) < 400
