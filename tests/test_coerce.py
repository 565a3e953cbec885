"""What X, y, weights and covariates may be; what may not is refused with its sample and row."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from diagatt import RaggedRows, coerce
from diagatt.arrays import InputError

quick = settings(max_examples=25)


@st.composite
def matrices(draw):
    """A list of (p_i, d) arrays."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    d = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return [rng.normal(size=(p, d)) for p in lengths]


def boxed(items):
    box = np.empty(len(items), dtype=object)
    box[:] = items
    return box


# ---------------------------------------------------------------------- samples


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([np.eye(2)], False),
        ([[[1, 2], [3, 4]]], False),
        (np.array([np.eye(2), np.ones((1, 2))], dtype=object), False),
        (np.zeros((2, 2, 2)), False),
        (torch.zeros(2, 2, 2), False),
        ([pd.DataFrame(np.eye(2))], False),
        ([pl.DataFrame(np.eye(2))], False),
        ([], False),
        (pa.array([[[1.0]]]), False),
        (RaggedRows.from_rows(np.eye(2)), False),
        ([[1, 2], [3, 4]], True),
        ([[[1, 2], [3]]], False),
        (np.eye(2), True),
        (np.eye(2).astype(object), True),
        (pd.DataFrame(np.eye(2)), True),
        (pl.DataFrame(np.eye(2)), True),
        (scipy.sparse.eye(2), True),
        (None, True),
    ],
)
def test_one_table_is_told_from_a_list_of_matrices(X, expected):
    assert coerce.is_flat(X) is expected


@given(matrices())
@quick
def test_every_collection_of_matrices_holds_the_same_rows(samples):
    forms = {
        "list": samples,
        "tuple": tuple(samples),
        "objects": boxed(samples),
        "nested lists": [m.tolist() for m in samples],
        "tensors": [torch.from_numpy(m) for m in samples],
        "pandas": [pd.DataFrame(m) for m in samples],
        "polars": [pl.DataFrame(m) for m in samples],
        "backwards": [m[::-1][::-1] for m in samples],
        "columns first": [np.asfortranarray(m) for m in samples],
        "no mask": [np.ma.masked_array(m) for m in samples],
        "Arrow": pa.array([m.tolist() for m in samples], type=pa.list_(pa.list_(pa.float64()))),
    }
    for name, form in forms.items():
        values, offsets, *_ = coerce.samples(form)
        np.testing.assert_array_equal(values, np.concatenate(samples), err_msg=name)
        assert np.diff(offsets).tolist() == [len(m) for m in samples], name


@given(samples=matrices(), data=st.data())
@quick
def test_a_masked_row_is_named(samples, data):
    i = data.draw(st.integers(0, len(samples) - 1))
    j = data.draw(st.integers(0, len(samples[i]) - 1))
    masked = [np.ma.masked_array(m, mask=np.zeros(m.shape)) for m in samples]
    masked[i][j, 0] = np.ma.masked
    for form in (masked, tuple(masked), boxed(masked)):
        with pytest.raises(InputError, match=f"sample {i}, row {j} is masked"):
            coerce.samples(form)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda m: coerce.samples(m), "sample 1, row 2 is masked"),
        (lambda m: RaggedRows.from_padded(m, lengths=[3, 3]), "sample 1, row 2 is masked"),
        (lambda m: RaggedRows(m.reshape(6, 2), [0, 3, 6]), "sample 1, row 2 is masked"),
        (lambda m: coerce.samples(m.reshape(6, 2)), "sample 5, row 0 is masked"),
        (lambda m: coerce.samples(list(m.reshape(6, 2))), "sample 5, row 0 is masked"),
    ],
)
def test_masks_of_one_array_are_named(build, message):
    masked = np.ma.masked_array(np.ones((2, 3, 2)), mask=np.zeros((2, 3, 2)))
    masked[1, 2, 0] = np.ma.masked
    with pytest.raises(InputError, match=message):
        build(masked)


