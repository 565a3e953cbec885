"""Hostile documents: a valid file whose settings or attributes are nonsense is refused."""

import json

import numpy as np
import pytest

from diagatt import (
    ModelFileError,
    PooledRegressor,
    modelfile,
)
from diagatt.kinds.files import load_model
from tests.hostile_files import PARTS, X, Y, parts, said, sealed

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


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
