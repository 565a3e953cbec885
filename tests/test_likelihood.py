"""The latent-row EM: against enumeration, closed forms, and the Bayes oracle."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from diagatt.solvers.covariance import COVARIANCES, oas_intensity, structured
from diagatt.solvers.expectation import Expectation, ResponseModel
from diagatt.solvers.row_model import RowModel, context_of
from scipy.stats import multivariate_normal, norm

from diagatt import (
    DiagAttClassifier,
    DiagAttRegressor,
    NoRowOfInterestWarning,
    RaggedRows,
    simulate,
)
from diagatt.families import get_family
from diagatt.metrics import accuracy, crlr, rmse
from diagatt.solvers import starts
from diagatt.solvers.likelihood import EM, LatentRows, LikelihoodSettings, to_module
from diagatt.solvers.problem import Problem


def make_problem(X: RaggedRows, y, family="gaussian", n_outputs=1, weights=None, covariates=None):
    values, offsets = X.astype(np.float64).to_torch()
    n = len(X)
    weights = np.ones(n) if weights is None else weights
    covariates = np.zeros((n, 0)) if covariates is None else covariates
    tensors = [torch.as_tensor(np.asarray(a, dtype=float)) for a in (y, weights, covariates)]
    return Problem(get_family(family), values, offsets, *tensors, n_outputs)


def random_model(rng, R, d, q, K=1) -> LatentRows:
    A = torch.from_numpy(rng.standard_normal((R + 1, d, q)))
    half = rng.standard_normal((R + 1, d, d + 2))
    C = torch.from_numpy(half @ half.transpose(0, 2, 1) / d)
    value = torch.from_numpy(rng.standard_normal((R, d, K)))
    return LatentRows(RowModel(A, C), ResponseModel(value, torch.zeros(1, K).double() + 0.3, 0.7))


def enumerate_posterior(problem, context, model, distinct=True):
    """Log-likelihood and responsibilities by brute force over all assignments."""
    R = model.rows.n_heads
    A, C = model.rows.A.numpy(), model.rows.C.numpy()
    value, b = model.response.value[:, :, 0].numpy(), float(model.response.shared[0, 0])
    total, parts = 0.0, []
    for i in range(problem.n_samples):
        x = problem.values[problem.offsets[i] : problem.offsets[i + 1]].numpy()
        c = context[i].numpy()
        log_f = np.array(
            [multivariate_normal(A[k] @ c, C[k]).logpdf(x).reshape(-1) for k in range(R + 1)]
        )  # (R + 1, p)
        terms, rows = [], []
        for chosen in itertools.product(range(len(x)), repeat=R):
            if distinct and len(set(chosen)) < R:
                continue
            z = b + sum(x[j] @ value[k] for k, j in enumerate(chosen))
            ratio = sum(log_f[k + 1, j] - log_f[0, j] for k, j in enumerate(chosen))
            terms.append(ratio + norm(z, np.sqrt(model.response.phi)).logpdf(float(problem.y[i])))
            rows.append(chosen)
        terms = np.array(terms)
        evidence = np.logaddexp.reduce(terms)
        total += log_f[0].sum() + evidence - np.log(len(terms))
        r = np.zeros((len(x), R))
        for weight, chosen in zip(np.exp(terms - evidence), rows, strict=True):
            for k, j in enumerate(chosen):
                r[j, k] += weight
        parts.append(r)
    return total, np.concatenate(parts)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("score_form", ["affine", "contextual"])
@pytest.mark.parametrize("R", [1, 2, 3])
def test_e_step_equals_enumeration(R, score_form, distinct):
    rng = np.random.default_rng(R)
    X = RaggedRows.from_samples([rng.standard_normal((p, 2)) for p in (R, R + 1, 5, 6)])
    problem = make_problem(X, rng.standard_normal(4))
    context = context_of(problem, score_form)
    model = random_model(rng, R, 2, context.shape[1])
    expectation = Expectation(problem, context, distinct)
    em = EM(expectation, LikelihoodSettings(score_form=score_form))
    expected = em.expect(model, keep=True)
    value, r = enumerate_posterior(problem, context, model, distinct)
    assert expected.log_likelihood == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(torch.cat(expected.responsibilities), r, atol=1e-9)
    x = X.values
    np.testing.assert_allclose(expected.xx[0], x.T @ (r[:, :1] * x), atol=1e-8)


def test_fitted_scores_are_the_log_density_ratio():
    """The module's attention is the posterior given X alone."""
    rng = np.random.default_rng(0)
    X = RaggedRows.from_samples([rng.standard_normal((p, 3)) for p in (4, 6)])
    problem = make_problem(X, [0.0, 1.0])
    for form in ("affine", "contextual"):
        context = context_of(problem, form)
        model = random_model(rng, 1, 3, context.shape[1])
        module = to_module(model, problem, LikelihoodSettings(score_form=form))
        got = module.attention(problem.values, problem.offsets).detach()[:, 0]
        A, C = model.rows.A.numpy(), model.rows.C.numpy()
        for i, x in enumerate(X):
            c = context[i].numpy()
            ratio = multivariate_normal(A[1] @ c, C[1]).logpdf(x)
            ratio = ratio - multivariate_normal(A[0] @ c, C[0]).logpdf(x)
            want = np.exp(ratio - np.logaddexp.reduce(ratio))
            np.testing.assert_allclose(got[X.offsets[i] : X.offsets[i + 1]], want, rtol=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "gamma", "multinomial"])