def test_padding_may_be_masked():
    mask = np.zeros((2, 3, 1), dtype=bool)
    mask[0, 2] = True
    padded = np.ma.masked_array(np.arange(6.0).reshape(2, 3, 1), mask=mask)
    X = RaggedRows.from_padded(padded, lengths=[2, 3])
    assert X.values.ravel().tolist() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3), dtype="M8[D]"), "X is not numeric but holds dates or durations"),
        (pl.DataFrame({"d": [datetime.date(2020, 1, 1)]}), "X holds dates or durations .d: Date"),
        ([[1.0, 10**400]], "sample 0, row 0 holds 1000.*, not a number: int too large"),
        ([[[1.0, {}]]], "X is not an array|sample 0, row 0 holds {}, not a number"),
        (scipy.sparse.eye(2), "X is sparse"),
        ({"a": 1}, "X is a dict: pass a list, an array or a frame"),
        ("words", "X is 'words', no samples: read the file"),
        (pa.array([[[1.0]], None]), "sample 1 is a null sample: drop it"),
        (pa.array([[[1.0]], [[2.0], None]]), "sample 1, row 1 is a null row: drop it"),
        (pa.array([[[1.0]], [[2.0], [1.0, 2.0]]]), "sample 1, row 1 is the first"),
    ],
)
def test_what_are_no_samples(X, message):
    with pytest.raises(InputError, match=message):
        coerce.samples(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_row_that_is_not_finite_is_named(value, monkeypatch):
    monkeypatch.setattr(coerce.usable, "SEARCHED_ROWS", 4)
    X = RaggedRows.from_samples([np.zeros((3, 2)), np.zeros((5, 2)), np.zeros((1, 2))])
    coerce.refuse_unusable(X)
    for packed, where in [(0, "sample 0, row 0"), (6, "sample 1, row 3"), (8, "sample 2, row 0")]:
        values = np.array(X.values)
        values[packed, 1] = value
        values[8, 0] = -value  # opposite infinities do not hide each other
        kind = "NaN" if np.isnan(value) else "infinity"
        with pytest.raises(InputError, match=f"{where} contains {kind}: drop the row or impute it"):
            coerce.refuse_unusable(X.with_values(values))


def test_a_sum_of_squares_that_overflows_is_not_infinite():
    coerce.refuse_unusable(RaggedRows.from_rows(np.full((4, 1), 1.2e154)))
    with pytest.raises(InputError, match=r"sample 0, row 0 holds 1.4e\+154, which is too large"):
        coerce.refuse_unusable(RaggedRows.from_rows(np.full((4, 1), 1.4e154)))


def test_nulls_of_rows_are_nan_and_named():
    X = RaggedRows.coerce(pa.array([[[1.0, 2.0]], [[3.0, None]]]))
    with pytest.raises(InputError, match="sample 1, row 0 contains NaN"):
        coerce.refuse_unusable(X)


# ---------------------------------------------------------------------- responses


COLUMNS = [
    np.array,
    list,
    tuple,
    pd.Series,
    pl.Series,
    pa.array,
    torch.tensor,
    np.ma.masked_array,
    lambda y: np.array(y)[::-1][::-1],
    lambda y: np.array(y, dtype=object),
    lambda y: pd.Series(y, dtype="Float64"),
    lambda y: pd.Series(y, index=[7, 3, 5]),
]


@pytest.mark.parametrize("make", COLUMNS)
def test_responses_of_any_kind(make):
    y = coerce.response(make([1.0, -2.0, 0.5]), 3)
    assert y.dtype == np.float64
    assert y.flags.c_contiguous
    assert y.tolist() == [1.0, -2.0, 0.5]


def test_a_column_vector_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert coerce.response(np.ones((3, 1)), 3).tolist() == [1, 1, 1]


BAD_COLUMNS = {
    "none": (None, "requires y to be passed, but the target y is None"),
    "shorter": ([1.0, 2.0], "X has 3 samples, y has 2 responses"),
    "two columns": (np.ones((3, 2)), "y should be a 1d array"),
    "dates": (np.array(["2020"] * 3, dtype="M8[Y]"), "y is not numeric but holds dates"),
    "NaT": (np.array(["NaT"] * 3, dtype="M8[D]"), "y is not numeric but holds dates"),
    "durations": (np.array([1, 2, 3], dtype="m8[s]"), "y is not numeric but holds dates"),
    "frame of dates": (pd.Series(pd.to_datetime(["2020"] * 3)), "y holds dates or durations"),
    "complex": (np.ones(3) * 1j, "Complex data not supported: y is complex"),
    "masked": (np.ma.masked_array([1.0, 2, 3], mask=[0, 1, 0]), r"y\[1\] is masked"),
    "mapping": ({"a": 1}, "y is a dict: pass a list, an array or a frame"),
    "word": ("word", "y should be a 1d array"),
}
BAD_NUMBERS = {
    **BAD_COLUMNS,
    "NaN": ([1, 2, np.nan], r"y\[2\] is NaN: drop the sample or impute the entry"),
    "infinity": ([1, np.inf, 2], r"y\[1\] is infinity"),
    "None": ([1, None, 2], r"y\[1\] is NaN"),
    "NA": (pd.array([1, 2, None], dtype="Int64"), r"y\[2\] is NaN"),
    "polars null": (pl.Series([None, 1, 2]), r"y\[0\] is NaN"),
    "words": (["1", "2", "3"], "y is not numeric .*: if these are classes, use a classifier"),
    "objects": (np.array([1, "2", 3], dtype=object), r"y\[1\] holds '2', not a number"),
    "date objects": ([1, datetime.date(2020, 1, 1), 2], r"y\[1\] is .*not dates or durations"),
}


@pytest.mark.parametrize("case", BAD_NUMBERS)
def test_bad_responses(case):
    y, message = BAD_NUMBERS[case]
    with pytest.raises(ValueError, match=message):
        coerce.response(y, 3)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b", "a"]),
        [True, False, True],
        [1, 2, 1],
        np.array([1.0, 2.0, 1.0]),
        np.array(["a", "b", "a"], dtype=object),
        pd.Series(["a", "b", "a"], dtype="category"),
        pd.Series(["a", "b", "a"]),
        pl.Series(["a", "b", "a"]),
        torch.tensor([1, 2, 1]),
    ],
)
def test_classes_stay_what_they_are(labels):
    read = coerce.classes(labels, 3)
    assert list(read) == list(labels)
    assert np.unique(read).shape == (2,)


