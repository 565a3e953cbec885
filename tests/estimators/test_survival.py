"""Survival analysis: one-row samples against scikit-survival, many rows against the truth."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

from diagatt import DiagAttSurvival, simulate
from diagatt.families import get_family
from diagatt.lifetimes import make_times, read_times
from diagatt.metrics import concordance, crlr
from diagatt.solvers import Auto, Gradient, Likelihood, Mixture, Uniform

N = 200


@pytest.fixture(scope="module")
def one_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    event_time = rng.weibull(1.5, N) * np.exp(-X @ [0.5, -0.3, 0.2])
    censored = rng.exponential(2, N)
    time = np.ceil(20 * np.minimum(event_time, censored)) / 20  # with ties
    return X, make_times(event_time <= censored, time)


@pytest.fixture(scope="module")
def data():
    return simulate.survival(
        *(300, 5, 3), mu=(3,), sigma2=(4,), beta=[0.8, -0.6, 0.5], seed=0, dtype=np.float64
    )


# ---------------------------------------------------------------------- one-row samples


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_cox_agrees_with_scikit_survival(one_row, ties):
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, y = one_row
    theirs = linear_model.CoxPHSurvivalAnalysis(ties=ties, tol=1e-14, n_iter=1000).fit(X, y)
    ours = DiagAttSurvival(ties=ties, ridge=0).fit(X, y)
    np.testing.assert_allclose(ours.value_[0], theirs.coef_, atol=1e-6)
    np.testing.assert_array_equal(ours.unique_times_, theirs.unique_times_)
    for name in ("predict_survival_function", "predict_cumulative_hazard_function"):
        own, other = (getattr(m, name)(X[:5], return_array=True) for m in (ours, theirs))
        # Predictors are equal up to a shift, which their baselines make up for.
        np.testing.assert_allclose(own, other, atol=1e-6)
        curve, theirs_curve = (getattr(m, name)(X[:1])[0] for m in (ours, theirs))
        times = theirs_curve.x
        np.testing.assert_allclose(curve(times), theirs_curve(times), atol=1e-6)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-12)


def test_errors_of_cox_are_those_of_its_score_residuals():
    """The sandwich of statsmodels' score residuals, corrected by the leverage of samples."""
    regression = pytest.importorskip("statsmodels.duration.hazard_regression")
    rng = np.random.default_rng(1)
    X, censored = rng.normal(size=(N, 3)), rng.exponential(2, N)
    times = rng.exponential(np.exp(-X @ [0.5, -0.3, 0.0]))
    y = make_times(times <= censored, np.minimum(times, censored))
    model = DiagAttSurvival(ridge=0.0).fit(X, y)
    theirs = regression.PHReg(y["time"], X, status=y["event"].astype(int)).fit()
    residuals, inverse = np.nan_to_num(theirs.score_residuals), theirs.cov_params()
    pulls = np.einsum("ni,ij,nj->n", residuals, inverse, residuals)
    raised = residuals / (1 - 3 * pulls / pulls.sum())[:, None]
    covariance = inverse @ residuals.T @ raised @ inverse
    np.testing.assert_allclose(model.value_se_[:3], np.sqrt(np.diag(covariance)), rtol=1e-6)
    assert np.isnan(model.value_se_[3])  # the baseline takes the intercept in
    assert "sandwich over 3 free parameters" in str(model.summary())


def test_errors_of_cox_with_attention(data):
    model = DiagAttSurvival(solver=Gradient(), random_state=0).fit(data.X, data.y)
    assert (model.value_se_[:3] > 0).all()
    latent = DiagAttSurvival(solver=Likelihood(), random_state=0).fit(data.X, data.y)
    assert latent.value_se_ is None
    assert "where rows are latent" in latent.errors_note_


def test_concordance_is_harrell_s(one_row):
    metrics = pytest.importorskip("sksurv.metrics")
    _, y = one_row
    risk = np.random.default_rng(0).normal(size=N).round(1)  # with ties
    expected = metrics.concordance_index_censored(y["event"], y["time"], risk)[0]
    assert concordance(y["event"], y["time"], risk) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(concordance([False, False], [1.0, 2.0], [0.0, 1.0]))


