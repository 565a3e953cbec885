"""RaggedRows behaves as a list of matrices, without ever padding or copying needlessly."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random

from diagatt import RaggedRows

quick = settings(max_examples=25)


@st.composite
def matrices(draw, min_size=1, dtypes=(np.float32, np.float64)):
    """A list of (p_i, d) arrays of one type."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=min_size, max_size=8))
    d, dtype = draw(st.integers(1, 4)), draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return [rng.normal(size=(p, d)).astype(dtype) for p in lengths]


def assert_samples(X, expected):
    """X is exactly this list of matrices, type included."""
    assert isinstance(X, RaggedRows)
    assert len(X) == len(expected)
    assert X.dtype == np.asarray(expected[0]).dtype
    for sample, matrix in zip(X, expected, strict=True):
        np.testing.assert_array_equal(sample, matrix)
    assert X.lengths.tolist() == [len(m) for m in expected]
    assert X.n_rows == sum(len(m) for m in expected)
    assert X.offsets[0] == 0
    assert X.offsets[-1] == X.n_rows == len(X.values)


def long_table(samples):
    values = np.concatenate(samples)
    table = {f"f{j}": values[:, j] for j in range(values.shape[1])}
    return {"sample": np.repeat(np.arange(len(samples)), [len(m) for m in samples]), **table}


# ---------------------------------------------------------------------- builders


@given(matrices())
@quick
def test_from_samples(samples):
    assert_samples(RaggedRows.from_samples(samples), samples)
    assert_samples(RaggedRows.from_samples(iter(samples)), samples)
    assert_samples(RaggedRows.coerce(samples), samples)
    assert_samples(RaggedRows.coerce(tuple(samples)), samples)
    assert_samples(RaggedRows.from_samples([torch.from_numpy(m) for m in samples]), samples)
    boxed = np.empty(len(samples), dtype=object)
    boxed[:] = samples
    assert_samples(RaggedRows.coerce(boxed), samples)


@given(matrices(dtypes=(np.float64,)))
@quick
def test_from_nested_python_lists(samples):
    assert_samples(RaggedRows.coerce([m.tolist() for m in samples]), samples)


@given(matrices())
@quick
def test_from_rows_makes_one_row_samples(samples):
    rows = np.concatenate(samples)
    one_row = [row[None] for row in rows]
    assert_samples(RaggedRows.from_rows(rows), one_row)
    assert_samples(RaggedRows.coerce(rows), one_row)
    assert_samples(RaggedRows.coerce(torch.from_numpy(rows)), one_row)
    assert_samples(RaggedRows.coerce(pd.DataFrame(rows)), one_row)


@given(n=st.integers(1, 4), p=st.integers(1, 4), d=st.integers(1, 3))
@quick
def test_from_dense(n, p, d):
    dense = np.random.default_rng(0).normal(size=(n, p, d)).astype(np.float32)
    assert_samples(RaggedRows.from_dense(dense), list(dense))
    assert_samples(RaggedRows.coerce(dense), list(dense))
    assert_samples(RaggedRows.coerce(torch.from_numpy(dense)), list(dense))


@given(matrices(), st.floats(-5, 5, width=32))
@quick
def test_padding_round_trip(samples, fill):
    X = RaggedRows.from_samples(samples)
    padded, mask = X.to_padded(fill=fill)
    assert padded.shape == (len(X), X.lengths.max(), X.n_features)
    assert padded.dtype == X.dtype
    assert np.all(padded[~mask] == fill)
    assert_samples(RaggedRows.from_padded(padded, mask=mask), samples)
    assert_samples(RaggedRows.from_padded(padded, lengths=X.lengths), samples)


def test_a_mask_may_have_holes():
    padded = np.arange(12.0).reshape(2, 3, 2)
    mask = np.array([[True, False, True], [False, True, False]])
    assert_samples(RaggedRows.from_padded(padded, mask=mask), [padded[0, [0, 2]], padded[1, [1]]])


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
@given(samples=matrices())
@quick
def test_from_frame(make, samples):
    X, ids = RaggedRows.from_frame(make(long_table(samples)), "sample")
    assert_samples(X, samples)
    assert ids.tolist() == list(range(len(samples)))


def test_from_frame_keeps_order_of_appearance_and_gathers_scattered_rows():
    frame = pd.DataFrame(
        {"who": ["z", "a", "z", "m", "a"], "x": [1, 2, 3, 4, 5], "y": [10, 20, 30, 40, 50]}
    )
    X, ids = RaggedRows.from_frame(frame, "who")
    assert ids.tolist() == ["z", "a", "m"]
    assert [m.tolist() for m in X] == [[[1, 10], [3, 30]], [[2, 20], [5, 50]], [[4, 40]]]
    chosen, _ = RaggedRows.from_frame(frame, "who", features=["y"])
    assert chosen.values.ravel().tolist() == [10, 30, 20, 50, 40]


