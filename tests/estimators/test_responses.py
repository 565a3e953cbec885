"""Families, offsets and exposures on samples of several rows, by every solver."""

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, simulate
from diagatt.metrics import crlr
from diagatt.solvers import Auto, Gradient, Likelihood, Mixture, Uniform

SOLVERS = [Gradient(), Mixture(n_starts=1), Likelihood()]
N = 250


@pytest.fixture(scope="module")
def data():
    return simulate.regression(
        *(N, 5, 3), mu=(3,), sigma2=(4,), beta=[0.5, -0.4, 0.3], noise=0, seed=0, dtype=np.float64
    )


def responses(family, eta, rng):
    if family == "negative_binomial":
        return rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(eta)))
    if family == "binomial":
        trials = rng.integers(1, 9, len(eta))
        successes = rng.binomial(trials, 1 / (1 + np.exp(-2 * eta)))
        return np.column_stack([successes, trials - successes])
    if family == "tweedie(1.5)":
        counts = rng.poisson(2 * np.exp(eta))
        return np.where(counts > 0, rng.gamma(2.0 * counts.clip(1), 0.5), 0)
    if family == "ordinal":
        return np.digitize(3 * eta + rng.logistic(size=len(eta)), [-1, 0, 1.5])
    return eta + 0.2 * rng.standard_t(3, len(eta))


# Half of the pairs: each solver and each family at least once.
PAIRS = [
    ("negative_binomial", Mixture(n_starts=1)),
    ("negative_binomial", Likelihood()),
    ("binomial", Mixture(n_starts=1)),
    ("binomial", Likelihood()),
    ("tweedie(1.5)", Gradient()),
    ("tweedie(1.5)", Likelihood()),
    ("huber", Gradient()),
    ("huber", Likelihood()),
    ("quantile(0.7)", Mixture()),
    ("quantile(0.7)", Likelihood()),
    ("ordinal", Gradient()),
    ("ordinal", Likelihood()),
]


@pytest.mark.parametrize(("family", "solver"), PAIRS, ids=str)
def test_every_solver_serves_every_family(data, family, solver, tmp_path):
    y = responses(family, data.y, np.random.default_rng(0))
    kind = DiagAttClassifier if family == "ordinal" else DiagAttRegressor
    model = kind(family=family, solver=solver, random_state=0)
    if family == "quantile(0.7)" and solver.name == "mixture":
        with pytest.raises(ValueError, match="does not predict what the quantile family does"):
            model.fit(data.X, y)
        return
    model.fit(data.X, y)
    assert crlr(data.rows, model.locate(data.X)) > 0.45  # chance is 0.2, the oracle has 0.75
    assert model.score(data.X, y) > 0.1
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = kind.load(path)
    np.testing.assert_array_equal(loaded.predict(data.X), model.predict(data.X))
    np.testing.assert_array_equal(loaded.shape_, model.shape_)


@pytest.mark.parametrize("family", ["ordinal", "quantile(0.7)", "binomial"])
def test_contests_take_every_family(data, family):
    y = responses(family, data.y, np.random.default_rng(0))
    kind = DiagAttClassifier if family == "ordinal" else DiagAttRegressor
    contest = Auto([Uniform(), Likelihood()], folds=2)
    model = kind(family=family, solver=contest, random_state=0).fit(data.X, y)
    assert model.has_row_of_interest_
    assert model.score(data.X, y) > 0.1
    assert len(model.contest_) == 2


