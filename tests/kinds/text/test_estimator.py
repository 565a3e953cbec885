import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from diagatt import (
    DiagAttClassifier,
    DiagAttRegressor,
    ModelFileError,
    PooledClassifier,
    PooledRegressor,
)
from diagatt.kinds.text import presets
from diagatt.solvers import Gradient
from diagatt.text import (
    TextClassifier,
    TextRegressor,
    TextRows,
    WordWeight,
    text_estimator,
    top_words,
)

KEYWORDS = {"lovely": 1, "superb": 1, "awful": 0, "hideous": 0}
THINGS = ("chair", "lamp", "bag", "desk", "clock", "phone")


@pytest.fixture(scope="module")
def comments():
    texts = [f"My {word} {t} is here." for t in THINGS for word in KEYWORDS]
    texts += [f"That {t}, I say, was {word}!" for t in THINGS for word in KEYWORDS]
    return texts, np.array(list(KEYWORDS.values()) * (2 * len(THINGS)))


def quick(kind):
    """The default with fewer starts."""
    return text_estimator(48, kind, n_restarts=2, max_epochs=100, ridge=1.0)


@pytest.fixture(scope="module")
def fitted(comments):
    return TextClassifier(estimator=quick(DiagAttClassifier), random_state=0).fit(*comments)


NEW = {
    "Your hideous basket is here.": "hideous",
    "That kettle, I say, was superb!": "superb",
    "My lovely spoon is here.": "lovely",
}


def test_responses_in_another_order_than_the_texts_are_refused(comments):
    ids = [f"t{i:02d}" for i in range(len(comments[0]))]
    texts, y = (pd.Series(one, index=ids) for one in comments)
    model = TextClassifier(estimator=PooledClassifier(), random_state=0)
    aligned = model.fit(texts, y).predict(texts)
    np.testing.assert_array_equal(clone(model).fit(*comments).predict(comments[0]), aligned)
    with pytest.raises(ValueError, match=r"y\[0\] is labelled 't47', but sample 0 of X is 't00'"):
        model.fit(texts, y[::-1])
    with pytest.raises(ValueError, match=r"y\[0\] is labelled 't47'"):
        PooledClassifier().fit(TextRows().fit_transform(texts), y[::-1])


def test_it_finds_the_deciding_words_of_new_texts(fitted):
    located = fitted.locate(list(NEW))
    assert [w[0].word for w in located] == list(NEW.values())
    for text, (word,) in zip(NEW, located, strict=True):
        assert text[word.start : word.stop] == word.word
        assert 0 < word.weight <= 1
    assert fitted.predict(list(NEW)).tolist() == [0, 1, 1]
    np.testing.assert_allclose(fitted.predict_proba(list(NEW)).sum(axis=1), 1)


MODEL = {"score_form": "affine", "coupling": "independent"}
GRADIENT = {
    "parameterization": "factored",
    "rank": 2,
    "temperature": 0.1,
    "score_ridge": 0.0,
    "optimizer": "adam",
    "learning_rate": 5e-3,
    "batch_size": 256,
    "row_dropout": 0.1,
    "init": "zero",
    "init_scale": 0.1,
    "n_restarts": 24,
}


@pytest.mark.parametrize(("n", "epochs"), [(20, 60), (2400, 6), (15_552, 1), (10**6, 1)])
def test_the_default_is_the_preset_with_about_60_steps(n, epochs):
    for pipeline, kind in [(TextClassifier, DiagAttClassifier), (TextRegressor, DiagAttRegressor)]:
        solver = Gradient(**GRADIENT, max_epochs=epochs)
        expected = kind(**MODEL, solver=solver, ridge=n / 50).get_params()
        found = pipeline()._default_estimator(n).get_params()
        assert isinstance(found.pop("solver"), type(expected.pop("solver")))
        assert found == expected


@pytest.mark.parametrize(
    ("pipeline", "kind"), [(TextClassifier, DiagAttClassifier), (TextRegressor, DiagAttRegressor)]
)
def test_the_keyword_preset_reads_three_parts_of_the_joined_layers(pipeline, kind):
    blend = pipeline(preset="keyword")._default_estimator(3200)
    assert [(type(m), blocks) for _, m, blocks in blend.members] == [
        (kind, (0, 3)),
        (kind, (1,)),
        (kind, (2,)),
    ]
    assert [m.solver.max_epochs for _, m, _ in blend.members] == [17, 10, 10]  # 120 and 1000 steps
    assert blend.members[0][1].ridge == pytest.approx(6.4)


def test_the_keyword_preset_finds_new_words_and_survives_a_file(comments, tmp_path, monkeypatch):
    # 48 short texts need a quarter of the training.
    monkeypatch.setitem(presets._KEYWORD, "n_restarts", 6)
    monkeypatch.setitem(presets._KEYWORD_LAYER, "steps", 250)
    model = TextClassifier(preset="keyword", random_state=0).fit(*comments)
    new = ["My gorgeous spoon is here.", "That kettle, I say, was terrible!"]
    assert [w[0].word for w in model.locate(new)] == ["gorgeous", "terrible"]
    assert model.predict(new).tolist() == [1, 0]
    model.save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model")
    assert loaded.preset == "keyword"
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    assert loaded.locate(new) == model.locate(new)