@pytest.mark.parametrize("fixed", [True, False])
@given(samples=matrices())
@quick
def test_from_arrow(fixed, samples):
    number = pa.from_numpy_dtype(samples[0].dtype)
    row = pa.list_(number, samples[0].shape[1]) if fixed else pa.list_(number)
    column = pa.array([m.tolist() for m in samples], type=pa.list_(row))
    large = pa.array([m.tolist() for m in samples], type=pa.large_list(row))
    assert_samples(RaggedRows.from_arrow(column), samples)
    assert_samples(RaggedRows.from_arrow(large), samples)
    assert_samples(RaggedRows.coerce(column), samples)
    assert_samples(RaggedRows.from_arrow(pa.chunked_array([column, column])), samples + samples)
    if len(samples) > 1:  # a slice begins in the middle of its buffers
        assert_samples(RaggedRows.from_arrow(column[1:]), samples[1:])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@given(samples=matrices())
@settings(max_examples=8)
def test_from_nested_tensor(layout, samples):
    tensors = [torch.from_numpy(m) for m in samples]
    nested = torch.nested.nested_tensor(tensors, layout=layout)
    assert_samples(RaggedRows.from_torch(nested), samples)


def test_from_nested_tensor_with_holes():
    dense = torch.arange(24.0).reshape(2, 4, 3)
    start, length = torch.tensor([1, 0]), torch.tensor([2, 3])
    nested = torch.nested.narrow(dense, 1, start, length, layout=torch.jagged)
    assert_samples(RaggedRows.from_torch(nested), [dense[0, 1:3].numpy(), dense[1, :3].numpy()])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_floats_of_torch_are_widened(dtype):
    dense = torch.arange(12.0).reshape(2, 2, 3)
    for X in (
        RaggedRows.coerce(dense.to(dtype)),
        RaggedRows.coerce(list(dense.to(dtype))),
        RaggedRows.from_torch(torch.nested.nested_tensor(list(dense.to(dtype)))),
    ):
        np.testing.assert_array_equal(X.values, dense.numpy().reshape(4, 3))


def test_tensors_that_require_gradients():
    assert len(RaggedRows.coerce(torch.zeros(2, 3, 1, requires_grad=True))) == 2


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, bool, np.float16, np.longdouble, ">f8"])
def test_other_numbers_become_float64(dtype):
    X = RaggedRows.from_samples([np.ones((2, 2), dtype=dtype)])
    assert X.dtype == np.float64
    assert X.dtype.isnative


@given(matrices())
@quick
def test_constructor(samples):
    X = RaggedRows.from_samples(samples)
    assert RaggedRows(X.values, X.offsets) == X
    assert RaggedRows(X.values, X.offsets.astype(np.int32)) == X
    assert RaggedRows.coerce(X) is X


def test_sparse_matrices_of_arrow_are_those_of_scipy():
    parts = [csr_matrix(random(3, 7, density=0.4, random_state=k)) for k in range(3)]
    expected = RaggedRows.from_samples(parts)
    arrow = [pa.SparseCSRMatrix.from_scipy(part) for part in parts]
    assert RaggedRows.coerce(arrow) == expected
    whole = pa.SparseCSRMatrix.from_scipy(csr_matrix(expected.values))
    found = RaggedRows(whole, expected.offsets)
    assert found.is_sparse
    assert found == expected
    with pytest.raises(ValueError, match="X is sparse"):
        RaggedRows.coerce(whole)  # which rows belong together is not said


# ---------------------------------------------------------------------- indexing


@given(samples=matrices(), data=st.data())
@quick
def test_indexing_is_that_of_a_list(samples, data):
    X, n = RaggedRows.from_samples(samples), len(samples)
    i = data.draw(st.integers(-n, n - 1))
    np.testing.assert_array_equal(X[i], samples[i])
    np.testing.assert_array_equal(X[np.int64(i)], samples[i])

    many = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=10))
    for key in (many, np.array(many), pd.Series(many)):
        assert_samples(X[key], [samples[j] for j in many])
    assert X[np.array(many), ...] == X[many]  # as scikit-learn asks

    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any))
    expected = [m for m, keep in zip(samples, mask, strict=True) if keep]
    assert_samples(X[mask], expected)
    assert_samples(X[np.array(mask)], expected)

    cut = data.draw(st.slices(n).filter(lambda cut: samples[cut]))
    assert_samples(X[cut], samples[cut])


@given(matrices())
@quick
def test_iteration_and_length(samples):
    X = RaggedRows.from_samples(samples)
    assert X.shape == (len(samples),)
    for seen, expected in zip(reversed(X), reversed(samples), strict=True):
        np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "sample 3 does not exist: there are 3 samples"),
        (-4, "sample -4 does not exist"),
        (slice(2, 2), "holds no sample"),
        ([], "holds no sample"),
        (np.zeros(3, dtype=bool), "holds no sample"),
        (np.zeros((1, 1), dtype=int), "not one-dimensional"),
        ([0, 3], "out of bounds"),
        (np.array([True]), "did not match"),
        ((0, 1), "one axis"),
        ([0.5], "integers"),
    ],
)
def test_wrong_keys(key, message):
    X = RaggedRows.from_rows(np.eye(3))
    with pytest.raises(IndexError, match=message):
        X[key]