@pytest.mark.parametrize("R", [1, 2])
def test_likelihood_never_falls(family, R):
    rng = np.random.default_rng(3)
    data = simulate.regression(120, p=(4, 9), d=3, s=R, mu=3.0, sigma2=3.0, seed=R)
    z = (data.y - data.y.mean()) / data.y.std()
    y, K = {
        "gaussian": (z, 1),
        "bernoulli": (z > 0, 1),
        "poisson": (rng.poisson(np.exp(z)), 1),
        "gamma": (rng.gamma(2, np.exp(z) / 2) + 1e-3, 1),
        "multinomial": (np.digitize(z, [-0.5, 0.5]), 3),
    }[family]
    problem = make_problem(data.X, y, family, K)
    settings = LikelihoodSettings(shrinkage=0.0, ridge=1e-9, gain_tolerance=1e-7)
    expectation = Expectation(problem, context_of(problem, "affine"))
    em = EM(expectation, settings)
    fit = em.run(random_model(rng, R, 3, 1, K), 60)
    values = [h["log_likelihood"] for h in fit.history]
    kept = np.maximum.accumulate(values)
    # A step that lowers the likelihood is taken back at once; gaussian steps never do.
    assert fit.log_likelihood == pytest.approx(kept[-1], rel=1e-9)
    if family == "gaussian":
        assert np.all(np.diff(values) >= -1e-7 * abs(values[0]))
    assert fit.log_likelihood > values[0]


def test_m_step_is_stationary():
    """At convergence the numerical gradient of the exact likelihood in V and b vanishes."""
    data = simulate.regression(80, p=5, d=2, mu=(3.0,), sigma2=(3.0,), seed=0)
    problem = make_problem(data.X, data.y)
    settings = LikelihoodSettings(shrinkage=0.0, ridge=1e-12, gain_tolerance=1e-13)
    expectation = Expectation(problem, context_of(problem, "affine"))
    em = EM(expectation, settings)
    model = em.run(random_model(np.random.default_rng(0), 1, 2, 1), 500).model

    def likelihood(change: float, k: int) -> float:
        value = model.response.value.clone()
        value[0, k, 0] += change
        response = ResponseModel(value, model.response.shared, model.response.phi)
        return em.expect(LatentRows(model.rows, response)).log_likelihood

    for k in range(2):
        slope = (likelihood(1e-4, k) - likelihood(-1e-4, k)) / 2e-4
        curvature = (likelihood(1e-2, k) - 2 * likelihood(0, k) + likelihood(-1e-2, k)) / 1e-4
        assert abs(slope / curvature) < 1e-4  # how far from the optimum, in units of V


def test_integer_weights_equal_repetition():
    data = simulate.regression(60, p=5, d=3, mu=(3.0,), sigma2=(3.0,), seed=1)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    repeated = np.repeat(np.arange(60), weights)
    model = DiagAttRegressor(solver="likelihood", random_state=0)
    weighted = model.fit(data.X, data.y, sample_weight=weights).predict(data.X)
    again = model.fit(data.X[repeated], data.y[repeated]).predict(data.X)
    np.testing.assert_allclose(weighted, again, rtol=1e-4, atol=1e-4)


