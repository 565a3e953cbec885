"""Columns by name: no permuted, renamed, missing or doubled column changes a prediction."""

import pickle
import warnings
from dataclasses import astuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from diagatt import (
    BlendedRegressor,
    DiagAttClassifier,
    DiagAttRegressor,
    PooledRegressor,
    RaggedRows,
)
from diagatt.arrays import InputError
from diagatt.certainty import Certainty
from diagatt.names import checked, names_of, order
from diagatt.solvers import Gradient

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
NAMES = ("age", "size", "007")
FRAMES = {
    "pandas": lambda m, names: pd.DataFrame(m, columns=list(names)),
    "polars": lambda m, names: pl.DataFrame(m, schema=list(names), orient="row"),
    "arrow": lambda m, names: pa.table(dict(zip(names, m.T, strict=True))),
}


def matrices(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 5), 3)) for _ in range(n)]
    Z = rng.normal(size=(n, 2))
    return X, Z, np.array([m[0] @ [1, 2, -1] for m in X]) + Z @ [0.5, -1]


def frames(X, make, names=NAMES):
    """Make frames whose columns stand in another order in every other one."""
    place = [NAMES.index(name) for name in names]
    return [make(m[:, place], names) for m in X]


def quick(kind=DiagAttRegressor, **options):
    return kind(solver=Gradient(max_epochs=3), random_state=0, **options)


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_names_of_frames(make):
    assert names_of(make(np.zeros((2, 3)), NAMES), "X") == NAMES


@pytest.mark.parametrize(
    "values",
    [np.zeros((2, 2)), [[1, 2]], pd.DataFrame(np.zeros((2, 2))), pd.Series([1.0]), None, 3],
)
def test_what_has_no_names(values):
    assert names_of(values, "X") is None


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(np.zeros((1, 3)), columns=["a", "b", "a"]), "X has two columns 'a'"),
        (pd.DataFrame(np.zeros((1, 2)), columns=[3, 3]), "X has two columns 3"),
        (pa.table([pa.array([1.0])] * 2, names=["a", "a"]), "two columns 'a'"),
        (pd.DataFrame(np.zeros((1, 2)), columns=["a", 1]), "such as 1: feature names must all be"),
    ],
)
def test_names_that_are_no_names(frame, message):
    with pytest.raises(InputError, match=message):
        names_of(frame, "X")


@pytest.mark.parametrize("names", ["ab", 3, [1, 2], ["a", "a"], ["a"]])
def test_lists_that_are_no_names(names):
    with pytest.raises(InputError, match=r"names|two columns 'a'"):
        checked(names, "X", 2)


def test_order_is_a_permutation_that_gives_the_wanted_names():
    found = tuple("dacb")
    assert [found[i] for i in order(found, tuple("abcd"), "X", "")] == list("abcd")
    assert order(found, found, "X", "") is None
    with pytest.raises(InputError, match="X has no column 'x', 'y'; it has 'd', 'a', 'c', 'b'"):
        order(found, ("a", "x", "y"), "X", "")
    with pytest.raises(InputError, match=r"also has the column 'd', 'b', which .*: X\[names\]"):
        order(found, ("a", "c"), "X", "X[names]")


# ---------------------------------------------------------------------- samples


def named(n=3):
    values = np.arange(18.0).reshape(6, 3)
    return RaggedRows(values, [0, 1, 3, 6], NAMES, ["001", "1", "x"], list("abcdef"))


def test_names_and_ids_go_with_samples():
    X = named()
    for part in (
        X[1:],
        X[[1, 2]],
        X[np.array([False, True, True])],
        pickle.loads(pickle.dumps(X[1:])),
    ):
        assert part.feature_names == NAMES
        assert part.sample_ids.tolist() == ["1", "x"]
        assert part.row_ids.tolist() == list("bcdef")
    assert X[[2, 0]].row_ids.tolist() == list("defa")
    assert X.astype(np.float32).feature_names == NAMES
    assert X.with_values(X.values[:, :2]).feature_names is None
    turned = X.with_features(NAMES[::-1])
    np.testing.assert_array_equal(turned.values, X.values[:, ::-1])
    assert RaggedRows.concatenate([X, turned]) == X[[0, 1, 2, 0, 1, 2]]
    assert turned != X
    assert X.with_names(None).feature_names is None


