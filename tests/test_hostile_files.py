"""Hostile model files: a valid checksum over nonsense is refused in one sentence, or harmless."""

import copy
import hashlib
import json

import numpy as np
import pytest

from diagatt import (
    DiagAttRegressor,
    modelfile,
)
from diagatt.attributes import OPTIONAL, declared
from tests.estimators.test_base import MODELS, y_of
from tests.estimators.test_base import X as SAMPLES
from tests.hostile_files import (
    MODELS_HERE,
    load,
    parts,
    said,
    sealed,
    with_header,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


# ---------------------------------------------------------------------- what is not hostile


@pytest.mark.parametrize("name", MODELS_HERE)
def test_untouched_files_load(tmp_path, name):
    tensors, document = parts(name)
    loaded = load(name, tmp_path / "m", sealed(tensors, json.dumps(document)))
    assert repr(loaded) == repr(MODELS_HERE[name])


# Compiling the group lasso takes a minute; the golden files of format 1 hold one.
QUICK = [model for model in MODELS if not type(model).__name__.startswith("GroupLasso")]


@pytest.mark.parametrize("model", QUICK, ids=lambda model: type(model).__name__)
def test_every_estimator_declares_what_it_has(tmp_path, model):
    """A fitted attribute without a rule would make a file that cannot be loaded."""
    y = y_of(model)
    fitted = copy.deepcopy(model).fit(SAMPLES, y)
    own = {n for n in vars(fitted) if n.endswith("_") and not n.startswith("_")} - {"members_"}
    rules = set(declared(type(model)))
    assert rules - OPTIONAL <= own <= rules
    fitted.save(tmp_path / "m")
    loaded = type(model).load(tmp_path / "m")
    ours, theirs = ({n for n in vars(m) if not n.startswith("_")} for m in (fitted, loaded))
    assert ours == theirs
    np.testing.assert_array_equal(
        loaded.locate(SAMPLES, **shown(model, y)), fitted.locate(SAMPLES, **shown(model, y))
    )


def shown(model, y):
    return {"y": y} if type(model).__name__.startswith("MDSP") else {}


def test_w_of_the_oldest_files_is_read(tmp_path):
    """Before W had factors, it was the tensor `query_key_`, and there was no `key_`."""
    from tests.golden.test_format1 import FOLDER

    tensors, document = modelfile.read(FOLDER / "paper.safetensors")
    tensors["query_key_"] = tensors.pop("query_")
    del document["fitted"]["key_"]
    modelfile.write(tmp_path / "m", tensors, document)
    expected = DiagAttRegressor.load(FOLDER / "paper.safetensors").query_key_
    np.testing.assert_array_equal(DiagAttRegressor.load(tmp_path / "m").query_key_, expected)


def test_a_model_of_another_machine_keeps_its_device(tmp_path):
    tensors, document = parts("regressor")
    document["parameters"]["device"] = "cuda:1"
    loaded = load("regressor", tmp_path / "m", sealed(tensors, json.dumps(document)))
    assert loaded.device == "cuda:1"


# ---------------------------------------------------------------------- headers

DEEP = 200_000
HEADERS = {
    "deep list": b"[" * DEEP + b"]" * DEEP,
    "deep object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep metadata": b'{"__metadata__":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "unclosed": b"[" * DEEP,
    "list": b"[1, 2]",
    "number": b"7",
    "null": b"null",
    "metadata is null": b'{"__metadata__":null}',
    "metadata is a list": b'{"__metadata__":["sha256"]}',
    "digest is a number": b'{"__metadata__":{"sha256":7}}',
    "two metadata": b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'"},"__metadata__":{}}',
    "not UTF-8": b'{"__metadata__":"\xff"}',
    "huge number": b'{"__metadata__":' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("case", HEADERS)
def test_hostile_headers(tmp_path, case):
    said("regressor", tmp_path / "m", with_header(HEADERS[case]))


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 10**6])
def test_a_header_longer_than_the_file(tmp_path, length):
    said("regressor", tmp_path / "m", length.to_bytes(8, "little") + b"{}")


@pytest.mark.parametrize("entry", [
    {"dtype": "F64", "shape": [2**40, 2**40], "data_offsets": [0, 8]},
    {"dtype": "F64", "shape": [2**62], "data_offsets": [0, 2**63]},
    {"dtype": "F64", "shape": [0, 2**62, 8], "data_offsets": [0, 0]},
    {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
    {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]},
    {"dtype": "Q99", "shape": [1], "data_offsets": [0, 8]},
    {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
    {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]},
    {"dtype": "F64", "shape": "all", "data_offsets": [0, 8]},
    {"dtype": None, "shape": None, "data_offsets": None},
    [],
])  # fmt: skip
def test_hostile_tensor_entries(tmp_path, entry):
    document = json.dumps(parts("regressor")[1])
    text = json.dumps(
        {"__metadata__": {"diagatt": document, "sha256": "0" * 64}, "value_": entry},
        separators=(",", ":"),
    ).encode()
    blank = with_header(text) + bytes(8)
    digest = hashlib.sha256(blank).hexdigest().encode()
    content = blank.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest, 1)
    said("regressor", tmp_path / "m", content)


TEXTS = {
    "deep": ("[" * DEEP + "]" * DEEP, "nested"),
    "rather deep": ("[" * 70 + "]" * 70, "nested more than 60 levels"),
    "list": ("[]", "not a JSON object"),
    "string": ('"estimator"', "not a JSON object"),
    "number": ("NaN", "not a JSON object"),
    "nothing": ("", "not a diagatt file"),
    "words": ("kind: estimator", "not a diagatt file"),
    "empty": ("{}", "does not say which class it holds|not a saved"),
    "duplicate": ('{"kind": "estimator", "kind": "estimator"}', "two entries 'kind'"),
    "digits": ('{"format": ' + "9" * 5000 + "}", "not a diagatt file"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_hostile_texts(tmp_path, case):
    text, message = TEXTS[case]
    found = said("regressor", tmp_path / "m", sealed({}, text))
    assert any(part in found for part in message.split("|"))


def test_duplicate_entries_deep_inside(tmp_path):
    tensors, document = parts("regressor")
    text = json.dumps(document).replace('"ridge":', '"ridge": 7, "ridge":', 1)
    assert "two entries 'ridge'" in said("regressor", tmp_path / "m", sealed(tensors, text))
