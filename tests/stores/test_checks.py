"""Bad samples are refused by name."""

import os
from pathlib import Path

import numpy as np
import pytest

from diagatt.stores import RowStore, RowStoreWriter, StoreError
from diagatt.stores.checks import checked_column, checked_rows

good = np.ones((3, 2))


def spoiled(row, value):
    X = np.ones((5, 2))
    X[row, 1] = value
    return X


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"X": spoiled(3, np.nan)}, "sample 2, row 3 contains NaN: drop the row or impute it"),
        ({"X": spoiled(4, -np.inf)}, "sample 2, row 4 contains infinity"),
        ({"X": spoiled(1, 1e300)}, "sample 2, row 1 contains a number too large for float32"),
        ({"X": np.ones(3)}, "sample 2 must be a 2-D array"),
        ({"X": np.ones((3, 3))}, "sample 2 has 3 features, those before have 2"),
        ({"X": np.ones((0, 2))}, "sample 2 has no rows"),
        ({"X": np.ones((3, 0))}, "sample 2 has 0 features"),
        ({"X": [["a", "b"]]}, "sample 2 is not"),
        ({"X": 3.0}, "sample 2 is not a matrix of numbers"),
        ({"X": []}, "sample 2 must be a 2-D array"),
        ({"y": None}, "sample 2 has no y, those before have one"),
        ({"y": np.nan}, "sample 2: y is nan, it must be finite"),
        ({"y": "word"}, "sample 2: y is 'word', but those before are float64"),
        ({"y": [1.0]}, "sample 2: y is"),
        ({"weight": -1.0}, "sample 2: weight is -1.0, it must be finite and not negative"),
        ({"weight": np.inf}, "sample 2: weight is inf"),
        ({"weight": "1"}, "sample 2: weight is '1'"),
        ({"covariates": [1.0]}, "sample 2 has 1 covariates, those before have 2"),
        ({"covariates": [1.0, np.nan]}, "sample 2: covariates contain NaN"),
        ({"covariates": ["a", "b"]}, "sample 2: covariates are not numbers"),
        ({"covariates": 1.0}, "sample 2: covariates have shape"),
        ({"note": None}, "sample 2 has no note"),
        ({"note": b"bytes"}, "sample 2: note is b'bytes'"),
        ({"note": "half \ud800"}, "sample 2: note is .*surrogate"),
        ({"note": "NUL \0"}, "sample 2: note is .*NUL"),
        ({"other": 1}, "sample 2 has other, those before have none"),
        ({"weights": 1.0}, "sample 2 has weights, those before have none"),
    ],
)
def test_a_bad_sample_is_named_and_may_be_left_out(tmp_path, sample, said):
    sound = {"X": good, "y": 1.0, "weight": 1, "covariates": [0.0, 1.0], "note": "a"}
    with RowStoreWriter(tmp_path / "s") as writer:
        writer.add(**sound)
        writer.add(**{**sound, "y": 2})  # a whole number among floats
        with pytest.raises(StoreError, match=said):
            writer.add(**{**sound, **sample})
        writer.add(**sound)
    assert RowStore(tmp_path / "s").responses().tolist() == [1.0, 2.0, 1.0]
    with pytest.raises(StoreError, match=said):
        RowStore.write(tmp_path / "t", [sound, sound, {**sound, **sample}])
    assert os.listdir(tmp_path) == ["s"]


@pytest.mark.parametrize(
    ("y", "said"),
    [([1, 2.5], "sample 1: y is 2.5, but those before are int64"), ([2**70], "beyond 64 bits")],
)
def test_whole_numbers(tmp_path, y, said):
    with pytest.raises(StoreError, match=said):
        RowStore.from_rows(tmp_path / "s", [good] * len(y), y)


@pytest.mark.parametrize("name", ["rows", "X", "weights"])
def test_reserved_names(tmp_path, name):
    with (
        pytest.raises((StoreError, TypeError), match=name),
        RowStoreWriter(tmp_path / "s") as writer,
    ):
        writer.add(good, **{name: 1.0})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("values", "kept", "kind"),
    [
        ([np.float64(1.5), 2, np.int32(3)], [1.5, 2.0, 3.0], "float64"),
        (np.arange(3, dtype="uint8"), [0, 1, 2], "int64"),
        ([np.bool_(True), False], [True, False], "bool"),
        ([Path("a/b"), "c"], ["a/b", "c"], "string"),
        (np.array(["a", "é"]), ["a", "é"], "string"),
    ],
)
def test_columns_become_python_values_of_one_kind(values, kept, kind):
    found = checked_column("note", values, len(values), 0, None)
    assert found == (kept, kind)
    assert {type(item) for item in found[0]} == {type(kept[0])}


def test_payload_may_be_nan():
    (found,), kind = checked_column("note", [np.nan], 1, 0, None)
    assert np.isnan(found)
    assert kind == "float64"


@pytest.mark.parametrize("wrong", [True, "word", None, 1j])
def test_the_first_value_of_another_kind_is_named(wrong):
    values = [0.5] * 1000
    values[700] = values[900] = wrong
    with pytest.raises(StoreError, match=r"^sample 1700: note is"):
        checked_column("note", values, 1000, 1000, None)


def test_sums_that_overflow_are_no_fault_of_the_rows():
    values = np.full((40, 2), 3e38, "float32")
    np.testing.assert_array_equal(checked_rows(values, [0, 40], np.dtype("float32"), 0), values)
