"""Covariates through scikit-learn's tools, against loops written by hand."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from diagatt import (
    BlendedRegressor,
    DiagAttClassifier,
    DiagAttRegressor,
    PooledRegressor,
    WithCovariates,
    simulate,
)
from diagatt.images import ImageClassifier
from diagatt.scoring import scorer
from diagatt.solvers import Likelihood, Uniform

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
N = 60
FOLDS = KFold(3, shuffle=True, random_state=0)
NUMBERS = simulate.regression(N, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
CLASSES = simulate.classification(N, p=4, d=3, seed=0)
Z = np.random.default_rng(1).normal(size=(N, 2))
FRAME = pd.DataFrame(Z, columns=["age", "dose"])
Y = NUMBERS.y + 10 * Z[:, 0]
LABELS = np.where(CLASSES.y + Z[:, 0] > 0.5, "ill", "well")
WEIGHTS = np.random.default_rng(2).uniform(0.5, 2, size=N)
MODEL = DiagAttRegressor(solver=Uniform())  # how rows are weighed does not matter here
CLASSIFIER = DiagAttClassifier(solver=Uniform())


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def lines(given, where):
    return given.iloc[where] if hasattr(given, "iloc") else given[where]


def by_hand(model, X, y, given, measure, method="predict", folds=FOLDS, weights=None):
    """Fit and score every fold in a loop."""
    found = []
    for train, test in folds.split(np.zeros(len(y))):
        extra = {} if weights is None else {"sample_weight": weights[train]}
        fitted = clone(model).fit(X[train], y[train], covariates=lines(given, train), **extra)
        prediction = getattr(fitted, method)(X[test], covariates=lines(given, test))
        found.append(measure(y[test], prediction))
    return found


def test_cross_val_score_is_the_loop_by_hand():
    scores = cross_val_score(MODEL, NUMBERS.X, Y, cv=FOLDS, params={"covariates": Z})
    np.testing.assert_allclose(scores, by_hand(MODEL, NUMBERS.X, Y, Z, r2_score))
    task = (DiagAttClassifier(solver=Likelihood(), random_state=0), CLASSES.X, LABELS)
    scores = cross_val_score(*task, cv=FOLDS, params={"covariates": FRAME})
    np.testing.assert_allclose(scores, by_hand(*task, FRAME, accuracy_score))


def test_covariates_matter_and_reach_the_fold_they_belong_to():
    # Without the covariate, or with that of other samples, the score falls.
    right, wrong = (
        cross_val_score(MODEL, NUMBERS.X, Y, cv=FOLDS, params={"covariates": C}).mean()
        for C in (Z, Z[::-1])
    )
    assert right > wrong + 0.2


def test_scores_by_name_pass_covariates_to_predictions():
    scoring = {"auc": scorer("roc_auc"), "loss": scorer("neg_log_loss")}
    found = cross_validate(
        *(CLASSIFIER, CLASSES.X, LABELS),
        **{"cv": FOLDS, "scoring": scoring, "params": {"covariates": Z}},
    )
    task = (CLASSIFIER, CLASSES.X, LABELS, Z)
    auc = by_hand(*task, lambda y, p: roc_auc_score(y == "well", p[:, 1]), "predict_proba")
    np.testing.assert_allclose(found["test_auc"], auc)
    loss = by_hand(*task, lambda y, p: -log_loss(y, p, labels=["ill", "well"]), "predict_proba")
    np.testing.assert_allclose(found["test_loss"], loss)


def test_weights_are_used_where_they_are_requested():
    model = clone(MODEL).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    params = {"covariates": Z, "sample_weight": WEIGHTS}
    scores = cross_val_score(model, NUMBERS.X, Y, cv=FOLDS, params=params)
    expected = by_hand(MODEL, NUMBERS.X, Y, Z, r2_score, weights=WEIGHTS)
    np.testing.assert_allclose(scores, expected)
    weighed = scorer("r2").set_score_request(sample_weight=True)
    model = clone(MODEL).set_fit_request(sample_weight=False)
    scores = cross_val_score(model, NUMBERS.X, Y, cv=FOLDS, scoring=weighed, params=params)
    parts = (test for _, test in FOLDS.split(Y))
    expected = by_hand(
        *(MODEL, NUMBERS.X, Y, Z),
        lambda y, m: r2_score(y, m, sample_weight=WEIGHTS[next(parts)]),
    )
    np.testing.assert_allclose(scores, expected)


def test_grid_search_is_the_loop_by_hand():
    grid = {"ridge": [0.1, 100.0]}
    search = GridSearchCV(MODEL, grid, cv=FOLDS).fit(NUMBERS.X, Y, covariates=Z)
    models = [clone(MODEL).set_params(ridge=ridge) for ridge in grid["ridge"]]
    expected = [np.mean(by_hand(model, NUMBERS.X, Y, Z, r2_score)) for model in models]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
    best = models[int(np.argmax(expected))].fit(NUMBERS.X, Y, covariates=Z)
    everything = {"X": NUMBERS.X, "y": Y, "covariates": Z}
    np.testing.assert_allclose(search.score(**everything), best.score(**everything))
    found = search.best_estimator_.predict(NUMBERS.X, covariates=Z)
    np.testing.assert_allclose(found, best.predict(NUMBERS.X, covariates=Z))


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_cross_val_predict_is_the_loop_by_hand(method):
    X = WithCovariates(CLASSES.X, FRAME)
    found = cross_val_predict(CLASSIFIER, X, LABELS, cv=FOLDS, method=method)
    parts = by_hand(CLASSIFIER, CLASSES.X, LABELS, FRAME, lambda _, p: p, method)
    for (_, test), expected in zip(FOLDS.split(LABELS), parts, strict=True):
        np.testing.assert_array_equal(found[test], expected)


def test_permutation_test_score_is_the_loop_by_hand():
    score, permuted, p = permutation_test_score(
        *(MODEL, NUMBERS.X, Y),
        **{"cv": FOLDS, "n_permutations": 3, "random_state": 0, "params": {"covariates": Z}},
    )
    np.testing.assert_allclose(score, np.mean(by_hand(MODEL, NUMBERS.X, Y, Z, r2_score)))
    rng = np.random.RandomState(0)
    expected = [
        np.mean(by_hand(MODEL, NUMBERS.X, Y[rng.permutation(N)], Z, r2_score)) for _ in range(3)
    ]
    np.testing.assert_allclose(permuted, expected)
    assert p == 0.25  # the best of four


def test_learning_curve_is_the_loop_by_hand():
    _, _, found = learning_curve(
        *(MODEL, NUMBERS.X, Y),
        **{"cv": FOLDS, "train_sizes": [20, 40], "params": {"covariates": Z}},
    )
    for size, scores in zip([20, 40], found, strict=True):
        expected = []
        for train, test in FOLDS.split(Y):
            part = train[:size]
            model = clone(MODEL).fit(NUMBERS.X[part], Y[part], covariates=Z[part])
            expected.append(r2_score(Y[test], model.predict(NUMBERS.X[test], covariates=Z[test])))
        np.testing.assert_allclose(scores, expected)


def test_groups_reach_the_folds_and_the_fit(monkeypatch):
    sites = np.arange(N) // 6
    seen = []
    fit = DiagAttRegressor.fit

    def watched(self, X, y, sample_weight=None, covariates=None, groups=None):
        seen.append(groups)
        return fit(self, X, y, sample_weight, covariates, groups)

    monkeypatch.setattr(DiagAttRegressor, "fit", watched)
    params = {"covariates": Z, "groups": sites}
    cross_val_score(MODEL, NUMBERS.X, Y, cv=GroupKFold(2), params=params)
    first, second = (set(groups) for groups in seen)
    assert first | second == set(sites)
    assert not first & second


def test_offsets_are_cut_along():
    offset = np.random.default_rng(3).normal(size=N)
    scores = cross_val_score(CLASSIFIER, CLASSES.X, LABELS, cv=FOLDS, params={"offset": offset})
    expected = []
    for train, test in FOLDS.split(LABELS):
        model = clone(CLASSIFIER).fit(CLASSES.X[train], LABELS[train], offset=offset[train])
        predicted = model.predict(CLASSES.X[test], offset=offset[test])
        expected.append(accuracy_score(LABELS[test], predicted))
    np.testing.assert_allclose(scores, expected)


def test_requests_are_part_of_a_pipeline():
    scale = FunctionTransformer(lambda X: X)
    model = make_pipeline(scale, MODEL)
    scores = cross_val_score(model, NUMBERS.X, Y, cv=FOLDS, params={"covariates": Z})
    np.testing.assert_allclose(scores, by_hand(MODEL, NUMBERS.X, Y, Z, r2_score))


def test_what_takes_covariates_asks_for_them_and_inputs_are_no_metadata():
    for model in (MODEL, CLASSIFIER, BlendedRegressor([]), ImageClassifier()):
        asked = model.get_metadata_routing()
        assert asked.fit.requests["covariates"] is True
        for method in (asked.predict, asked.score):
            requested = {k: v for k, v in method.requests.items() if k != "sample_weight"}
            assert requested["covariates"] is True
            assert set(requested.values()) == {True}  # offsets and exposures, where there are any
        assert asked.score.requests["sample_weight"] is None
        assert "inputs" not in asked.fit.requests
    assert "covariates" not in PooledRegressor().get_metadata_routing().fit.requests


def test_covariates_that_nobody_requests_are_refused():
    model = clone(MODEL).set_fit_request(covariates=False).set_score_request(covariates=False)
    with pytest.raises(TypeError, match="covariates"):
        cross_val_score(model, NUMBERS.X, Y, cv=FOLDS, params={"covariates": Z})


def test_requests_survive_a_fit_and_do_not_enter_a_file(tmp_path):
    model = clone(MODEL).set_fit_request(sample_weight=True).fit(NUMBERS.X, Y)
    assert model.get_metadata_routing().fit.requests["sample_weight"] is True
    model.save(tmp_path / "m.safetensors")
    same = DiagAttRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(same.predict(NUMBERS.X), model.predict(NUMBERS.X))


def test_without_routing_a_sentence_says_what_to_do():
    with sklearn.config_context(enable_metadata_routing=False):
        with pytest.warns(UserWarning, match=r"set_config\(enable_metadata_routing=True\)"):
            scores = cross_val_score(MODEL, NUMBERS.X, Y, cv=FOLDS, params={"covariates": Z})
        assert np.isnan(scores).all()
    with pytest.warns(UserWarning, match=r"scoring=diagatt\.scoring\.scorer\(name\)"):
        cross_val_score(MODEL, NUMBERS.X, Y, cv=FOLDS, scoring="r2", params={"covariates": Z})


def test_scorers_refuse_what_they_do_not_know():
    with pytest.raises(ValueError, match="best_guess"):
        scorer("best_guess")
    with pytest.raises(TypeError, match="takes covariates and sample_weight, not groups"):
        scorer("r2").set_score_request(groups=True)
    assert repr(scorer("r2")) == "scorer('r2')"
