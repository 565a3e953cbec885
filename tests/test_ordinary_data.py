"""Tables, columns and labels as people have them: taken as they are, or refused by name."""

import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows, simulate

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

DATA = simulate.regression(40, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
X, Y, N = [np.asarray(m, dtype=float) for m in DATA.X], np.asarray(DATA.y, dtype=float), 40
HIGH = np.median(Y) < Y


def short(kind=DiagAttRegressor, **given):
    return kind(solver="likelihood", random_state=0, **given)


def long_table():
    table = pd.DataFrame(np.concatenate(X), columns=["a", "b", "c"])
    return table.assign(who=np.repeat([f"p{i}" for i in range(N)], [len(m) for m in X]))


# ---------------------------------------------------------------------- containers of X


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.Series(X), r"X is one column: pass X.to_list\(\)"),
        (pl.Series([m.tolist() for m in X]), r"X is one column: pass X.to_list\(\)"),
        (dict(enumerate(X)), "X is a dict: pass a list, an array or a frame"),
        ("cells.csv", "X is 'cells.csv', no samples: read the file"),
        (pathlib.Path("cells.csv"), "X is .*cells.csv.*, no samples: read the file"),
        ([[[1, 2, 3], [1, 2]], *X[1:]], "sample 0 is not .*: entry 1 has 2 entries, entry 0 has 3"),
        ([None, *X[1:]], "entry 1 has 4 entries, entry 0 has no length"),
        (long_table().drop(columns="who").pipe(pl.from_pandas).lazy(), r"pass X.collect\(\)"),
    ],
)
def test_containers_that_hold_no_samples(given, message):
    with pytest.raises(ValueError, match=message):
        short().fit(given, Y)


def test_columns_of_matrices_are_lists_of_samples():
    found = short().fit(pl.Series([m.tolist() for m in X]).to_list(), Y).predict(X)
    np.testing.assert_array_equal(found, short().fit(pd.Series(X).to_list(), Y).predict(X))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pl.from_pandas(long_table()).lazy(), r"the table is a LazyFrame: .*collect\(\)"),
        (long_table().to_dict("records"), "the table is a list: pass a frame"),
        ("cells.csv", "the table is a str: pass a frame"),
        (pa.Table.from_pandas(long_table()).to_batches()[0], "the table is a RecordBatch: pass"),
        (pd.concat({"x": long_table()}, axis=1), "column 'who' is not in the table"),
    ],
)
def test_tables_that_are_none(table, message):
    with pytest.raises(ValueError, match=message):
        RaggedRows.from_frame(table, "who")


@pytest.mark.parametrize("sample", [None, ["who"], 3, ("x", "who")])
def test_samples_are_named_by_one_column(sample):
    with pytest.raises(ValueError, match=r"column .* is not in the table; it has"):
        RaggedRows.from_frame(long_table(), sample)


# ---------------------------------------------------------------------- words, numbers, objects


@pytest.mark.parametrize("given", [["a", np.nan], ["a", None], ["a", 1], ["a", True], ["a", b"a"]])
def test_lists_of_words_and_others_are_not_made_words(given):
    """NumPy writes NaN as 'nan' and 1 as '1', a class and a group without a name."""
    mixed = given * (N // 2)
    with pytest.raises(ValueError, match=r"y\[1\] is missing|y mixes labels"):
        short(DiagAttClassifier).fit(X, mixed)
    with pytest.raises(ValueError, match=r"groups\[1\] is missing|groups mixes labels"):
        short().fit(X, Y, groups=mixed)
    with pytest.raises(ValueError, match=r"line 1 of column 'who' names no|'who' mixes labels"):
        RaggedRows.from_frame({"who": given, "a": [1.0, 2.0]}, "who")


def test_groups_that_are_equal_numbers_are_one_group():
    equal = np.array([1, 1.0, 2, np.float32(2)] * (N // 4), dtype=object)
    codes = np.array([1, 1, 2, 2] * (N // 4))
    found = short(n_heads=[1, 2], selection=2).fit(X, Y, groups=equal)
    expected = short(n_heads=[1, 2], selection=2).fit(X, Y, groups=codes)
    assert found.criteria_ == expected.criteria_


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (HIGH.astype(object), [False, True]),
        (np.array([1 if high else 0.0 for high in HIGH], dtype=object), [0, 1]),
        ([np.int8(3) if high else 2 for high in HIGH], [2, 3]),
        (pd.Series(HIGH, dtype=object), [False, True]),
    ],
)
def test_classes_that_are_objects_are_what_they_hold(labels, classes):
    model = short(DiagAttClassifier).fit(X, labels)
    assert model.classes_.tolist() == classes
    expected = short(DiagAttClassifier).fit(X, HIGH).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pd.cut(pd.Series(Y), 2), r"y\[0\] is Interval\(.*\) \(Interval\): classes are words"),
        ([b"a", b"b"] * (N // 2), r"y\[0\] is b'a' \(bytes\): classes are words"),
        (
            [10**20, 1] * (N // 2),
            "whole numbers of more than 64 bits, .*: write the classes as words",
        ),
        (pd.Series(pd.period_range("2020", periods=2).repeat(N // 2)), r"\(Period\): classes are"),
        (Y, "Unknown label type: continuous: classes are .*, use the regressor"),
        ({"a": 1}, "y is a dict: pass a list"),
        ([["a", "b"], ["a"]] * (N // 2), "entry 1 has 1 entries, entry 0 has 2 entries"),
    ],
)
def test_classes_that_are_none(labels, message):
    with pytest.raises(ValueError, match=message):
        short(DiagAttClassifier).fit(X, labels)


def test_two_covariates_of_one_name_are_told_in_one_line():
    twins = pd.DataFrame(np.ones((N, 2)), columns=["age", "age"])
    with pytest.raises(
        ValueError, match=r"covariates has two columns 'age': give each its own nam"
    ):
        short().fit(X, Y, covariates=twins)