BAD_CLASSES = {
    **BAD_COLUMNS,
    "NaN": ([1, 2, np.nan], r"y\[2\] is NaN: drop the sample"),
    "infinity": ([1, 2, np.inf], r"y\[2\] is infinity"),
    "None": (["a", None, "b"], r"y\[1\] is missing: drop the sample"),
    "NA": (pd.array(["a", "b", None], dtype="string"), r"y\[2\] is missing"),
    "polars null": (pl.Series([None, "a", "b"]), r"y\[0\] is missing"),
    "mixed": (np.array(["a", 1, "b"], dtype=object), "y mixes labels that cannot be compared"),
    "numbers": ([0.5, 1.2, 3.3], "Unknown label type: continuous"),
}


@pytest.mark.parametrize("case", BAD_CLASSES)
def test_bad_classes(case):
    y, message = BAD_CLASSES[case]
    with pytest.raises(ValueError, match=message):
        coerce.classes(y, 3)


# ---------------------------------------------------------------------- weights, covariates


@pytest.mark.parametrize("make", COLUMNS)
def test_weights_of_any_kind(make):
    w = coerce.weights(make([1.0, 0.0, 0.5]), 3)
    assert w.dtype == np.float64
    assert w.tolist() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("given_", "expected"), [(None, [1, 1, 1]), (2, [2, 2, 2]), (np.float32(0.5), [0.5] * 3)]
)
def test_one_weight_for_all(given_, expected):
    assert coerce.weights(given_, 3).tolist() == expected


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ("balanced", "must be a number or one number per sample, got 'balanced'"),
        ({0: 1.0}, "must be a number or one number per sample, got {0: 1.0}"),
        (["a", "b", "c"], "sample_weight is not numeric"),
        (1j, "Complex data not supported: sample_weight"),
        ([1, None, 1], r"sample_weight\[1\] is NaN"),
        ([1, np.inf, 1], r"sample_weight\[1\] is infinity"),
        (np.nan, r"sample_weight\[0\] is NaN"),
        ([1, -1, 1], r"sample_weight\[1\] = -1 is negative"),
        ([0, 0, 0], "all sample weights are zero"),
        ([1, 1], "sample_weight has 2 entries, X has 3 samples"),
        (np.ones((3, 1)), "Sample weights must be 1D"),
        (np.ma.masked_array([1.0, 1, 1], mask=[0, 0, 1]), r"sample_weight\[2\] is masked"),
        (np.array([1, 2, 3], dtype="m8[s]"), "sample_weight is not numeric but holds dates"),
    ],
)
def test_bad_weights(given_, message):
    with pytest.raises(InputError, match=message):
        coerce.weights(given_, 3)