def test_names_that_do_not_fit():
    X = named()
    with pytest.raises(InputError, match="2 names were given for the 3 columns"):
        X.with_names(["a", "b"])
    with pytest.raises(ValueError, match="there is no feature 'z'; there are 'age', 'size', '007'"):
        X.with_features(["z"])
    with pytest.raises(ValueError, match="row_ids has 1 entries: 6 are needed"):
        RaggedRows(X.values, X.offsets, row_ids=["a"])
    with pytest.raises(ValueError, match="part 1 and part 0 differ"):
        RaggedRows.concatenate([X, X.with_names(None)])


def test_ids_of_a_long_table_are_text():
    table = {"who": ["007", "7", "007"], "cell": ["01", "02", "03"], "a": [1, 2, 3]}
    X, ids = RaggedRows.from_frame(pd.DataFrame(table), "who", row="cell")
    assert X.sample_ids.tolist() == ids.tolist() == ["007", "7"]
    assert X.row_ids.tolist() == ["01", "03", "02"]
    assert X.feature_names == ("a",)
    with pytest.raises(InputError, match="column 'who' names samples or rows"):
        RaggedRows.from_frame(table, "who", ["who", "a"])
    with pytest.raises(InputError, match="the table has two columns 'a'"):
        RaggedRows.from_frame(table, "who", ["a", "a"])


def test_the_index_of_pandas_names_rows():
    X = RaggedRows.from_samples([pd.DataFrame({"a": [1.0, 2.0]}, index=["u", "v"])] * 2)
    assert X.row_ids.tolist() == ["u", "v", "u", "v"]
    flat = RaggedRows.coerce(pd.DataFrame({"a": [1.0, 2.0]}, index=["u", "v"]))
    assert flat.sample_ids.tolist() == ["u", "v"]
    assert RaggedRows.from_samples([pd.DataFrame({"a": [1.0]})]).row_ids is None


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_list_of_frames_in_differing_order(make):
    X, *_ = matrices()
    mixed = frames(X[:12], make) + frames(X[12:], make, ("007", "age", "size"))
    packed = RaggedRows.from_samples(mixed)
    np.testing.assert_array_equal(packed.values, np.concatenate(X))
    assert packed.feature_names == NAMES
    with pytest.raises(InputError, match="sample 1 has no column '007'"):
        RaggedRows.from_samples([mixed[0], make(X[0][:, :2], NAMES[:2])])
    with pytest.raises(InputError, match="sample 1 also has the column 'more'"):
        RaggedRows.from_samples([mixed[0], make(np.zeros((2, 4)), (*NAMES, "more"))])
    with pytest.raises(InputError, match="sample 0 has names of features, sample 1 has none"):
        RaggedRows.from_samples([mixed[0], X[1]])


# ---------------------------------------------------------------------- estimators

BLEND = [("one", quick(), [0]), ("all", quick(), None)]
MODELS = {
    "diagonal": quick(),
    "pooled": PooledRegressor(),
    "blend": BlendedRegressor(BLEND, n_blocks=3, random_state=0),
}


def methods(model):
    known = ("predict", "locate", "attention", "scores", "transform", "certainty")
    return [getattr(model, name) for name in known if hasattr(model, name)]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("saved", [False, True])
def test_columns_are_found_by_name(name, make, saved, tmp_path):
    X, _, y = matrices()
    model = MODELS[name].fit(frames(X, make), y)
    assert model.feature_names_in_.tolist() == list(NAMES)
    if saved:
        model.save(tmp_path / "m")
        model = type(model).load(tmp_path / "m")
    turned = ("007", "age", "size")
    for ask in methods(model):
        expected = ask(frames(X, make))
        for other in (frames(X[:3], make, turned) + frames(X[3:], make), frames(X, make, turned)):
            np.testing.assert_equal(_flat(ask(other)), _flat(expected))
        with pytest.raises(ValueError, match="X has no column 'size'; it has 'age', 'big', '007'"):
            ask([make(m, ("age", "big", "007")) for m in X])
        with pytest.raises(ValueError, match="no column '007'"):
            ask([make(m[:, :2], NAMES[:2]) for m in X])
        with pytest.raises(ValueError, match="also has the column 'more'"):
            ask([make(np.column_stack([m, m[:, 0]]), (*NAMES, "more")) for m in X])
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            np.testing.assert_equal(_flat(ask(X)), _flat(expected))


