"""Hostile model files: a valid checksum over nonsense is refused in one sentence, or harmless."""

import copy
import hashlib
import json
import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as save_tensors

from diagatt import (
    BlendedClassifier,
    BlendedRegressor,
    DiagAttClassifier,
    DiagAttRegressor,
    ModelFileError,
    PooledRegressor,
    RaggedRows,
    modelfile,
)
from diagatt.attributes import OPTIONAL, declared
from diagatt.kinds.files import load_model
from diagatt.kinds.image.estimator import ImageClassifier
from diagatt.solvers import Gradient
from tests.estimators.test_base import MODELS, y_of
from tests.estimators.test_base import X as SAMPLES

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


def draw(n=24, d=3):
    rng = np.random.default_rng(0)
    X = RaggedRows.from_samples([rng.normal(size=(rng.integers(3, 5), d)) for _ in range(n)])
    return X, np.array([sample[0].sum() for sample in X])


X, Y = draw()
LABELS = np.array(["no", "perhaps", "yes"])[np.searchsorted(np.quantile(Y, [0.3, 0.6]), Y)]


def fitted_models():
    quick = Gradient(
        max_epochs=2, optimizer="adam", n_restarts=2, parameterization="factored", rank=1
    )
    regressor = DiagAttRegressor(2, solver=quick, random_state=0)
    members = [("all", DiagAttRegressor(solver="likelihood"), None)]
    members += [("some", DiagAttRegressor(solver="uniform"), [0, 2])]
    images = np.random.default_rng(0).random((12, 4, 4))
    classes = [("one", DiagAttClassifier(solver="likelihood"), None)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "regressor": regressor.fit(X, Y, covariates=Y[:, None] ** 2),
            "classifier": DiagAttClassifier(solver="likelihood").fit(X, LABELS),
            "pooled": PooledRegressor("mean+max").fit(X, Y),
            "blend": BlendedRegressor(members, n_blocks=3).fit(X, Y),
            "blended classes": BlendedClassifier(classes).fit(X, LABELS),
            "image": ImageClassifier(2, estimator=DiagAttClassifier(solver="uniform")).fit(
                images, np.arange(12) % 2
            ),
        }


MODELS_HERE = fitted_models()
PARTS = {name: model.to_document() for name, model in MODELS_HERE.items()}
FUZZED = ("regressor", "classifier", "pooled", "blend")


def parts(name):
    """Tensors and document of a saved model, as JSON gives them back, to be spoiled."""
    tensors, document = PARTS[name]
    return dict(tensors), json.loads(json.dumps(document))


def sealed(tensors, text):
    """The bytes of a file with this text as its document, and a checksum that is right."""
    arrays = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    blank = save_tensors(arrays, {"diagatt": text, "sha256": "0" * 64})
    digest = hashlib.sha256(blank).hexdigest()
    return blank.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest.encode(), 1)


def with_header(header):
    """The bytes of a file that is nothing but this header."""
    return len(header).to_bytes(8, "little") + header


def load(name, path, content):
    path.write_bytes(content)
    return type(MODELS_HERE[name]).load(path)


def said(name, path, content):
    """The one sentence with which the file is refused."""
    with pytest.raises(ModelFileError) as error:
        load(name, path, content)
    message = str(error.value)
    assert str(path) in message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 600
    return message


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
    """A fitted attribute without a rule would make a file that nobody can load."""
    y = y_of(model)
    fitted = copy.deepcopy(model).fit(SAMPLES, y)
    own = {n for n in vars(fitted) if n.endswith("_") and not n.startswith("_")} - {"members_"}
    rules = set(declared(type(model)))
    assert rules - OPTIONAL <= own <= rules
    fitted.save(tmp_path / "m")
    loaded = type(model).load(tmp_path / "m")
    assert {n for n in vars(fitted) if not n.startswith("_")} == set(vars(loaded))
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


# ---------------------------------------------------------------------- documents