Z = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    "given_",
    [
        Z,
        Z.tolist(),
        Z[::-1][::-1],
        np.flip(np.flip(Z, 0).copy(), 0),
        Z.astype(np.float32),
        Z.astype(int),
        Z.astype(">f8"),
        np.asfortranarray(Z),
        pd.DataFrame(Z),
        pl.DataFrame(Z),
        torch.from_numpy(Z),
        np.ma.masked_array(Z),
    ],
)
def test_covariates_of_any_kind(given_):
    read = coerce.covariates(given_, 3)
    assert read.dtype == np.float64
    np.testing.assert_array_equal(torch.from_numpy(read), Z)


def test_no_covariates():
    assert coerce.covariates(None, 3).shape == (3, 0)
    assert coerce.covariates(np.empty((3, 0)), 3, expected=0).shape == (3, 0)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (Z[:, 0], r"got 1-D: pass a single covariate z as z\[:, None\]"),
        (Z[:2], "covariates have 2 lines, X has 3 samples"),
        (np.where(Z == 3, np.nan, Z), r"covariates\[1, 1\] is NaN"),
        (np.where(Z == 3, np.inf, Z), r"covariates\[1, 1\] is infinity"),
        (np.where(Z == 3, None, Z), r"covariates\[1, 1\] is NaN"),
        (np.where(Z == 3, "x", Z.astype(object)), r"covariates\[1, 1\] holds 'x', .*get_dummies"),
        (Z * 1j, "Complex data not supported: covariates"),
        (Z.astype("M8[D]"), "covariates is not numeric but holds dates"),
        (pd.DataFrame({"d": pd.to_datetime(["2020"] * 3)}), "covariates holds dates"),
        (np.ma.masked_equal(Z, 3), r"covariates\[1, 1\] is masked"),
        (scipy.sparse.csr_matrix(Z), r"covariates is sparse: pass covariates.toarray\(\)"),
        ({"age": [1, 2, 3]}, "covariates is a dict: pass a list, an array or a frame"),
    ],
)
def test_bad_covariates(given_, message):
    with pytest.raises(InputError, match=message):
        coerce.covariates(given_, 3)


def test_covariates_of_another_number_than_in_fit():
    with pytest.raises(InputError, match="fitted with 3 covariates, got 2: pass the same"):
        coerce.covariates(Z, 3, expected=3)


def test_responses_without_a_column_are_refused():
    with pytest.raises(InputError, match="y has no column: pass one response per sample"):
        coerce.n_outcomes(np.ones((5, 0)))