@pytest.mark.parametrize("solver", [Uniform(), Likelihood()], ids=lambda s: s.name)
def test_a_gaussian_offset_is_subtracted_from_the_response(data, solver):
    offset = np.random.default_rng(1).normal(size=N)
    y = data.y + 0.1 * np.random.default_rng(2).normal(size=N)
    model = DiagAttRegressor(solver=solver, random_state=0)
    plain = model.fit(data.X, y).predict(data.X)
    model.fit(data.X, y + offset, offset=offset)
    np.testing.assert_allclose(model.predict(data.X), plain, atol=1e-6)
    np.testing.assert_allclose(
        model.predict(data.X, offset=offset), model.predict(data.X) + offset, rtol=1e-12
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_a_constant_exposure_moves_the_intercept_alone(data, solver):
    y = np.random.default_rng(0).poisson(4 * np.exp(data.y))
    model = DiagAttRegressor(family="poisson", solver=solver, random_state=0)
    plain = model.fit(data.X, y).predict(data.X)
    model.fit(data.X, y, exposure=np.full(N, 4.0))
    np.testing.assert_allclose(4 * model.predict(data.X), plain, rtol=1e-3)
    np.testing.assert_allclose(
        model.predict(data.X, exposure=np.full(N, 4.0)), 4 * model.predict(data.X), rtol=1e-12
    )


def test_a_contest_takes_an_exposure(data):
    rng = np.random.default_rng(0)
    years = rng.uniform(0.1, 5, N)
    y = rng.poisson(years * np.exp(data.y))
    contest = Auto([Uniform(), Likelihood()], folds=2)
    model = DiagAttRegressor(family="poisson", solver=contest, random_state=0)
    model.fit(data.X, y, exposure=years)
    np.testing.assert_allclose(
        model.predict(data.X, exposure=years), years * model.predict(data.X), rtol=1e-9
    )
    rate = np.corrcoef(model.predict(data.X), np.exp(data.y))[0, 1]
    assert rate > 0.7


def test_one_trial_is_a_bernoulli_response(data):
    y = (data.y > 0).astype(int)
    settings = {"solver": Gradient(), "random_state": 0}
    two = DiagAttRegressor(family="binomial", **settings).fit(data.X, np.column_stack([y, 1 - y]))
    one = DiagAttClassifier(**settings).fit(data.X, y)
    np.testing.assert_allclose(two.predict(data.X), one.predict_proba(data.X)[:, 1], rtol=1e-9)


def test_two_ordered_classes_are_a_bernoulli_response(data):
    y = (data.y > 0).astype(int)
    fits = [
        DiagAttClassifier(family=family, solver=Gradient(), random_state=0).fit(data.X, y)
        for family in ("ordinal", "bernoulli")
    ]
    ordered, plain = (model.predict_proba(data.X) for model in fits)
    np.testing.assert_allclose(ordered, plain, rtol=1e-9)


def test_the_share_of_responses_below_a_quantile_is_its_level(data):
    y = responses("quantile(0.7)", data.y, np.random.default_rng(0))
    model = DiagAttRegressor(family="quantile(0.7)", solver=Gradient(), random_state=0)
    model.fit(data.X, y)
    # The intercept is optimal: at most as many responses lie on the quantile as it has effects.
    assert abs((y < model.predict(data.X)).mean() - 0.7) <= 4 / N


def test_outliers_do_not_move_a_huber_fit(data):
    y = responses("huber", data.y, np.random.default_rng(0))
    spoiled = y.copy()
    spoiled[:5] += 1e4
    fits = [
        DiagAttRegressor(family=family, solver=Likelihood(), random_state=0).fit(data.X, spoiled)
        for family in ("huber", "gaussian")
    ]
    errors = [np.abs(model.predict(data.X)[5:] - data.y[5:]).mean() for model in fits]
    assert errors[0] < 0.5 < 50 < errors[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"exposure": np.r_[0.0, np.ones(N - 1)]}, r"exposure\[0\] = 0 is not positive"),
        ({"exposure": np.ones(3)}, "exposure must be one number per sample"),
        ({"offset": np.r_[np.nan, np.ones(N - 1)]}, r"offset\[0, 0\] is NaN"),
        ({"offset": np.ones((N, 2))}, "offset must be one number per sample"),
    ],
)
def test_bad_offsets_are_named(data, given, words):
    with pytest.raises(ValueError, match=words):
        DiagAttRegressor(family="poisson").fit(data.X, np.ones(N), **given)


def test_exposure_needs_a_log_link(data):
    with pytest.raises(ValueError, match="a log link, and the gaussian family has another"):
        DiagAttRegressor().fit(data.X, data.y, exposure=np.ones(N))


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("quantile(1.5)", "level of a quantile lies between 0 and 1"),
        ("tweedie(3)", "power of a tweedie family lies between 1 and 2"),
        ("huber(0.2)", "ε of a huber family is at least 1"),
        ("poisson(2)", "the poisson family has no number"),
        ("quantile(1e)", "no number in its brackets"),
    ],
)
def test_wrong_numbers_of_families_are_named(data, family, words):
    with pytest.raises(ValueError, match=words):
        DiagAttRegressor(family=family).fit(data.X, data.y)


def test_wrong_responses_are_named(data):
    with pytest.raises(ValueError, match=r"y must have 2 columns, successes and failures"):
        DiagAttRegressor(family="binomial").fit(data.X, data.y)
    with pytest.raises(ValueError, match="needs ordered classes, but y holds words such as 'low'"):
        DiagAttClassifier(family="ordinal").fit(data.X, np.where(data.y > 0, "high", "low"))
