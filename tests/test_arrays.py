"""Arrays of numbers: what is one is read exactly, what is none is refused with its place."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from diagatt.arrays import InputError, float_array, float_matrix

quick = settings(max_examples=50)
numbers = arrays_of.arrays(
    st.sampled_from([np.float32, np.float64, np.int16, np.uint8, np.bool_, np.dtype(">f8")]),
    arrays_of.array_shapes(min_dims=2, max_dims=2, max_side=5),
    elements={"allow_nan": False, "allow_infinity": False},
)


def read(values):
    return float_array(values, "Z", lambda at: f"Z{list(map(int, at))}")


def wrappers(array):
    """The same numbers in other clothes."""
    native = np.asarray(array, dtype=array.dtype.newbyteorder("="))
    return {
        "itself": array,
        "reversed twice": array[::-1, ::-1][::-1, ::-1],
        "Fortran order": np.asfortranarray(array),
        "every second": np.repeat(array, 2, axis=0)[::2],
        "transposed": array.T.copy().T,
        "read-only": np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape),
        "objects": array.astype(object),
        "nested lists": array.tolist(),
        "no mask": np.ma.masked_array(array),
        "matrix": np.matrix(array),
        "pandas": pd.DataFrame(native),
        "polars": pl.DataFrame(native),
        "pyarrow": pa.table({f"x{j}": native[:, j] for j in range(native.shape[1])}),
    }


@given(numbers)
@quick
def test_the_same_numbers_in_any_clothes(array):
    expected = np.asarray(array, dtype=np.float64)
    for name, clothes in wrappers(array).items():
        got = read(clothes)
        assert got.flags.c_contiguous, name
        assert got.dtype in (np.float32, np.float64), name
        assert got.dtype.isnative, name
        np.testing.assert_array_equal(got, expected, err_msg=name)
        torch.from_numpy(np.array(got))  # torch refuses negative strides and foreign byte orders


@given(numbers, st.data())
@quick
def test_a_masked_entry_is_named_and_never_read(array, data):
    i = data.draw(st.integers(0, array.shape[0] - 1))
    j = data.draw(st.integers(0, array.shape[1] - 1))
    mask = np.zeros(array.shape, dtype=bool)
    mask[i, j] = True
    masked = np.ma.masked_array(array, mask=mask)
    for given_ in (masked, list(masked), tuple(masked), masked.astype(object)):
        with pytest.raises(InputError, match=rf"Z\[{i}, {j}\] is masked: drop it or fill it in"):
            read(given_)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, float("nan"), Decimal("nan")])
def test_missing_entries_become_nan(missing):
    np.testing.assert_array_equal(read(np.array([1, missing], dtype=object)), [1.0, np.nan])


@pytest.mark.parametrize(
    "frame",
    [
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1, None], dtype="float64"),
        pd.Series([1, None], dtype="int64[pyarrow]"),
        pl.Series([1, None]),
        pa.chunked_array([[1, None]]),
        pa.array([1, None]),
    ],
)
def test_nulls_of_columns_become_nan(frame):
    np.testing.assert_array_equal(read(frame), [1.0, np.nan])


@pytest.mark.parametrize("value", [3, 0.5, True, np.int8(3), Decimal("0.5"), Fraction(1, 2)])
def test_objects_that_are_numbers(value):
    np.testing.assert_array_equal(read(np.array([value, 1], dtype=object)), [float(value), 1.0])


@pytest.mark.parametrize(
    "value",
    [
        "1.5",
        b"1",
        {},
        [],
        1j,
        datetime.date(2020, 1, 1),
        datetime.timedelta(3),
        np.timedelta64(3, "ns"),
        pd.Timestamp("2020-01-01"),
        pd.Timedelta(3),
        10**400,
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_that_are_no_numbers(value):
    column = np.empty(2, dtype=object)
    column[:] = 1.0
    column[1] = value
    with pytest.raises(InputError, match=r"Z\[1\] holds .*, not a number: "):
        read(column)


DATES = pd.to_datetime(["2020-01-01", "2020-01-02"])


@pytest.mark.parametrize(
    "values",
    [
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array([1, 2], dtype="m8[s]"),
        pd.Series(DATES),
        pd.Series(DATES - DATES[0]),
        pd.DataFrame({"a": [1, 2], "d": DATES}),
        pl.DataFrame({"a": [1, 2], "d": [datetime.date(2020, 1, 1)] * 2}),
        pl.Series([datetime.timedelta(1)] * 2),
        pa.table({"d": DATES}),
    ],
    ids=lambda value: type(value).__module__,
)
def test_dates_and_durations_are_no_numbers(values):
    with pytest.raises(InputError, match=r"Z (is not numeric but )?holds dates or durations"):
        read(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(2) * 1j, "Complex data not supported: Z is complex"),
        (torch.ones(2) * 1j, "Complex data not supported"),
        (np.array(["a", "1"]), "Z is not numeric"),
        (["1.5", "2"], "Z is not numeric"),
        ("balanced", "Z is not numeric"),
        (np.zeros(2, dtype=[("a", float)]), "Z is not numeric"),
        (scipy.sparse.eye(2).tocsr(), r"Z is sparse: pass Z.toarray\(\)"),
        ([[1, 2], [3]], "Z is not an array of numbers: entry 1 has 1 entries, entry 0 has 2 ent"),
        ({"a": 1}, "Z is a dict: pass a list, an array or a frame"),
        (np.ma.masked, "Z is masked"),
        (iter([1, 2]), "Z is a list_iterator: pass a list"),
        (pl.LazyFrame({"a": [1]}), r"Z is a LazyFrame: pass Z.collect\(\)"),
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            "Z has two columns 'a': give each its own name",
        ),
    ],
)
def test_what_is_no_array_of_numbers(values, message):
    with pytest.raises(InputError, match=message):
        read(values)


def test_numbers_too_large_become_infinity_without_a_warning(recwarn):
    assert np.isinf(read(np.array([np.longdouble("1e4000")]))).all()
    assert not recwarn.list


def test_nothing_is_copied_that_need_not_be():
    for array in (np.zeros((3, 2)), np.zeros((3, 2), dtype=np.float32)):
        assert read(array) is array
        assert np.shares_memory(read(torch.from_numpy(array)), array)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (3.0, "Z must be a 2-D array .*, got 0-D"),
        (np.ones(3), "got 1-D. Reshape your data"),
        (np.ones((2, 2, 2)), "got 3-D"),
        (np.ones((2, 0)), r"Z has 0 features: found 0 feature\(s\) \(shape=\(2, 0\)\)"),
    ],
)
def test_what_is_no_matrix(values, message):
    with pytest.raises(InputError, match=message):
        float_matrix(values, "Z", str)


def test_an_error_is_a_value_error_and_a_type_error():
    for kind in (ValueError, TypeError):
        with pytest.raises(kind):
            read("words")