def test_reaches_the_oracle_and_names_its_certainty():
    train = simulate.regression(1500, p=30, d=12, mu=(2.0,), sigma2=(4.0,), seed=0)
    test = train.draw(1000, seed=1)
    oracle = test.oracle()
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(train.X, train.y)
    assert rmse(test.y, model.predict(test.X)) <= 1.05 * rmse(test.y, oracle.prediction)
    assert crlr(test.rows, model.locate(test.X)) >= crlr(test.rows, oracle.rows) - 0.01
    certainty = model.certainty(test.X)
    right = certainty.rows == test.rows
    # The posterior is calibrated: it says how often the row is right.
    assert abs(certainty.posterior.mean() - right.mean()) < 0.03
    assert right[certainty.ambiguous].mean() < right[~certainty.ambiguous].mean()
    weights = np.concatenate(model.attention(test.X))
    entropy = -np.add.reduceat(
        np.where(weights > 0, weights * np.log(weights), 0), test.X.offsets[:-1]
    )
    np.testing.assert_allclose(certainty.entropy, entropy, atol=1e-4)


@pytest.mark.parametrize("R", [2, 3])
def test_several_heads_reach_the_oracle(R):
    mu, sigma2 = (1.0, 4.0, -4.0)[:R], (4.0, 3.0, 3.0)[:R]
    train = simulate.regression(1500, p=20, d=16, s=R, mu=mu, sigma2=sigma2, seed=R)
    test = train.draw(600, seed=9)
    model = DiagAttRegressor(n_heads=R, solver="likelihood", random_state=0).fit(train.X, train.y)
    oracle = test.oracle()
    assert rmse(test.y, model.predict(test.X)) <= 1.10 * rmse(test.y, oracle.prediction)
    assert crlr(test.rows, model.locate(test.X)) >= crlr(test.rows, oracle.rows) - 0.01
    rows = model.locate(test.X)
    assert all(len(set(line)) == R for line in rows)  # distinct rows


def test_context_helps_when_rows_are_correlated():
    train = simulate.regression(1500, p=30, d=10, mu=(2.0,), sigma2=(3.0,), rho=0.6, seed=0)
    test = train.draw(600, seed=1)
    error = {
        form: rmse(test.y, DiagAttRegressor(solver="likelihood", score_form=form, random_state=0)
                   .fit(train.X, train.y).predict(test.X))
        for form in ("affine", "contextual")
    }  # fmt: skip
    assert error["contextual"] < error["affine"]
    assert error["contextual"] <= 1.4 * rmse(test.y, test.oracle().prediction)


def test_classification_reaches_the_oracle():
    train = simulate.classification(1500, p=20, d=16, mu=(4, -4), sigma2=(3, 3), seed=0)
    test = train.draw(1000, seed=1)
    model = DiagAttClassifier(solver="likelihood", random_state=0).fit(train.X, train.y)
    oracle = accuracy(test.y, test.oracle().prediction > 0.5)
    assert accuracy(test.y, model.predict(test.X)) >= oracle - 0.02


def test_standard_errors_match_the_spread_over_replications():
    base = simulate.regression(10, p=6, d=3, mu=(2.0,), sigma2=(3.0,), seed=1)
    estimates, errors = [], []
    for k in range(40):
        data = base.draw(300, seed=(k, 7))
        model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
        estimates.append(model.value_[0])
        errors.append(model.value_se_[:3])
    ratio = np.mean(errors, axis=0) / np.std(estimates, axis=0)
    assert np.all((ratio > 0.7) & (ratio < 1.4))


def test_summary_prints_what_a_statistician_expects():
    data = simulate.regression(400, p=6, d=3, s=2, mu=(1.0, 4.0), sigma2=(3.0, 3.0), seed=1)
    model = DiagAttRegressor(n_heads="auto", selection="bic", solver="likelihood", random_state=0)
    summary = model.fit(data.X, data.y).summary()
    assert model.n_heads_ == 2  # BIC finds the number of active rows
    assert [c["n_heads"] for c in summary.criteria] == [1, 2, 3]
    text = str(summary)
    assert all(word in text for word in ("estimate", "s.e.", "P>|z|", "AIC", "BIC", "samples"))
    assert max(map(len, text.splitlines())) <= 80
    line = summary.coefficients[0]
    assert line["z"] == pytest.approx(line["estimate"] / line["se"])
    assert line["p"] == pytest.approx(2 * norm.sf(abs(line["z"])))


# ---------------------------------------------------------------------- the contest


def heavy_tails(rng, n):
    X = rng.standard_t(3, size=(n, 10, 4))
    X[:, 0] *= 2
    return X, X[:, 0].sum(axis=1) + rng.standard_normal(n)


def skewed(rng, n):
    X = rng.exponential(size=(n, 10, 4))
    X[:, 0] += 1
    return X, X[:, 0].sum(axis=1) + rng.standard_normal(n)