@given(matrices(), matrices())
@quick
def test_concatenation(first, second):
    d = min(first[0].shape[1], second[0].shape[1])
    first, second = [m[:, :d] for m in first], [m[:, :d].astype(first[0].dtype) for m in second]
    A, B = RaggedRows.from_samples(first), RaggedRows.from_samples(second)
    assert_samples(RaggedRows.concatenate([A, B, A]), first + second + first)
    assert RaggedRows.concatenate(A[i : i + 1] for i in range(len(A))) == A


# ---------------------------------------------------------------------- memory


def test_nothing_is_copied_that_need_not_be():
    dense = np.zeros((4, 3, 2), dtype=np.float32)
    rows = dense.reshape(12, 2)
    X = RaggedRows.from_dense(dense)
    for shared in (
        X.values,
        X[1],
        X[1:3].values,
        RaggedRows.from_rows(rows).values,
        RaggedRows.from_samples([rows]).values,
        RaggedRows(rows, [0, 5, 12]).values,
        RaggedRows.from_torch(torch.from_numpy(dense)).values,
        X.with_values(rows).values,
        X.astype(np.float32).values,
        X.to_torch()[0].numpy(),
        next(iter(X)),
    ):
        assert np.shares_memory(shared, dense)
    assert not np.shares_memory(X[[1, 2]].values, dense)
    assert np.shares_memory(X.to_torch()[1].numpy(), X.offsets)


def test_arrow_and_nested_buffers_are_used_where_they_stand():
    flat = pa.array(np.arange(12, dtype=np.float32))
    rows = pa.FixedSizeListArray.from_arrays(flat, 2)
    column = pa.ListArray.from_arrays(pa.array([0, 2, 6], type=pa.int32()), rows)
    assert np.shares_memory(RaggedRows.from_arrow(column).values, flat.to_numpy())
    chunked = pa.chunked_array([column])
    assert np.shares_memory(RaggedRows.from_arrow(chunked).values, flat.to_numpy())
    values = torch.zeros(5, 2)
    nested = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 5]))
    assert np.shares_memory(RaggedRows.from_torch(nested).values, values.numpy())


def test_fortran_order_is_copied_once_into_rows():
    matrix = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    X = RaggedRows.from_rows(matrix)
    assert X.values.flags.c_contiguous
    np.testing.assert_array_equal(X.values, matrix)


def test_immutable():
    mine = np.zeros((3, 2))
    X = RaggedRows.from_rows(mine)
    for array in (X.values, X.offsets, X[0], X[:2].values, X[[0]].values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        X.values = mine
    with pytest.raises(AttributeError):
        X.other = 1
    with pytest.raises(TypeError):
        hash(X)
    mine[0] = 1.0  # the caller's own array stays writable


@given(matrices())
@quick
def test_copies_are_equal_and_independent(samples):
    X = RaggedRows.from_samples(samples)
    for twin in (pickle.loads(pickle.dumps(X)), copy.deepcopy(X), copy.copy(X)):
        assert twin == X
        assert twin.dtype == X.dtype
        assert not np.shares_memory(twin.values, X.values)
        with pytest.raises(ValueError, match="read-only"):
            twin.values[0] = 1


def test_a_pickled_slice_carries_only_its_rows():
    X = RaggedRows.from_rows(np.zeros((1000, 50)))
    assert len(pickle.dumps(X[:2])) < 2000


# ---------------------------------------------------------------------- conversions


def test_equality():
    X = RaggedRows(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    assert RaggedRows(X.values.copy(), X.offsets.copy()) == X
    assert RaggedRows(X.values, [0, 2, 3]) != X
    assert X.with_values(X.values + 1) != X
    assert X != 3


def test_conversions():
    X = RaggedRows(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    assert X.astype(np.float64) is X
    assert X.astype(np.float32).dtype == np.float32
    projected = X.with_values(X.values[:, :1])
    assert (projected.n_features, projected.lengths.tolist()) == (1, [1, 2])
    values, offsets = X.to_torch(dtype=torch.float32)
    assert (values.dtype, offsets.tolist()) == (torch.float32, [0, 1, 3])
    assert X.nbytes == X.values.nbytes + X.offsets.nbytes
    assert repr(X) == "RaggedRows(n_samples=2, n_rows=3, n_features=2, dtype=float64)"


def test_sharing_with_torch_is_silent(recwarn):
    RaggedRows.from_rows(np.eye(2)).to_torch()
    assert not recwarn.list


def test_numpy_is_told_to_be_explicit():
    with pytest.raises(TypeError, match=r"use .values for the packed rows, or .to_padded\(\)"):
        np.asarray(RaggedRows.from_rows(np.eye(2)))