def _flat(answer):
    if isinstance(answer, Certainty):
        return np.hstack([part for part in astuple(answer) if isinstance(part, np.ndarray)])
    return np.concatenate(answer) if isinstance(answer, list) else answer


def test_a_fit_without_names_warns_of_names_and_forgets_old_ones():
    X, _, y = matrices()
    make = FRAMES["pandas"]
    model = quick().fit(frames(X, make), y).fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        model.predict(frames(X, make))


def test_flat_frames_are_matched_as_well():
    X, _, y = matrices()
    flat = np.stack([m[0] for m in X])
    model = DiagAttRegressor().fit(pd.DataFrame(flat, columns=NAMES), y)
    turned = pd.DataFrame(flat[:, ::-1], columns=NAMES[::-1])
    np.testing.assert_array_equal(
        model.predict(turned), model.predict(pd.DataFrame(flat, columns=NAMES))
    )


def test_the_weights_of_a_warm_start_belong_to_names():
    X, _, y = matrices()
    make = FRAMES["pandas"]
    model = quick(warm_start=True).fit(frames(X, make), y)
    with pytest.raises(ValueError, match="warm_start continues a fit of the same features"):
        model.fit(frames(X, make, NAMES[::-1]), y)


# ---------------------------------------------------------------------- covariates


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("kind", [DiagAttRegressor, DiagAttClassifier])
@pytest.mark.parametrize("saved", [False, True])
def test_covariates_are_found_by_name(kind, make, saved, tmp_path):
    X, Z, y = matrices()
    y = y if kind is DiagAttRegressor else y > 0
    model = quick(kind).fit(X, y, covariates=make(Z, ("sex", "dose")))
    assert model.covariate_names_in_.tolist() == ["sex", "dose"]
    if saved:
        model.save(tmp_path / "m")
        model = kind.load(tmp_path / "m")
    expected = model.predict(X, make(Z, ("sex", "dose")))
    np.testing.assert_array_equal(model.predict(X, make(Z[:, ::-1], ("dose", "sex"))), expected)
    with pytest.raises(ValueError, match="covariates has no column 'dose'; it has 'sex', 'site'"):
        model.predict(X, make(Z, ("sex", "site")))
    with pytest.raises(ValueError, match="covariates has no column 'dose'; it has 'sex'"):
        model.predict(X, make(Z[:, :1], ("sex",)))
    with pytest.raises(ValueError, match="covariates also has the column 'site'"):
        model.predict(X, make(Z[:, [0, 1, 0]], ("sex", "dose", "site")))
    with pytest.raises(ValueError, match="fitted with 2 covariates, got 0"):
        model.predict(X)
    with pytest.warns(UserWarning, match="covariates does not have valid feature names"):
        model.predict(X, Z)


def test_doubled_covariates_are_refused():
    X, Z, y = matrices()
    with pytest.raises(ValueError, match=r"two columns 'sex'|two columns of one name"):
        quick().fit(X, y, covariates=pd.DataFrame(Z, columns=["sex", "sex"]))


def test_a_summary_shows_names():
    X, Z, y = matrices()
    table = pd.DataFrame(Z, columns=["sex", "dose"])
    model = quick().fit(frames(X, FRAMES["pandas"]), y, covariates=table)
    said = str(model.summary())
    assert all(name in said for name in (*NAMES, "sex", "dose"))
    plain = quick().fit(X, y, covariates=Z)
    assert "covariate 1" in str(plain.summary())


def test_known_names_raise_no_warning():
    X, Z, y = matrices()
    make = FRAMES["polars"]
    table = make(Z, ("sex", "dose"))
    model = quick().fit(frames(X, make), y, covariates=table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frames(X, make), table)
        model.locate(RaggedRows.from_samples(frames(X, make)))
