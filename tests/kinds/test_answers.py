"""Answers are those of the model, from rows and a module that are made once."""

import numpy as np
import pytest

from diagatt import (
    BlendedClassifier,
    DiagAttClassifier,
    DiagAttRegressor,
    GatedAttentionClassifier,
    PooledRegressor,
    simulate,
)
from diagatt.kinds.answers import answer

QUICK = {"solver": "likelihood", "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return simulate.classification(80, p=(3, 6), d=3, seed=0)


@pytest.mark.parametrize(
    "model",
    [
        DiagAttRegressor(**QUICK),
        DiagAttClassifier(2, **QUICK),
        GatedAttentionClassifier(n_located=1, max_epochs=2, random_state=0),
        BlendedClassifier([("all", DiagAttClassifier(**QUICK), None)]),
        PooledRegressor(n_located=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_answers_are_those_of_the_model(data, model):
    Z = np.arange(80.0)[:, None] / 80 if isinstance(model, DiagAttRegressor) else None
    given = {} if Z is None else {"covariates": Z}
    model.fit(data.X, data.y, **given)
    answers = answer(model, data.X, Z)
    np.testing.assert_array_equal(answers.prediction, model.predict(data.X, **given))
    np.testing.assert_array_equal(answers.located, model.locate(data.X))
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(data.X, **given)
        np.testing.assert_array_equal(answers.probability, expected)
    else:
        assert answers.probability is None
    if hasattr(model, "attention"):
        for found, own in zip(answers.weights, model.attention(data.X), strict=True):
            np.testing.assert_array_equal(found, own)
        for i, rows in enumerate(answers.located):
            expected = answers.weights[i][rows, np.arange(len(rows))]
            np.testing.assert_array_equal(answers.located_weights[i], expected)
    else:
        assert answers.weights is None
        assert answers.located_weights is None
    if hasattr(model, "scores"):
        for found, own in zip(answers.scores, model.scores(data.X), strict=True):
            np.testing.assert_array_equal(found, own)
    else:
        assert answers.scores is None


def test_one_module_answers_all_questions(data, monkeypatch):
    model = DiagAttClassifier(**QUICK).fit(data.X, data.y)
    built, build = [], DiagAttClassifier.to_module
    monkeypatch.setattr(DiagAttClassifier, "to_module", lambda self: built.append(1) or build(self))
    answers = answer(model, data.X)
    for name in ("prediction", "probability", "located", "weights", "scores", "located_weights"):
        assert getattr(answers, name) is getattr(answers, name)
    assert built == [1]
    model.predict(data.X)
    assert built == [1, 1]  # the model itself is not changed


def test_an_answer_is_computed_when_it_is_asked_for(data, monkeypatch):
    model = DiagAttClassifier(**QUICK).fit(data.X, data.y)
    monkeypatch.setattr(DiagAttClassifier, "scores", lambda *_: pytest.fail("not needed"))
    assert answer(model, data.X).located.shape == (80, 1)


def test_missing_rows_have_no_weight(data):
    model = GatedAttentionClassifier(n_located=1, max_epochs=2, random_state=0)
    answers = answer(model.fit(data.X, data.y), data.X)
    answers.located[3] = -1
    assert np.flatnonzero(np.isnan(answers.located_weights[:, 0])).tolist() == [3]
