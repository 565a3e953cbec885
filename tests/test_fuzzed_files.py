"""Model files damaged at random: they are refused in one sentence, or harmless."""

import copy
import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diagatt import (
    ModelFileError,
    modelfile,
)
from tests.hostile_files import (
    FUZZED,
    MODELS_HERE,
    PARTS,
    X,
    Y,
    parts,
    sealed,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


# Examples of each fuzz test; DIAGATT_FUZZ_SECONDS asks for a longer run of both.
SECONDS = float(os.environ.get("DIAGATT_FUZZ_SECONDS", 0))
EXAMPLES = 300


def fuzz(per_second):
    """Run a test on many examples, the same ones each time unless a long run is asked for.

    The two tests share the seconds; `per_second` is what a busy machine manages of this one.
    """
    count = max(EXAMPLES, int(per_second * SECONDS / 2))
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=not SECONDS,
        suppress_health_check=checks,
    )


CONTENTS = {name: sealed(PARTS[name][0], json.dumps(PARTS[name][1])) for name in FUZZED}


@st.composite
def damaged(draw):
    """A model's bytes with a few flips, cuts and insertions."""
    name = draw(st.sampled_from(FUZZED))
    content = bytearray(CONTENTS[name])
    for _ in range(draw(st.integers(1, 3))):
        near = st.integers(0, min(400, len(content)))  # where the header begins
        place = draw(st.one_of(near, st.integers(0, len(content))))
        action = draw(st.sampled_from(["flip", "truncate", "insert", "remove"]))
        if action == "flip" and place < len(content):
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif action == "truncate":
            del content[place:]
        elif action == "insert":
            content[place:place] = draw(st.binary(min_size=1, max_size=20))
        else:
            del content[place : place + draw(st.integers(1, 20))]
    return name, bytes(content)


@fuzz(per_second=280)
@given(damaged())
def test_damaged_bytes(tmp_path_factory, case):
    name, content = case
    try:
        tensors, document = modelfile.parse(content, tmp_path_factory.getbasetemp() / "m")
    except ModelFileError:
        return
    assert content == CONTENTS[name]
    assert document == parts(name)[1]
    assert set(tensors) == set(PARTS[name][0])


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([10**6, 2**31, 2**63, 10**40, -(10**40)]),
    st.sampled_from([0.0, -1.5, 1e-300, 1e300, np.nan, np.inf, -np.inf]),
    st.sampled_from(["", "auto", "affine", "quadratic", "likelihood", "cpu", "x" * 300, "\0"]),
    st.sampled_from([[], {}, [1], ["a", "b"], [[]], [[[1.0]]], {"a": 1}, [None, None]]),
    st.sampled_from([
        {"array": ["a", "b", "c"], "dtype": "str"},
        {"array": [1, [2]], "dtype": "object"},
        {"object": "Likelihood", "parameters": {}},
        {"object": "Auto", "parameters": {"contestants": [], "folds": 5, "combine": "best"}},
    ]),
)  # fmt: skip
NAMES = st.sampled_from([
    "predict", "fit", "__class__", "query_key_", "query_", "value_", "x_", "members", "classes_",
    "n_heads_", "ridge", "solver", "format", "kind", "0.value_", "feature_names_in_",
])  # fmt: skip


def places(value, path=()):
    """Every place in a document, from the outside in; long reports count once."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, item in entries:
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))
        else:
            yield (*path, key)


@st.composite
def mutated(draw):
    """A model whose document and tensors have changed in a few places."""
    name = draw(st.sampled_from(FUZZED))
    tensors, document = parts(name)
    for _ in range(draw(st.integers(1, 2))):
        if draw(st.booleans()) and tensors:
            change_tensor(draw, tensors)
        else:
            change_document(draw, document)
    return name, tensors, document


def change_document(draw, document):
    found = [place for place in places(document) if place]
    if not found:
        return
    *keys, last = draw(st.sampled_from(found))
    inner = document
    for key in keys:
        inner = inner[key]
    action = draw(st.sampled_from(["set", "drop", "add", "swap"]))
    if action == "set":
        inner[last] = copy.deepcopy(draw(VALUES))
    elif action == "drop":
        del inner[last]
    elif action == "add" and isinstance(inner, dict):
        inner[draw(NAMES)] = copy.deepcopy(draw(VALUES))
    elif isinstance(inner, dict):
        inner[last] = copy.deepcopy(inner[draw(st.sampled_from(sorted(inner)))])


def change_tensor(draw, tensors):
    name = draw(st.sampled_from(sorted(tensors)))
    array = tensors[name]
    action = draw(st.sampled_from(["shape", "type", "value", "drop", "name", "swap"]))
    if action == "shape":
        tensors[name] = np.ones(draw(st.lists(st.integers(0, 4), max_size=4)), array.dtype)
    elif action == "type":
        kind = draw(st.sampled_from(["f2", "f4", "f8", "i1", "i8", "u2", "?"]))
        tensors[name] = array.astype(kind)
    elif action == "value" and array.size and array.dtype.kind == "f":
        tensors[name] = np.array(array)
        worst = [np.nan, np.inf, -np.inf, 0.0, 1e30, -1e30]
        tensors[name].flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(worst))
    elif action == "drop":
        del tensors[name]
    elif action == "name":
        tensors[draw(NAMES)] = tensors.pop(name)
    elif action == "swap":
        other = draw(st.sampled_from(sorted(tensors)))
        tensors[name], tensors[other] = tensors[other], tensors[name]


def answers(name, model):
    """What users ask of a model; Z only where there were covariates."""
    Z = {"covariates": Y[:, None] ** 2} if name == "regressor" else {}
    return model.predict(X, **Z), model.locate(X)


@fuzz(per_second=70)
@given(mutated())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mutated_documents(tmp_path_factory, case):
    name, tensors, document = case
    kind = type(MODELS_HERE[name])
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(sealed(tensors, json.dumps(document)))
    try:
        model = kind.load(path)
    except ModelFileError:
        return
    expected = set(vars(MODELS_HERE[name])) | {"feature_names_in_"}
    assert set(vars(model)) <= expected
    try:
        predicted, located = answers(name, model)
    except ValueError:
        return
    assert len(predicted) == len(located) == len(X)
    model.get_params()
    repr(model)
