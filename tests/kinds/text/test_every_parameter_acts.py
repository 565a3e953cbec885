"""No parameter of what reads texts is idle: it changes a result, a file, what is shown, or raises.

The parameters are those of `__init__`; one without a case below fails.
"""

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, PooledClassifier, PooledRegressor
from diagatt.kinds.text import rows as text_rows
from diagatt.solvers import Gradient
from diagatt.text import TextClassifier, TextRegressor, TextRows, TruncatedTextWarning
from tests.solvers.test_every_parameter_acts import differ, parameters_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

TEXTS = ["good sounds", "a bad sound", "this is good", "so bad and long", "fine", "worse"] * 4
Y = [1, 0, 1, 0, 1, 0] * 4


def rows_of(**given):
    found = TextRows(**given).fit(TEXTS).transform(TEXTS)
    return {"values": found.values, "offsets": found.offsets}


def check_model(tiny_bert, **_):
    with pytest.raises((ValueError, OSError), match="no-such-model"):
        TextRows(model=f"{tiny_bert}/no-such-model").fit(TEXTS)


def check_layers(tiny_bert, **_):
    assert differ(rows_of(model=tiny_bert, layers=0), rows_of(model=tiny_bert, layers=2))


def check_merge(tiny_bert, **_):
    assert differ(rows_of(model=tiny_bert), rows_of(model=tiny_bert, merge="first"))


def check_max_length(tiny_bert, **_):
    with pytest.warns(TruncatedTextWarning):
        short = rows_of(model=tiny_bert, max_length=5)
    assert differ(rows_of(model=tiny_bert), short)


def check_batch_size(tiny_bert, monkeypatch, **_):
    sizes, embed = [], text_rows.hidden_vectors
    monkeypatch.setattr(
        text_rows,
        "hidden_vectors",
        lambda model, t, at: sizes.append(len(t)) or embed(model, t, at),
    )
    rows_of(model=tiny_bert, batch_size=4)
    assert sizes == [4, 2]  # of the six different texts


def check_device(tiny_bert, **_):
    with pytest.raises(ValueError, match="device must be a torch device that this machine has"):
        rows_of(model=tiny_bert, device="meta")


def check_cache(tiny_bert, tmp_path, **_):
    assert not differ(rows_of(model=tiny_bert), rows_of(model=tiny_bert, cache=tmp_path / "kept"))
    assert any((tmp_path / "kept").rglob("*"))


def check_verbose(tiny_bert, capsys, **_):
    rows_of(model=tiny_bert)
    assert capsys.readouterr().out == ""
    rows_of(model=tiny_bert, verbose=True)
    assert "embedding" in capsys.readouterr().out


@pytest.mark.parametrize("name", TextRows._get_param_names())
def test_every_parameter_of_text_rows_acts(name, tiny_bert, tmp_path, monkeypatch, capsys):
    at_hand = {"tmp_path": tmp_path, "monkeypatch": monkeypatch, "capsys": capsys}
    globals()[f"check_{name}"](tiny_bert=tiny_bert, **at_hand)


@pytest.mark.parametrize("name", TextRows._get_param_names())
def test_every_parameter_of_text_rows_has_values_that_are_refused(name):
    with pytest.raises(ValueError, match=rf"{name} must be .*, got <object"):
        TextRows(**{name: object()}).fit(TEXTS)


# ---------------------------------------------------------------------- estimators

KINDS = {
    TextClassifier: (DiagAttClassifier, PooledClassifier),
    TextRegressor: (DiagAttRegressor, PooledRegressor),
}
SHORT = Gradient(optimizer="adam", max_epochs=2, batch_size=8)


def fitted(kind, tiny_bert, **given):
    inner = KINDS[kind][0](solver=SHORT)
    options = {"text_rows": TextRows(tiny_bert), "estimator": inner, "random_state": 0}
    model = kind(**{**options, **given}).fit(TEXTS, Y)
    predict = getattr(model, "predict_proba", model.predict)
    return {"predict": predict(TEXTS)}


@pytest.mark.parametrize(("kind", "name"), parameters_of(KINDS))
def test_every_parameter_of_an_estimator_of_texts_acts(kind, name, tiny_bert):
    if name == "preset":  # of the default estimator, whose fit takes long
        texts, keyword = (kind(preset=preset) for preset in ("text", "keyword"))
        assert repr(texts._default_estimator(24)) != repr(keyword._default_estimator(24))
        return
    value = {
        "text_rows": TextRows(tiny_bert, layers=0),
        "estimator": KINDS[kind][1](),
        "random_state": 1,
    }[name]
    before = fitted(kind, tiny_bert)
    assert not differ(before, fitted(kind, tiny_bert))
    assert differ(before, fitted(kind, tiny_bert, **{name: value}))


@pytest.mark.parametrize(("kind", "name"), parameters_of(KINDS))
def test_every_parameter_of_an_estimator_of_texts_has_values_that_are_refused(kind, name):
    with pytest.raises(ValueError, match=rf"{name} must be .*, got <object"):
        kind(**{name: object()}).fit(TEXTS, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_preset_of_the_default_is_refused_beside_another_estimator(kind, tiny_bert):
    with pytest.raises(ValueError, match=r"preset 'keyword' .* an estimator is given"):
        fitted(kind, tiny_bert, preset="keyword")


def test_texts_are_embedded_alike_in_batches_of_any_size(tiny_bert):
    one, all_ = (rows_of(model=tiny_bert, batch_size=size)["values"] for size in (1, 64))
    np.testing.assert_allclose(one, all_, atol=1e-5)