def negative_log_likelihood(family, times, X):
    """Return the function of (β, b, log σ) that a fit minimizes, from the family's density."""
    import torch

    y = torch.from_numpy(times)

    def value(theta):
        z = torch.from_numpy(X @ theta[:3] + theta[3])[:, None]
        shaped = family.with_shape(torch.tensor([np.exp(theta[4])]))
        return -float(shaped.log_density(y, z).sum())

    return value


@pytest.mark.parametrize("kind", ["right", "interval", "entry"])
@pytest.mark.parametrize("family", ["weibull", "lognormal"])
def test_accelerated_failure_time_is_maximum_likelihood(one_row, family, kind):
    X, y = one_row
    time, event = y["time"] + 0.1, y["event"]
    if kind == "right":
        y = make_times(event, time)
    elif kind == "interval":  # what a yearly visit would say
        y = {"lower": np.floor(time), "upper": np.where(event, np.floor(time) + 1, np.inf)}
    else:
        y = make_times(event, time, start=np.where(time > 0.5, 0.3, 0.0))
    model = DiagAttSurvival(family=family, ridge=0).fit(X, y)
    value = negative_log_likelihood(get_family(family), read_times(y, N), X)
    ours = np.r_[model.value_[0], model.intercept_, np.log(model.shape_)]
    best = minimize(value, np.zeros(5), method="BFGS", options={"gtol": 1e-6})
    assert value(ours) <= best.fun + 1e-7
    np.testing.assert_allclose(ours, best.x, atol=1e-4)  # as exact as difference quotients are


def test_weibull_agrees_with_lifelines(one_row):
    lifelines = pytest.importorskip("lifelines")
    pandas = pytest.importorskip("pandas")
    X, y = one_row
    frame = pandas.DataFrame(X, columns=list("abc")).assign(time=y["time"], event=y["event"])
    exact = {"ftol": 1e-15, "gtol": 1e-12}
    theirs = lifelines.WeibullAFTFitter().fit(frame, "time", "event", fit_options=exact)
    ours = DiagAttSurvival(family="weibull", ridge=0).fit(X, y)
    params = theirs.params_["lambda_"]
    np.testing.assert_allclose(ours.value_[0], params[list("abc")], atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, params["Intercept"], atol=1e-6)
    sigma = np.exp(-theirs.params_["rho_"]["Intercept"])
    np.testing.assert_allclose(ours.shape_, [sigma], atol=1e-6)


# ---------------------------------------------------------------------- samples of several rows


@pytest.mark.parametrize(
    ("family", "solver"),
    [
        ("cox", Gradient()),
        ("cox", Mixture(n_starts=1)),
        ("cox", Likelihood()),
        ("weibull", Likelihood()),
        ("lognormal", Gradient()),
    ],
    ids=str,
)
def test_every_solver_serves_times(data, family, solver, tmp_path):
    model = DiagAttSurvival(family=family, solver=solver, random_state=0).fit(data.X, data.y)
    oracle = data.oracle()
    best = concordance(data.y["event"], data.y["time"], oracle.prediction)
    assert model.score(data.X, data.y) > best - 0.05
    # Chance is 0.2.
    assert crlr(data.rows, model.locate(data.X)) > crlr(data.rows, oracle.rows) - 0.2
    curves = model.predict_survival_function(data.X, return_array=True)
    assert curves.shape == (300, len(model.unique_times_))
    assert (np.diff(curves, axis=1) <= 1e-12).all()
    assert ((curves >= 0) & (curves <= 1)).all()
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = DiagAttSurvival.load(path)
    np.testing.assert_array_equal(loaded.predict(data.X), model.predict(data.X))
    np.testing.assert_array_equal(
        loaded.predict_survival_function(data.X[:3], return_array=True), curves[:3]
    )


