"""What the page is told agrees with what the estimator says."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt import DiagAttRegressor, GatedAttentionRegressor, PooledRegressor, RaggedRows
from diagatt.metrics import class_scores, crlr, number_scores, rmse
from diagatt.report.page import metrics, model_facts
from diagatt.report.samples import NEAR, collect
from tests.models import regressor


def test_classes(reviews):
    model, new = reviews.model, reviews.data
    samples = collect(model, new.X, new.y, true_rows=new.rows)
    certainty = model.certainty(new.X)
    np.testing.assert_array_equal(samples.located, certainty.rows)
    np.testing.assert_allclose(samples.posterior, certainty.posterior)
    np.testing.assert_array_equal(samples.ambiguous, certainty.ambiguous.any(axis=1))
    predicted = model.predict(new.X)
    assert [samples.labels[k] for k in samples.prediction] == predicted.tolist()
    np.testing.assert_array_equal(samples.right, predicted == new.y)
    chance = model.predict_proba(new.X)
    np.testing.assert_allclose(samples.confidence, chance.max(axis=1))
    truth = (new.y == "positive").astype(int)
    np.testing.assert_allclose(samples.error, 1 - chance[np.arange(len(truth)), truth])
    told = {name: value for name, value, _ in metrics(model, samples)}
    assert told["Accuracy"] == f"{100 * model.score(new.X, new.y):.1f} %"
    scores = class_scores(truth, chance)
    assert told["AUC"] == f"{scores['auc']:.3f}"
    assert told["Log score"] == f"{scores['log_score']:.3f}".replace("-", "−")
    assert told["Rows found"] == f"{100 * crlr(new.rows, certainty.rows):.1f} %"


def test_numbers(two_heads):
    model, new = two_heads.model, two_heads.data
    samples = collect(model, new.X, new.y)
    residual = np.abs(new.y - model.predict(new.X))
    error = rmse(new.y, model.predict(new.X))
    np.testing.assert_allclose(samples.error, residual)
    np.testing.assert_array_equal(samples.right, residual <= NEAR * error)
    np.testing.assert_allclose(samples.confidence, model.certainty(new.X).posterior.min(axis=1))
    told = {name: value for name, value, _ in metrics(model, samples)}
    assert told["RMSE"] == f"{error:.4g}"
    assert float(told["R²"]) == pytest.approx(model.score(new.X, new.y), abs=1e-3)
    assert dict(model_facts(model, samples))["rows per sample"] == "15"


def test_poisson_tells_its_log_score_and_covariates_reach_the_prediction():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(80, 3, 2)), rng.normal(size=(80, 1))
    y = rng.poisson(2.0, size=80)
    model = regressor(family="poisson", solver="gradient", random_state=0, max_epochs=300)
    model.fit(X, y, covariates=Z)
    samples = collect(model, X, y, covariates=Z)
    np.testing.assert_allclose(samples.prediction, model.predict(X, Z))
    told = {name: value for name, value, _ in metrics(model, samples)}
    log_score = number_scores(y, model.predict(X, Z), "poisson")["log_score"]
    assert told["Log score"] == f"{log_score:.3f}".replace("-", "−")


def test_a_class_the_fit_never_saw_is_wrong_and_has_no_log_score(reviews):
    model, new = reviews.model, reviews.data
    y = new.y.astype(object).copy()
    y[0] = "neither"
    samples = collect(model, new.X, y)
    assert samples.labels == ["negative", "positive", "neither"]
    assert not samples.right[0]
    assert samples.error[0] == 1
    assert "Log score" not in {name for name, _, _ in metrics(model, samples)}


def test_without_responses_nothing_is_right_or_wrong(reviews):
    samples = collect(reviews.model, reviews.data.X)
    assert samples.right is None
    assert samples.error is None
    assert [name for name, _, _ in metrics(reviews.model, samples)] == ["Unambiguous"]


def test_another_estimator_with_attention_but_no_scores():
    X, y = np.random.default_rng(0).normal(size=(30, 3, 2)), np.arange(30.0)
    model = GatedAttentionRegressor(max_epochs=20, optimizer="adam", random_state=0).fit(X, y)
    samples = collect(model, X, y)
    assert samples.scores is None
    largest = np.maximum.reduceat(samples.weights, samples.offsets[:-1])
    np.testing.assert_array_equal(samples.posterior, largest)
    np.testing.assert_allclose(np.add.reduceat(samples.weights, samples.offsets[:-1]), 1, rtol=1e-5)
    assert dict(model_facts(model, samples))["estimator"] == "GatedAttentionRegressor"


def test_true_rows_may_be_sets_and_may_be_unknown_for_some_samples(two_heads):
    model, X = two_heads.model, two_heads.data.X[:3]
    located = model.locate(X)
    truth = [set(located[0].tolist()), set(), {(located[2, 0] + 1) % 15}]
    samples = collect(model, X, true_rows=truth)
    assert [set(rows) for rows in samples.true_rows] == truth
    told = {name: value for name, value, _ in metrics(model, samples)}
    found = 1 if truth[2] & set(located[2].tolist()) else 0
    assert told["Rows found"] == f"{100 * (1 + found) / 2:.1f} %"
    unknown = collect(model, X, true_rows=[[], [], []])
    assert "Rows found" not in {name for name, _, _ in metrics(model, unknown)}


def test_estimators_without_attention_are_refused():
    X, y = np.random.default_rng(0).normal(size=(30, 3, 2)), np.arange(30.0)
    model = PooledRegressor().fit(X, y)
    with pytest.raises(TypeError, match="PooledRegressor gives its rows no attention"):
        collect(model, X)


DOT = np.zeros((4, 4), np.uint8)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"y": [1.0]}, "y has shape"),
        ({"y": [np.nan, 1.0]}, "y of sample 0 is nan"),
        ({"ids": ["a"]}, "ids has 1 entries, X has 2 samples"),
        ({"texts": ["ab", "c"]}, "texts and spans belong together"),
        ({"texts": ["ab", "c"], "spans": [[(0, 1), (1, 3)], [(0, 1)]]}, "sample 0, row 1: span"),
        ({"texts": ["ab", "c"], "spans": [[(0, 1)], [(0, 1)]]}, "spans of sample 0 have shape"),
        ({"images": [np.zeros((2, 2))] * 2, "boxes": [[], []]}, "image 0 is float64"),
        (
            {"images": [DOT] * 2, "boxes": [[(0, 0, 4, 4)] * 2, [(0, 1, 4, 4)]]},
            "sample 1, row 0: box",
        ),
        ({"true_rows": [[0], [1]]}, "true_rows of sample 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(payload, message):
    rng = np.random.default_rng(0)
    train = RaggedRows(rng.normal(size=(60, 2)), np.arange(0, 61, 2))
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(train, np.arange(30.0))
    X = [np.zeros((2, 2)), np.ones((1, 2))]
    with pytest.raises(ValueError, match=message):
        collect(model, X, **payload)