def mixture(rng, n):
    X = rng.standard_normal((n, 10, 4)) + 4 * rng.integers(0, 2, size=(n, 10, 1))
    X[:, 0] = 2 * rng.standard_normal((n, 4)) - 3
    return X, X[:, 0].sum(axis=1) + rng.standard_normal(n)


def nothing(rng, n):
    return rng.standard_normal((n, 10, 4)), rng.standard_normal(n)


@pytest.mark.parametrize("make", [heavy_tails, skewed, mixture, nothing])
def test_auto_is_as_good_as_its_better_part(make):
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = make(rng, 1200), make(rng, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRowOfInterestWarning)
        error = {
            solver: rmse(y_test, DiagAttRegressor(solver=solver, random_state=0)
                         .fit(X, y).predict(X_test))
            for solver in ("auto", "likelihood", "gradient")
        }  # fmt: skip
    assert error["auto"] <= 1.1 * min(error["likelihood"], error["gradient"])


def test_auto_says_when_no_row_decides():
    X, y = nothing(np.random.default_rng(0), 800)
    with pytest.warns(NoRowOfInterestWarning, match="no row of interest"):
        model = DiagAttRegressor(random_state=0).fit(X, y)
    assert model.solver_ == "uniform"
    assert {r["solver"] for r in model.selection_ if "held_out_loss" in r} == {
        "likelihood", "polish", "gradient", "uniform",
    }  # fmt: skip


# ---------------------------------------------------------------------- covariances


def test_oas_agrees_with_scikit_learn():
    from sklearn.covariance import oas

    X = np.random.default_rng(0).standard_normal((40, 6)) @ np.diag(np.arange(1, 7))
    X -= X.mean(axis=0)
    shrunk, alpha = oas(X, assume_centered=True)
    S = torch.from_numpy(X.T @ X / 40)
    assert oas_intensity(S, 40) == pytest.approx(alpha, rel=0.1)  # theirs drops the 2/d terms
    np.testing.assert_allclose(structured(S, 40, "full", alpha, 0), shrunk, rtol=1e-10)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_more_features_than_samples(kind):
    data = simulate.regression(40, p=6, d=60, mu=(3.0,), sigma2=(4.0,), seed=0)
    model = DiagAttRegressor(solver="likelihood", covariance=kind, random_state=0)
    prediction = model.fit(data.X, data.y).predict(data.X)
    assert np.isfinite(prediction).all()
    assert crlr(data.rows, model.locate(data.X)) > 0.8


# ---------------------------------------------------------------------- hard input


def degenerate(kind: str):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5, 4))
    X[:, 0] *= 3
    y = X[:, 0].sum(axis=1)
    if kind == "constant feature":
        X[..., 1] = 7.0
    elif kind == "copied feature":
        X[..., 1] = X[..., 0]
    elif kind == "duplicated rows":
        X = np.repeat(X[:, :2], 3, axis=1)
    elif kind == "constant y":
        y = np.zeros(60)
    elif kind == "all rows equal":
        X = np.ones((60, 5, 4))
    return X, y


@pytest.mark.parametrize("solver", ["likelihood", "auto"])
@pytest.mark.parametrize(
    "kind",
    ["constant feature", "copied feature", "duplicated rows", "constant y", "all rows equal"],
)
@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_degenerate_data_stay_finite(kind, solver):
    X, y = degenerate(kind)
    model = DiagAttRegressor(solver=solver, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert all(np.isfinite(a).all() for a in model.attention(X))


@pytest.mark.parametrize("R", [2, 3])
def test_more_heads_than_active_rows_and_samples_of_exactly_R_rows(R):
    data = simulate.regression(300, p=(R, 6), d=4, mu=(3.0,), sigma2=(4.0,), seed=0)
    model = DiagAttRegressor(n_heads=R, solver="likelihood", random_state=0).fit(data.X, data.y)
    assert np.isfinite(model.predict(data.X)).all()
    exact = simulate.regression(100, p=R, d=3, s=R, mu=2.0, sigma2=3.0, seed=0)
    model.fit(exact.X, exact.y)
    assert np.isfinite(model.predict(exact.X)).all()


def test_perfect_separation_stays_finite():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5, 3))
    X[:, 0] *= 3
    y = X[:, 0, 0] > 0
    model = DiagAttClassifier(solver="likelihood", random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, y) > 0.9


def test_starts_are_all_tried():
    data = simulate.regression(200, p=5, d=3, mu=(3.0,), sigma2=(3.0,), seed=0)
    fit = starts.fit_likelihood(make_problem(data.X, data.y), LikelihoodSettings(), 1, 0)
    assert {s["start"] for s in fit.starts} >= {"response", "outlier", "random"}