def test_mean_survival_is_calibrated(data):
    """The mean predicted curve follows the truth, as all times are from one hazard law."""
    model = DiagAttSurvival(solver=Likelihood(), random_state=0).fit(data.X, data.y)
    times = np.quantile(data.y["time"], [0.2, 0.5])
    predicted = model.predict_survival_function(data.X, return_array=True, times=times).mean(axis=0)
    eta = np.einsum("nd,d->n", [x[r[0]] for x, r in zip(data.X, data.rows, strict=True)],
                    data.parameters.beta[0])  # fmt: skip
    truth = np.exp(-np.exp(eta)[:, None] * times).mean(axis=0)
    np.testing.assert_allclose(predicted, truth, atol=0.06)


def test_contests_take_times(data):
    contest = Auto([Uniform(), Likelihood()], folds=2)
    model = DiagAttSurvival(solver=contest, random_state=0).fit(data.X, data.y)
    assert model.has_row_of_interest_
    assert all("concordance" in line for line in model.contest_)
    assert clone(model).get_params()["ties"] == "efron"


def test_late_entry_is_another_likelihood(data):
    y = make_times(data.y["event"], data.y["time"] + 1, start=np.full(300, 0.5))
    shifted = make_times(data.y["event"], data.y["time"] + 1)
    fits = [
        DiagAttSurvival(solver=Uniform(), family=family, random_state=0).fit(data.X, times)
        for family in ("cox", "weibull")
        for times in (y, shifted)
    ]
    # No event is before 0.5, which matters to the parametric model only.
    np.testing.assert_allclose(fits[0].value_, fits[1].value_, atol=1e-9)
    assert np.abs(fits[2].value_ - fits[3].value_).max() > 1e-3


def test_the_order_of_times_is_all_that_cox_sees(data):
    other = make_times(data.y["event"], np.sqrt(data.y["time"]) + 3)
    fits = [
        DiagAttSurvival(solver=Gradient(max_epochs=30), random_state=0).fit(data.X, y)
        for y in (data.y, other)
    ]
    np.testing.assert_allclose(*(model.predict(data.X) for model in fits), atol=1e-9)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": [-1.0, 2.0, 3.0]}, r"time\[0\] = -1 is not positive"),
        ({"time": [0.0, 2.0, 3.0]}, r"time\[0\] = 0 is not positive"),
        ({"time": [np.nan, 2.0, 3.0]}, r"time\[0\] is nan"),
        ({"time": [2.0, 2.0, 2.0]}, "all samples end at the time 2: tied times do not say"),
        ({"event": [0, 0, 0]}, "no event was observed: all 3 samples are censored"),
        ({"event": [0, 2, 0]}, r"event\[1\] = 2: an event has happened"),
        ({"time": [1.0, 2.0]}, r"time has shape \(2,\), but there are 3 samples"),
    ],
)
def test_wrong_times_are_named(change, words):
    y = {"time": [1.0, 2.0, 3.0], "event": [1, 1, 0], **change}
    with pytest.raises(ValueError, match=words):
        DiagAttSurvival().fit(np.eye(3), y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, 2.0, 3.0], "y is list: times to an event are a structured array"),
        ({"a": [1, 2, 3]}, "y has the columns a: times to an event are"),
        ({"start": [0, 5, 0], "stop": [1, 2, 3], "event": [1, 1, 0]}, "sample 1 ends at 2, not af"),
        ({"start": [0, -5, 0], "stop": [1, 2, 3], "event": [1, 1, 0]}, r"start\[1\] = -5 is neg"),
        ({"lower": [1, 2, 3], "upper": [1, 1, 3]}, r"upper\[1\] = 1 lies before lower\[1\] = 2"),
        ({"lower": [1, 2, 3], "upper": [2, 3, 4]}, "family 'cox' takes exact and right-censored"),
    ],
)
def test_other_responses_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        DiagAttSurvival().fit(np.eye(3), y)


def test_other_families_are_refused(one_row):
    with pytest.raises(ValueError, match="'poisson' is not one of times to an event"):
        DiagAttSurvival(family="poisson").fit(*one_row)
