import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture

from diagatt import RaggedRows, simulate
from diagatt.competitors.two_step import TwoStepClassifier, TwoStepRegressor, fit_mixture, log_odds
from diagatt.metrics import crlr
from tests.estimators.samples import ragged, responses

X = ragged(n=80, d=3)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_mixture_step_is_scikit_learns(kind):
    oracle = GaussianMixture(2, covariance_type=kind, random_state=3).fit(X.values)
    *mixture, steps = fit_mixture(X.values, kind, max_iter=100, seed=3)
    order = np.argsort(oracle.weights_)  # the rarer component first
    np.testing.assert_array_equal(mixture[0], oracle.weights_[order])
    np.testing.assert_array_equal(mixture[1], oracle.means_[order])
    assert steps == oracle.n_iter_
    odds = log_odds(torch.from_numpy(X.values), *mixture).numpy()
    posterior = oracle.predict_proba(X.values)[:, order[1]]
    np.testing.assert_allclose(expit(odds), posterior, atol=1e-10)


@pytest.mark.parametrize("kind", ["gaussian", "two", "three"])
def test_second_step_is_a_ridge_on_the_chosen_rows(kind):
    y = responses(X, kind)
    Model = TwoStepRegressor if kind == "gaussian" else TwoStepClassifier
    model = Model(0.5, active_component=1, n_located=3, random_state=0).fit(X, y)
    located = model.locate(X)
    features = np.zeros((80, 3, 3))
    for i, rows in enumerate(located):
        for place, row in enumerate(rows[rows >= 0]):
            features[i, place] = X[i][row]
    features = features.reshape(80, 9)
    if kind == "gaussian":
        expected = Ridge(0.5).fit(features, y).predict(features)
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-8)
    else:
        oracle = LogisticRegression(C=2.0, tol=1e-12, max_iter=10000).fit(features, y)
        expected = oracle.predict_proba(features)
        np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-4, atol=1e-7)


def test_held_out_samples_choose_the_active_component():
    data = simulate.regression(400, p=6, d=8, mu=(1,), sigma2=(16,), seed=0)
    model = TwoStepRegressor("auto", n_located=1, random_state=0).fit(data.X, data.y)
    losses = {(r["ridge_"], r["active_component_"]): r["loss"] for r in model.selection_}
    assert len(losses) == 6
    assert losses[model.ridge_, model.active_component_] == min(losses.values())
    assert crlr(data.rows, model.locate(data.X)) > 0.95
    swapped = TwoStepRegressor(
        active_component=1 - model.active_component_, n_located=1, random_state=0
    )
    assert crlr(data.rows, swapped.fit(data.X, data.y).locate(data.X)) < 0.2


def test_saturated_posteriors_still_rank_rows():
    rng = np.random.default_rng(0)
    near = rng.normal(size=(200, 1, 1))
    far = 100 + rng.normal(size=(200, 2, 1)) * np.array([[[1.0]], [[3.0]]])[:, 0]
    rows = RaggedRows.from_dense(np.concatenate([near, far], axis=1))
    model = TwoStepRegressor(n_located=3, random_state=0).fit(rows, rng.normal(size=200))
    odds = log_odds(
        torch.from_numpy(rows.values),
        model.mixture_weights_,
        model.mixture_means_,
        model.precision_root_,
    ).numpy()
    order = np.argsort(odds.reshape(200, 3) * (1 - 2 * model.active_component_), axis=1)
    np.testing.assert_array_equal(model.locate(rows), order)


def test_weights_are_not_accepted():
    with pytest.raises(TypeError):
        TwoStepRegressor().fit(X, responses(X), sample_weight=np.ones(80))


def test_unknown_component_is_refused():
    with pytest.raises(ValueError, match=r"active_component must be 0 or 1, .* or 'auto', got 2"):
        TwoStepRegressor(active_component=2).fit(X, responses(X))