def put(*place):
    """Set an entry: ``put("fitted", "n_heads_", 0)``."""
    *keys, last, value = place

    def spoil(tensors, document):
        inner = document
        for key in keys:
            inner = inner[key]
        inner[last] = value

    return spoil


def drop(*place):
    *keys, last = place

    def spoil(tensors, document):
        inner = document
        for key in keys:
            inner = inner[key]
        del inner[last]

    return spoil


def tensor(name, change):
    """Replace a tensor by what becomes of it; None removes it."""

    def spoil(tensors, document):
        changed = change(tensors.pop(name, None))
        if changed is not None:
            tensors[name] = np.asarray(changed)

    return spoil


def nan(array):
    array = np.array(array)
    array.flat[0] = np.nan
    return array


def move(name, value=None):
    """Say a tensor's attribute in the document instead."""

    def spoil(tensors, document):
        del tensors[name]
        document["fitted"][name] = value

    return spoil


SOLVER = ("parameters", "solver")
HOSTILE = {
    # Entries of the document.
    "no kind": (drop("kind"), "is not a saved estimator but a None"),
    "kind is a list": (put("kind", []), "is not a saved estimator"),
    "no class": (drop("class"), "does not say which class"),
    "class is a list": (put("class", ["DiagAttRegressor"]), "does not say which class"),
    "class is a sentence": (put("class", "no class\n" * 100), "does not say which class"),
    "no format": (drop("format"), "no readable format"),
    "format is a word": (put("format", "2"), "no readable format: it says '2'"),
    "format is 0": (put("format", 0), "no readable format"),
    "format is true": (put("format", True), "no readable format"),
    "format 1 of format 2": (put("format", 1), "lacks 'checkpoint_every'"),
    "no version": (drop("diagatt"), "no entry 'diagatt'"),
    "no parameters": (drop("parameters"), "no entry 'parameters'"),
    "parameters are a list": (put("parameters", []), "the entry 'parameters'"),
    "no fitted": (drop("fitted"), "no entry 'fitted'"),
    "fitted is null": (put("fitted", None), "the entry 'fitted'"),
    "an entry more": (put("extra", 1), "unknown entry 'extra'"),
    "members that are no list": (put("members", {}), "no list of the members"),
    # Parameters.
    "parameter missing": (drop("parameters", "ridge"), "the parameter 'ridge' is missing"),
    "parameter more": (put("parameters", "rigde", 1), "'rigde' is none of DiagAttRegressor"),
    "solver's parameter": (put("parameters", "rank", 1), "'rank' is none of DiagAttRegressor"),
    "self": (put("parameters", "self", 1), "'self' is none of"),
    "ridge is a word": (put("parameters", "ridge", "much"), "ridge must be a number"),
    "ridge is NaN": (put("parameters", "ridge", np.nan), "ridge must be a number"),
    "n_heads is huge": (put("parameters", "n_heads", 10**30), "n_heads must be"),
    "verbose is 1": (put("parameters", "verbose", 1), "verbose must be True or False"),
    "random_state": (put("parameters", "random_state", -1), "random_state must be"),
    "unknown family": (put("parameters", "family", "cauchy"), "cauchy"),
    "classifying family": (put("parameters", "family", "bernoulli"), "is for classes"),
    "unknown device": (put("parameters", "device", "abacus"), "torch device, got 'abacus'"),
    "meta device": (put("parameters", "device", "meta"), "torch device, got 'meta'"),
    "device is a list": (put("parameters", "device", []), "torch device, got []"),
    "ridge is a solver": (
        put("parameters", "ridge", {"object": "Likelihood", "parameters": {}}),
        "is missing",
    ),
    "solver's name": (put(*SOLVER, "magic"), "solver must be the name of a solver"),
    "solver unknown": (put(*SOLVER, "object", "Magic"), "names a Magic, which is not known"),
    "solver is a list": (put(*SOLVER, "object", ["Gradient"]), "which is not known here"),
    "solver without parameters": (put(*SOLVER, "parameters", None), "of the Gradient in it"),
    "solver's missing": (drop(*SOLVER, "parameters", "rank"), "the parameter 'rank' is missing"),
    "solver's more": (put(*SOLVER, "parameters", "x", 1), "'x' is none of Gradient"),
    "solver's wrong": (put(*SOLVER, "parameters", "max_epochs", -1), "max_epochs must be"),
    "solver's NaN": (put(*SOLVER, "parameters", "init_scale", np.nan), "init_scale must be"),
    # Names of attributes.
    **{
        f"fitted {name}": (put("fitted", name, 1), f"has no fitted attribute {name!r}")
        for name in (
            "predict",
            "query_key_",
            "__class__",
            "__dict__",
            "fit",
            "ridge",
            "coef_",
            "",
            "_dtype",
            "_state",
            "rules",
            "fitted_rules",
            "save",
            "a.b_",
            "n_heads",
            "classes_",
        )
    },
    **{
        f"tensor {name}": (tensor(name, lambda _: 1.0), f"has no fitted attribute {name!r}")
        for name in ("predict", "query_key_", "__class__", "ridge", "0.value_", "x_")
    },
    "long name": (put("fitted", "x" * 10_000, 1), "has no fitted attribute 'xxx"),
    "attribute missing": (drop("fitted", "n_heads_"), "attribute n_heads_ is missing"),
    "tensor missing": (tensor("value_", lambda _: None), "attribute value_ is missing"),
    "twice": (put("fitted", "value_", 1), "two values of value_"),
    # Values of attributes.
    "n_heads_ is 0": (put("fitted", "n_heads_", 0), "n_heads_ must be a whole number"),
    "n_heads_ is huge": (put("fitted", "n_heads_", 2**31 - 1), "must have the shape"),
    "n_heads_ is 10^60": (put("fitted", "n_heads_", 10**60), "n_heads_ must be"),
    "n_restarts_": (put("fitted", "n_restarts_", 3), "must have the shape"),
    "n_features_in_": (put("fitted", "n_features_in_", 4), "must have the shape"),
    "n_features_in_ is a word": (put("fitted", "n_features_in_", "3"), "n_features_in_ must be"),
    "n_covariates_": (put("fitted", "n_covariates_", 0), "covariate_coef_ must have the shape"),
    "one_row_samples_": (put("fitted", "one_row_samples_", None), "one_row_samples_ must be"),
    "temperature_ is 0": (put("fitted", "temperature_", 0), "temperature_ must be a positive"),
    "temperature_ is NaN": (put("fitted", "temperature_", np.nan), "temperature_ must be"),
    "temperature_ is infinite": (put("fitted", "temperature_", np.inf), "temperature_ must be"),
    "score_form_": (put("fitted", "score_form_", "cubic"), "score_form_ must be 'quadratic'"),
    "other score_form_": (put("fitted", "score_form_", "quadratic"), "must have the shape"),
    "coupling_": (put("fitted", "coupling_", ["distinct"]), "coupling_ must be"),
    "history_": (put("fitted", "history_", "long"), "history_ must be a list"),
    "unevenness_": (put("fitted", "unevenness_", [None]), "unevenness_ must be a list"),
    "communication_": (put("fitted", "communication_", {}), "communication_ must be"),
    "solver_": (put("fitted", "solver_", None), "solver_ must be a string"),
    "key_ is gone": (move("key_"), "query_ must have the shape"),
    "key_ in JSON": (move("key_", [[1.0]]), "key_ must be an array of finite numbers"),
    "array of no type": (
        put("fitted", "solver_", {"array": [1], "dtype": "f8"}),
        "an array in it is [1] of type 'f8'",
    ),
    "array of a callable": (
        put("fitted", "solver_", {"array": [1], "dtype": {"a": 1}}),
        "of type {'a': 1}",
    ),
    "array of lists": (
        put("fitted", "feature_names_in_", {"array": [["a"], ["b"]], "dtype": "object"}),
        "holds ['a']",
    ),
    "names too few": (
        put("fitted", "feature_names_in_", {"array": ["a"], "dtype": "object"}),
        "feature_names_in_ must have the shape (3,)",
    ),
    "value_ transposed": (tensor("value_", np.transpose), "value_ must have the shape"),
    "value_ scalar": (tensor("value_", lambda v: 1.0), "value_ must have the shape"),
    "value_ empty": (tensor("value_", lambda v: v[:0]), "value_ must have the shape"),
    "value_ of integers": (tensor("value_", lambda v: v.astype(int)), "value_ must be an array"),
    "value_ of halves": (tensor("value_", lambda v: v.astype("f2")), "value_ must be an array"),
    "value_ of bools": (tensor("value_", lambda v: v > 0), "value_ must be an array"),
    "value_ NaN": (tensor("value_", nan), "that holds NaN or infinity"),
    "query_ NaN": (tensor("query_", nan), "that holds NaN or infinity"),
    "query_ short": (tensor("query_", lambda q: q[:, :-1]), "query_ must have the shape"),
    "query_ flat": (tensor("query_", np.ravel), "query_ must have the shape"),
    "key_ of other rank": (
        tensor("key_", lambda k: np.tile(k, (1, 1, 2))),
        "query_ must have the shape",
    ),
    "key_ scalar": (tensor("key_", lambda k: 1.0), "must have the shape"),
    "intercept_ long": (tensor("intercept_", lambda b: np.ones(2)), "intercept_ must have"),
    "covariate_coef_": (tensor("covariate_coef_", lambda g: np.ones(5)), "covariate_coef_ must"),
}
OTHERS = {
    "pooled, coef_": ("pooled", tensor("coef_", lambda c: c[:, :3]), "coef_ must have the shape"),
    "pooled, float32": ("pooled", tensor("coef_", lambda c: c.astype("f4")), "of type float64"),
    "pooled, other pool": ("pooled", put("parameters", "pool", "max"), "coef_ must have"),
    "pooled, ridge_": ("pooled", put("fitted", "ridge_", -1), "ridge_ must be"),
    "classes one": ("classifier", put("fitted", "classes_", "array", ["no"]), "classes_ must be"),
    "classes more": (
        "classifier", put("fitted", "classes_", "array", ["a", "b", "c", "d"]), "must have the",
    ),
    "classes equal": (
        "classifier", put("fitted", "classes_", "array", ["no", "no", "yes"]), "different labels",
    ),
    "classes numbers": (
        "classifier", put("fitted", "classes_", "array", [1, 2, 3]), "of type str in it holds 1",
    ),
    "classes list": ("classifier", put("fitted", "classes_", ["a", "b", "c"]), "classes_ must"),
    "classes gone": ("classifier", drop("fitted", "classes_"), "classes_ is missing"),
    "two-class family": ("classifier", put("parameters", "family", "bernoulli"), "two classes"),
    "no members": ("blend", drop("members"), "no list of the members"),
    "members null": ("blend", put("members", None), "no list of the members"),
    "members fewer": ("blend", drop("members", 1), "has no fitted attribute '1."),
    "members are lists": ("blend", put("members", [[], []]), "is not a saved estimator"),
    "member of itself": ("blend", put("members", 0, "class", "object"), "holds a object"),
    "member has no attention": (
        "blend",
        lambda t, d: (
            [t.pop(name) for name in list(t)],
            t.update({f"0.{k}": v for k, v in PARTS["pooled"][0].items()}),
            d.update(members=[PARTS["pooled"][1]]),
            d["parameters"].update(members=[["all", None, None]]),
        ),
        "has no attention",
    ),
    "members' names": ("blend", put("parameters", "members", [1, 2]), "holds no valid Blended"),
    "members' blocks": (
        "blend", put("parameters", "members", 1, 2, [0, 7]), "index from 0 to 2",
    ),
    "members' block": ("blend", put("parameters", "members", 1, 2, [0]), "reads 2 features"),
    "members' words": ("blend", put("parameters", "members", 1, 2, ["a"]), "reads blocks ['a']"),
    "n_blocks": ("blend", put("parameters", "n_blocks", 2), "not 2 blocks of equal size"),
    "member's shape": (
        "blend", tensor("1.value_", lambda v: v[:, :1]), "value_ must have the shape",
    ),
    "tensor of nobody": ("blend", tensor("7.value_", lambda _: 1.0), "attribute '7.value_'"),
    "classes of the blend": (
        "blended classes", put("fitted", "classes_", "array", ["a", "b", "c"]), "other classes",
    ),
    "regressor in a classifier": (
        "blended classes", put("members", 0, "class", "DiagAttRegressor"), "classes_",
    ),
    "image, no rows": ("image", drop("rows"), "no entry 'rows'"),
    "image, rows": ("image", put("rows", {}), "holds no valid ImageClassifier"),
    "image, channels": ("image", put("rows", "n_channels", "many"), "n_channels must be"),
    "image, scale": ("image", put("rows", "pixel_scale", 0.0), "pixel_scale must be a positive"),
    "image, NaN": ("image", put("rows", "pixel_mean", np.nan), "pixel_mean must be"),
    "image, patch": ("image", put("parameters", "patch", "big"), "holds no valid Image"),
    "image, padding": ("image", put("parameters", "padding", "hope"), "padding must be 'error'"),
    "image, estimator": ("image", put("estimator", []), "the entry 'estimator'"),
    "image, parameter": ("image", put("parameters", "estimator", None), "'estimator' is none of"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_documents(tmp_path, case):
    spoil, message = HOSTILE[case]
    tensors, document = parts("regressor")
    spoil(tensors, document)
    found = said("regressor", tmp_path / "m", sealed(tensors, json.dumps(document)))
    assert message in found


@pytest.mark.parametrize("case", OTHERS)
def test_hostile_documents_of_other_estimators(tmp_path, case):
    name, spoil, message = OTHERS[case]
    tensors, document = parts(name)
    spoil(tensors, document)
    found = said(name, tmp_path / "m", sealed(tensors, json.dumps(document)))
    assert message in found


@pytest.mark.parametrize("columns", [7, [], {"text": 1}, {"features": "abc"}, {"features": [1]}])
def test_hostile_columns(tmp_path, columns):
    tensors, document = parts("pooled")
    modelfile.write(tmp_path / "m", tensors, {**document, "columns": columns})
    with pytest.raises(ModelFileError, match="is damaged: the columns"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("document", [{}, {"class": []}, {"class": "Nobody"}, {"kind": 1}])
def test_hostile_documents_of_any_class(tmp_path, document):
    modelfile.write(tmp_path / "m", {}, document)
    with pytest.raises(ModelFileError, match="is not a saved estimator but a"):
        load_model(tmp_path / "m")


class OwnRegressor(PooledRegressor):
    """An estimator of a user, who declares nothing."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.mine_ = 7
        return self


def test_a_user_need_not_declare_attributes_but_cannot_hide_methods(tmp_path):
    model = OwnRegressor().fit(X, Y)
    model.save(tmp_path / "m")
    assert OwnRegressor.load(tmp_path / "m").mine_ == 7
    tensors, document = modelfile.read(tmp_path / "m")
    for name in ("predict", "mine", "_mine_", "__class__", "mi-ne_"):
        spoiled = {**document, "fitted": {**document["fitted"], name: 1}}
        modelfile.write(tmp_path / "m", tensors, spoiled)
        with pytest.raises(ModelFileError, match="has no fitted attribute"):
            OwnRegressor.load(tmp_path / "m")


# ---------------------------------------------------------------------- fuzzing

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
