"""What is no ragged samples is refused in a sentence that says what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import settings

from diagatt import RaggedRows

quick = settings(max_examples=25)


ONE = np.ones((1, 2))
FRAME = {"id": [1, 1], "x": [1.0, 2.0], "name": ["a", "b"]}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RaggedRows.from_samples([]), "list of samples is empty"),
        (lambda: RaggedRows.coerce([]), "list of samples is empty"),
        (lambda: RaggedRows.coerce(()), "list of samples is empty"),
        (lambda: RaggedRows.coerce(np.zeros((0, 2))), "holds no sample"),
        (lambda: RaggedRows.coerce(np.zeros((0, 2, 2))), "holds no sample"),
        (lambda: RaggedRows.concatenate([]), "nothing to concatenate"),
        (lambda: RaggedRows.from_samples([ONE, np.ones((0, 2))]), "sample 1 has no rows.*drop it"),
        (lambda: RaggedRows.from_dense(np.zeros((2, 0, 2))), "sample 0 has no rows"),
        (lambda: RaggedRows(ONE, [0, 0, 1]), "sample 0 has no rows"),
        (lambda: RaggedRows.from_samples([ONE, ONE, np.ones((1, 3))]), "sample 2 has 3 features"),
        (
            lambda: RaggedRows.concatenate(
                [RaggedRows.from_rows(ONE), RaggedRows.from_rows(np.ones((1, 3)))]
            ),
            "part 1 has 3 features, part 0 has 2",
        ),
        (lambda: RaggedRows.from_samples([ONE, ONE * 1j]), "sample 1 is complex"),
        (lambda: RaggedRows.coerce(ONE * 1j), "Complex data not supported"),
        (lambda: RaggedRows.coerce(np.ones((1, 2, 2)) * 1j), "Complex data not supported"),
        (lambda: RaggedRows.coerce([["a", "b"]]), "not numeric"),
        (lambda: RaggedRows.from_samples([ONE, [["a", "b"]]]), "sample 1 is not numeric"),
        (lambda: RaggedRows.coerce(np.zeros((1, 2), dtype="M8[s]")), "not numeric"),
        (lambda: RaggedRows.coerce([[{}, 1.0]]), "sample 0, row 0 holds {}, not a number"),
        (lambda: RaggedRows.coerce([[1, 2], [3]]), "entry 1 has 1 entries, entry 0 has 2"),
        (lambda: RaggedRows.from_samples([ONE, np.ones(2)]), "sample 1 must be a 2-D array"),
        (lambda: RaggedRows.coerce(np.ones(3)), "got 1-D"),
        (lambda: RaggedRows.coerce(3.0), "got 0-D"),
        (lambda: RaggedRows.coerce(np.ones((1, 1, 1, 1))), "got 4-D"),
        (lambda: RaggedRows.from_dense(ONE), "expected an .n, p, d. array"),
        (lambda: RaggedRows.coerce(torch.ones(3)), "got 1-D"),
        (lambda: RaggedRows.from_rows(np.ones((2, 0))), "0 features"),
        (lambda: RaggedRows(ONE, [0, 2]), r"from 0 to the number of rows \(1\), got 0 to 2"),
        (lambda: RaggedRows(ONE, [1, 1]), "got 1 to 1"),
        (lambda: RaggedRows(ONE, [0.0, 1.0]), "1-D integer array"),
        (lambda: RaggedRows(ONE, [[0, 1]]), "1-D integer array"),
        (lambda: RaggedRows(np.zeros((0, 2)), [0]), "holds no sample"),
    ],
)
def test_bad_samples(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of lengths and mask"),
        ({"lengths": [1, 1], "mask": np.ones((2, 3), bool)}, "exactly one"),
        ({"lengths": [1]}, "lengths must be 2 integers"),
        ({"lengths": [1.0, 2.0]}, "lengths must be 2 integers"),
        ({"lengths": [1, 4]}, r"sample 1 has length 4, outside 0\.\.3"),
        ({"lengths": [0, 1]}, "sample 0 has no rows"),
        ({"mask": np.ones((2, 2), bool)}, r"shape \(2, 3\)"),
        ({"mask": np.ones((2, 3))}, "mask must be boolean"),
    ],
)
def test_bad_padding(options, message):
    with pytest.raises(ValueError, match=message):
        RaggedRows.from_padded(np.zeros((2, 3, 1)), **options)
    with pytest.raises(ValueError, match="n, p_max, d"):
        RaggedRows.from_padded(np.zeros((2, 3)), lengths=[1, 1])


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (FRAME, {"sample": "who"}, "column 'who' is not in the table"),
        (FRAME, {"sample": "id", "features": ["z"]}, "column 'z' is not in the table"),
        (FRAME, {"sample": "id"}, "column 'name' is not numeric .*get_dummies"),
        ({"id": [1]}, {"sample": "id"}, "no feature column"),
        (pd.DataFrame({"id": [], "x": []}), {"sample": "id"}, "holds no sample"),
        (pd.DataFrame({"id": ["a", None], "x": [1, 2]}), {"sample": "id"}, "line 1 .* no sample"),
        (pd.DataFrame({"id": [np.nan, 1], "x": [1, 2]}), {"sample": "id"}, "line 0 .* no sample"),
        (pl.DataFrame({"id": ["a", None], "x": [1, 2]}), {"sample": "id"}, "line 1 .* no sample"),
        ({"id": np.array([2, pd.NA]), "x": [1, 2]}, {"sample": "id"}, "line 1 .* no sample"),
        (
            {"id": np.array(["2020-01-01", "NaT"], dtype="M8[D]"), "x": [1, 2]},
            {"sample": "id"},
            "line 1 .* no sample",
        ),
        (
            pd.DataFrame({"id": ["a", 1], "x": [1, 2]}),
            {"sample": "id"},
            "column 'id' mixes labels that cannot be compared",
        ),
    ],
)
def test_bad_frames(frame, options, message):
    with pytest.raises(ValueError, match=message):
        RaggedRows.from_frame(frame, **options)


LISTS = pa.list_(pa.list_(pa.float32()))


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (pa.array([], type=LISTS), ValueError, "holds no sample|column is empty"),
        (pa.chunked_array([], type=LISTS), ValueError, "holds no sample|column is empty"),
        (pa.array([[[1.0]], None], type=LISTS), ValueError, "null sample"),
        (pa.array([[[1.0], None]], type=LISTS), ValueError, "null row"),
        (pa.array([[[1.0], [1.0, 2.0]]], type=LISTS), ValueError, "differing numbers of features"),
        (pa.array([[[]]], type=LISTS), ValueError, "0 features"),
        (pa.array([[], []], type=LISTS), ValueError, "sample 0 has no rows"),
        (pa.array([[[1.0]], []], type=LISTS), ValueError, "sample 1 has no rows"),
        (pa.array([[1.0]]), TypeError, "expected a list of lists of numbers"),
        (pa.array([[["a"]]]), ValueError, "sample 0, row 0 holds 'a', not a number"),
    ],
)
def test_bad_arrow_columns(column, error, message):
    with pytest.raises(error, match=message):
        RaggedRows.from_arrow(column)