def test_presets_for_texts_belong_to_texts_alone():
    for kind in (DiagAttClassifier, DiagAttRegressor):
        for name in ("text", "keyword", "keyword-layer"):
            with pytest.raises(ValueError, match=rf"unknown preset '{name}': choose 'paper'"):
                kind.preset(name)
    with pytest.raises(ValueError, match="fixes heads, family and solver: leave n_heads out"):
        text_estimator(100, preset="keyword", n_heads=2)


def test_an_unknown_preset_is_named(comments):
    with pytest.raises(ValueError, match="preset must be 'text' or 'keyword', got 'word'"):
        TextClassifier(preset="word").fit(*comments)


def test_the_parts_by_hand_give_the_same(fitted, comments):
    rows = TextRows(layers="joined").transform(comments[0])
    by_hand = quick(DiagAttClassifier).set_params(random_state=0).fit(rows, comments[1])
    new = TextRows(layers="joined").transform(list(NEW))
    np.testing.assert_allclose(fitted.predict_proba(list(NEW)), by_hand.predict_proba(new))
    attention = fitted.attention(list(NEW))
    for words, own in zip(attention, by_hand.attention(new), strict=True):
        np.testing.assert_allclose([w.weight for w in words], own[:, 0], rtol=1e-5)
        assert sum(w.weight for w in words) == pytest.approx(1, abs=1e-5)


def test_top_words_are_the_keywords_of_their_class(fitted, comments):
    table = fitted.top_words(*comments, k=2)
    assert {label: {w for w, _ in words} for label, words in table.items()} == {
        0: {"awful", "hideous"},
        1: {"lovely", "superb"},
    }
    assert table[1][0][1] == 2 * len(THINGS)


def test_words_count_once_a_text_without_punctuation_or_case():
    def word(text):
        return WordWeight(text, 0, len(text), 0.5)

    located = [[word("Good"), word("good")], [word("!")], [word("bad"), word("GOOD")]]
    assert top_words(located, ["p", "p", "p"]) == {"p": [("good", 2), ("bad", 1)]}
    with pytest.raises(ValueError, match="3 texts, 2 labels"):
        top_words(located, [0, 1])


def test_files_bring_the_pipeline_back(fitted, tmp_path):
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    loaded = TextClassifier.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(list(NEW)), fitted.predict_proba(list(NEW)))
    assert loaded.locate(list(NEW)) == fitted.locate(list(NEW))
    assert loaded.text_rows_.get_params() == fitted.text_rows_.get_params()
    loaded.save(path)
    assert TextClassifier.load(path).classes_.tolist() == [0, 1]
    with pytest.raises(ModelFileError, match=r"load it with TextClassifier\.load"):
        TextRegressor.load(path)
    with pytest.raises(ModelFileError, match="is not a saved estimator but a pipeline"):
        DiagAttClassifier.load(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError):
        TextClassifier.load(path)


def test_a_loaded_pipeline_refuses_another_language_model(tiny_bert, comments, tmp_path):
    rows = TextRows(tiny_bert, layers=1, cache=tmp_path / "cache")
    model = TextClassifier(text_rows=rows, estimator=PooledClassifier()).fit(*comments)
    model.save(tmp_path / "m.safetensors")
    loaded = TextClassifier.load(tmp_path / "m.safetensors")
    assert loaded.text_rows_.cache is None
    loaded.text_rows_.model = "minilm"
    with pytest.raises(ValueError, match="is not the one this TextRows was fitted with"):
        loaded.predict(["good"])


def test_competitors_fit_in(comments):
    model = TextClassifier(estimator=PooledClassifier(ridge=1.0, n_located=2)).fit(*comments)
    words = model.locate(list(NEW))
    assert all(len(w) == 2 and math.isnan(w[0].weight) for w in words)
    assert not hasattr(model, "attention")
    assert clone(model).estimator.n_located == 2


def test_numbers_are_predicted_and_sorted_into_low_and_high(comments, tmp_path):
    texts, y = comments
    model = TextRegressor(estimator=quick(DiagAttRegressor), random_state=0)
    model.fit(texts, 10.0 + 4 * y)
    low, high = model.predict(["My awful spoon is here.", "My lovely spoon is here."])
    assert low < 12 < high
    assert set(model.top_words(texts, y, k=1)) == {"low", "high"}
    model.save(tmp_path / "m.safetensors")
    loaded = TextRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(texts[:3]), model.predict(texts[:3]))
    assert TextRegressor(estimator=PooledRegressor()).fit(texts, y).predict(texts[:2]).shape == (2,)
