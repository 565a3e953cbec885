"""Model files of format 1 load and answer as they did when they were written.

The files were written by the version before solvers became objects. A file holds what a user had
fitted then: it may be read, but never written again.
"""

from pathlib import Path

import numpy as np
import pytest

from diagatt import modelfile
from diagatt.persistence import restore
from tests.golden.cases import draw

HERE = Path(__file__).parent / "format1"
FILES = sorted(path.stem for path in HERE.glob("*.safetensors"))
TEXTS = ["a good film", "a bad film", "good and nice", "bad and dull", "this was good"]
TEXTS += ["this was bad"]


def load(name):
    """Read a file with whichever class wrote it."""
    tensors, document = modelfile.read(HERE / f"{name}.safetensors")
    assert document["format"] == 1
    if name == "text":
        from diagatt.text import TextClassifier

        return TextClassifier.from_document(tensors, document)
    if name == "image":
        from diagatt.images import ImageClassifier

        return ImageClassifier.from_document(tensors, document)
    return restore(tensors, document, name)


def samples(name):
    """What the model was asked about, and what it was told beside."""
    families = {"gradient": "multinomial", "auto": "bernoulli", "pooled": "bernoulli"}
    X, y, Z, _ = draw(families.get(name, "gaussian"), n=80)
    if name == "image":
        X = np.random.default_rng(0).random((12, 8, 8))
        X[6:, 2:4, 4:6] += 2
    if name == "text":
        X = TEXTS
    return X, {"likelihood": {"covariates": Z}, "mdsp": {"y": y}}.get(name, {})


def test_there_is_a_file_of_every_kind():
    assert len(FILES) == 13


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_format_1_answers_as_it_did(name):
    expected = np.load(HERE / "answers.npz")
    model = load(name)
    X, beside = samples(name)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    answer = expected[f"{name}/predict"]
    scale = np.abs(answer).max()
    np.testing.assert_allclose(predict(X, **beside), answer, rtol=0, atol=1e-6 * scale)
    if f"{name}/locate" in expected:
        beside.pop("covariates", None)
        np.testing.assert_array_equal(model.locate(X, **beside), expected[f"{name}/locate"])


@pytest.mark.parametrize("name", [name for name in FILES if name != "text"])
def test_a_file_of_format_1_is_written_again_in_the_present_one(name, tmp_path):
    model = load(name)
    model.save(tmp_path / "again")
    again = type(model).load(tmp_path / "again")
    assert repr(again) == repr(model)
    X, beside = samples(name)
    np.testing.assert_array_equal(again.predict(X, **beside), model.predict(X, **beside))
