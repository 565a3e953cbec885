"""On one-row samples every family is a model that another library fits, too."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor, QuantileRegressor
from sklearn.linear_model._huber import _huber_loss_and_gradient

from diagatt import DiagAttClassifier, DiagAttRegressor

sm = pytest.importorskip("statsmodels.api")
N = 300


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 3))


@pytest.fixture
def eta(X):
    return X @ [0.5, -0.3, 0.2] + 0.4


def ours(family, X, y, **given):
    return DiagAttRegressor(family=family, ridge=0).fit(X, y, **given)


def assert_same(model, constant_first, tolerance=1e-6):
    np.testing.assert_allclose(model.intercept_, constant_first[0], atol=tolerance)
    np.testing.assert_allclose(model.value_[0], constant_first[1:], atol=tolerance)


def test_negative_binomial(rng, X, eta):
    y = rng.negative_binomial(1 / 0.7, 1 / (1 + 0.7 * np.exp(eta)))
    model = ours("negative_binomial", X, y)
    theirs = sm.NegativeBinomial(y, sm.add_constant(X)).fit(disp=0, method="newton", tol=1e-14)
    assert_same(model, theirs.params[:-1])
    np.testing.assert_allclose(model.shape_, theirs.params[-1:], atol=1e-6)
    assert model.criteria_[0]["log_likelihood"] == pytest.approx(theirs.llf, rel=1e-9)
    assert model.criteria_[0]["n_parameters"] == 5  # three slopes, the intercept and α


@pytest.mark.parametrize("family", ["poisson", "negative_binomial"])
def test_exposure(rng, X, eta, family):
    years = rng.uniform(0.5, 5, N)
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + years * np.exp(eta)))
    model = ours(family, X, y, exposure=years)
    if family == "poisson":
        glm = sm.GLM(y, sm.add_constant(X), sm.families.Poisson(), exposure=years)
        params = glm.fit(tol=1e-14).params
    else:
        glm = sm.NegativeBinomial(y, sm.add_constant(X), exposure=years)
        params = glm.fit(disp=0, method="newton", tol=1e-14).params[:-1]
    assert_same(model, params)
    np.testing.assert_allclose(
        model.predict(X, exposure=years), years * model.predict(X), rtol=1e-12
    )
    offset = ours(family, X, y, offset=np.log(years))
    np.testing.assert_array_equal(offset.value_, model.value_)


def test_binomial(rng, X, eta):
    trials = rng.integers(1, 9, N)
    successes = rng.binomial(trials, 1 / (1 + np.exp(-eta)))
    y = np.column_stack([successes, trials - successes])
    model = ours("binomial", X, y)
    theirs = sm.GLM(y, sm.add_constant(X), sm.families.Binomial()).fit(tol=1e-14)
    assert_same(model, theirs.params)
    assert model.criteria_[0]["log_likelihood"] == pytest.approx(theirs.llf, rel=1e-9)


@pytest.mark.parametrize("power", [1.2, 1.7])
def test_tweedie(rng, X, eta, power):
    counts = rng.poisson(np.exp(eta))
    y = np.where(counts > 0, rng.gamma(2.0 * counts.clip(1), 0.5), 0)
    model = ours(f"tweedie({power})", X, y)
    family = sm.families.Tweedie(sm.families.links.Log(), power)
    assert_same(model, sm.GLM(y, sm.add_constant(X), family).fit(tol=1e-14).params)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantile(rng, X, eta, level):
    y = eta + rng.standard_t(3, N)
    model = ours(f"quantile({level})", X, y)
    theirs = QuantileRegressor(quantile=level, alpha=0).fit(X, y)
    assert_same(model, np.r_[theirs.intercept_, theirs.coef_])


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_huber(rng, X, eta, alpha):
    y = eta + rng.standard_t(3, N)
    y[:10] += 50
    theirs = HuberRegressor(epsilon=1.2, alpha=alpha, tol=1e-12, max_iter=10_000).fit(X, y)
    model = DiagAttRegressor(family="huber(1.2)", ridge=alpha * theirs.scale_).fit(X, y)
    assert_same(model, np.r_[theirs.intercept_, theirs.coef_], 1e-5)  # theirs stops early …
    point = np.r_[model.value_[0], model.intercept_, model.shape_]
    _, gradient = _huber_loss_and_gradient(point, X, y, 1.2, alpha, np.ones(N))
    slack = 2 * alpha * abs(theirs.scale_ - model.shape_[0])  # of the ridge that stands for alpha
    assert np.abs(gradient).max() < 1e-6 + slack  # … ours solves their equations


def test_ordered_logit(rng, X, eta):
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    y = np.digitize(eta + rng.logistic(size=N), [-1, 0, 1.5])
    model = DiagAttClassifier(family="ordinal", ridge=0).fit(X, y)
    theirs = OrderedModel(y, X, distr="logit")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it has not converged when it has
        fitted = theirs.fit(method="newton", disp=0, tol=1e-14)
    thresholds = theirs.transform_threshold_params(fitted.params)[1:-1]
    assert_same(model, np.r_[-thresholds[0], fitted.params[:3]])
    np.testing.assert_allclose(model.shape_, np.diff(thresholds), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict(fitted.params), atol=1e-6)
    assert model.criteria_[0]["log_likelihood"] == pytest.approx(fitted.llf, rel=1e-9)
