"""Responses of several numbers: what is written is what is read."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from diagatt.lifetimes import make_times, read_times
from diagatt.stores import RowStore, RowStoreWriter, StoreError

X = np.arange(24.0).reshape(4, 3, 2)
EVENT, TIME = np.array([True, False, True, True]), np.array([2.0, 5.0, 1.5, 3.0])


@pytest.mark.parametrize(
    "y",
    [
        make_times(EVENT, TIME),
        make_times(EVENT, TIME, start=[0.0, 1.0, 0.5, 0.0]),
        {"time": TIME, "event": EVENT},
        pd.DataFrame({"event": EVENT, "time": TIME}),
        {"lower": TIME, "upper": [2.5, np.inf, 1.5, 4.0]},
    ],
)
def test_times_are_read_as_they_were_written(tmp_path, y):
    store = RowStore.from_rows(tmp_path / "s", X, y, shard_mib=1e-4)
    assert len(store.shards) > 1
    assert store.has_times
    np.testing.assert_array_equal(read_times(store.responses(), 4), read_times(y, 4))
    some = store.take([3, 0])
    np.testing.assert_array_equal(read_times(some.y, 2), read_times(y, 4)[[3, 0]])
    store.verify()


def test_outcomes_keep_their_names(tmp_path):
    y = pd.DataFrame({"bmi": [20.0, 25.0, 31.0, 22.0], "age": [3, 1, 2, 7]})
    store = RowStore.from_rows(tmp_path / "s", X, y, shard_mib=1e-4)
    assert store.response_names == ("bmi", "age")
    assert not store.has_times
    np.testing.assert_array_equal(store.responses(), y.to_numpy())
    assert store.part(0).named_y.column_names == ["bmi", "age"]
    unnamed = RowStore.from_rows(tmp_path / "u", X, y.to_numpy())
    assert unnamed.response_names == ("y0", "y1")
    one = RowStore.from_rows(tmp_path / "o", X, y[["bmi"]])  # one column is one response
    assert one.response_names is None
    assert one.responses().tolist() == [20.0, 25.0, 31.0, 22.0]


def test_tables_name_their_columns(tmp_path):
    lines = {"who": list("aabb"), "x": [1.0, 2.0, 3.0, 4.0], "days": [5.0, 5.0, 8.0, 8.0]}
    lines["died"] = [True, True, False, False]
    meaning = {"time": "days", "event": "died"}
    store = RowStore.from_frame(tmp_path / "f", lines, "who", y=meaning)
    assert store.n_features == 1
    np.testing.assert_array_equal(store.responses()["time"], [5.0, 8.0])
    np.testing.assert_array_equal(store.responses()["event"], [True, False])
    both = RowStore.from_frame(tmp_path / "b", lines, "who", y=["days", "died"])
    np.testing.assert_array_equal(both.responses(), [[5, 1], [8, 0]])
    table = pa.table({"cells": [[[1.0]], [[2.0], [3.0]]], "a": [1.0, 2.0], "b": [3.0, 4.0]})
    arrow = RowStore.from_arrow(tmp_path / "a", table, "cells", y=["b", "a"])
    assert arrow.response_names == ("b", "a")
    np.testing.assert_array_equal(arrow.responses(), [[3, 1], [4, 2]])


def test_samples_may_come_one_by_one(tmp_path):
    times = [{"time": t, "event": bool(e)} for t, e in zip(TIME, EVENT, strict=True)]
    store = RowStore.write(tmp_path / "s", zip(X, times, strict=True))
    np.testing.assert_array_equal(store.responses()["time"], TIME)
    other = RowStore.write(tmp_path / "t", zip(X, make_times(EVENT, TIME), strict=True))
    assert other.digest != store.digest  # columns stand in another order
    np.testing.assert_array_equal(other.responses()["event"], EVENT)


def test_a_folder_of_shards_is_indexed(tmp_path):
    store = RowStore.from_rows(tmp_path / "s", X, np.ones((4, 2)))
    (store.path / "store.json").unlink()
    assert RowStore.index(store.path).digest == store.digest


def test_only_several_responses_need_the_new_format(tmp_path):
    for name, y, expected in (("one", TIME, 1), ("two", np.ones((4, 2)), 4)):
        store = RowStore.from_rows(tmp_path / name, X, y)
        assert json.loads((store.path / "store.json").read_text())["format"] == expected


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ([1.0, 2.0], 1.0, "sample 1 has one response, those before have several"),
        (1.0, [1.0, 2.0], "sample 1 has several responses, those before have one"),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, "sample 1 has the responses 'a', 'c'"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "sample 1 has the responses"),
        ([1.0, 2.0], [1.0, np.nan], "sample 1: y1"),
        ({"time": 1, "event": 1}, {"time": -1, "event": 1}, "sample 1: time.*not positive"),
        ({"time": 1, "event": 1}, {"time": 1, "event": 2}, "sample 1: event.*= 2"),
    ],
)
def test_responses_that_do_not_fit_are_refused(tmp_path, first, second, said):
    with RowStoreWriter(tmp_path / "s") as writer:
        writer.add(X[0], y=first)
        with pytest.raises(StoreError, match=said):
            writer.add(X[1], y=second)
    assert len(RowStore(tmp_path / "s")) == 1
