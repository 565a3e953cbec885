"""Stores from iterators, tables, transformers."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from diagatt import RaggedRows
from diagatt.images import PatchRows
from diagatt.stores import RowStore, StoreError
from diagatt.text import TextRows
from tests.kinds.text.conftest import tiny_bert  # noqa: F401

SMALL = {"shard_mib": 0.005}


def test_write_takes_arrays_pairs_and_mappings(tmp_path):
    X = [np.ones((2, 3)), np.zeros((1, 3))]
    assert not RowStore.write(tmp_path / "a", X).has_response
    pairs = RowStore.write(tmp_path / "b", zip(X, ["yes", "no"], strict=True))
    assert pairs.responses().tolist() == ["yes", "no"]
    lines = [{"X": x, "y": True, "covariates": np.ones(2), "n": i} for i, x in enumerate(X)]
    mappings = RowStore.write(tmp_path / "c", lines, dtype="float64")
    assert mappings.covariates().tolist() == [[1, 1], [1, 1]]
    assert mappings.take([1]).payload("n") == [1]
    assert mappings.to_rows() == RaggedRows.from_samples(X)
    with pytest.raises(KeyError, match="no payload 'm'"):
        mappings.part(0).payload("m")


def test_from_rows_takes_what_estimators_take(tmp_path):
    dense = np.random.default_rng(0).normal(size=(7, 3, 2))
    for name, X in {"dense": dense, "list": list(dense), "flat": dense[:, 0]}.items():
        store = RowStore.from_rows(tmp_path / name, X, dtype="float64")
        assert store.to_rows() == RaggedRows.coerce(X)


def test_large_shards_open_with_the_memory_they_need(tmp_path, monkeypatch):
    from diagatt.stores import build

    monkeypatch.setattr(build, "MEMORY", 0.001)
    store = RowStore.write(tmp_path / "s", [np.ones((1000, 10))])
    assert store.memory == pytest.approx(2 * store.nbytes / 2**20)


# ---------------------------------------------------------------------- tables


@pytest.fixture(scope="module")
def long():
    """A long table whose samples are not adjacent."""
    rng = np.random.default_rng(0)
    person = rng.permutation(np.repeat(np.arange(30), 6))
    return {
        "person": [f"p{i}" for i in person],
        "a": rng.normal(size=180),
        "b": rng.normal(size=180),
        "age": person * 2.0,
        "w": person + 1.0,
        "group": [f"g{i % 3}" for i in person],
    }


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_from_frame(tmp_path, long, kind):
    store = RowStore.from_frame(
        tmp_path / "s",
        kind(long),
        "person",
        y="age",
        weight="w",
        covariates=["age"],
        payload=["group"],
        dtype="float64",
        **SMALL,
    )
    expected, ids = RaggedRows.from_frame(long, "person", ["a", "b"])
    assert store.to_rows() == expected
    number = np.array([int(i[1:]) for i in ids])
    np.testing.assert_array_equal(store.responses(), number * 2.0)
    np.testing.assert_array_equal(store.weights(), number + 1.0)
    np.testing.assert_array_equal(store.covariates(), number[:, None] * 2.0)
    whole = store.take(slice(None))
    assert whole.payload("person") == ids.tolist()
    assert whole.payload("group") == [f"g{i % 3}" for i in number]


def test_from_frame_refuses(tmp_path, long):
    with pytest.raises(StoreError, match=r"line \d+: a is .* must be the same in all its lines"):
        RowStore.from_frame(tmp_path / "s", pd.DataFrame(long), "person", y="a", features=["b"])
    with pytest.raises(StoreError, match="column 'z' is not in the table"):
        RowStore.from_frame(tmp_path / "s", pd.DataFrame(long), "person", y="z")
    assert not list(tmp_path.iterdir())


def test_ids_of_any_name_and_type_are_kept(tmp_path, long):
    days = pd.to_datetime(pd.Series(range(180)) // 2, unit="D")
    frame = pd.DataFrame({"rows": days, "a": long["a"]})
    store = RowStore.from_frame(tmp_path / "s", frame, "rows")
    assert len(store) == 90
    assert len(set(store.take(slice(None)).payload("sample"))) == 90


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(p, 3)).tolist() for p in rng.integers(1, 6, 90)]
    return pa.table(
        {
            "cells": X,
            "age": np.arange(90),
            "w": np.ones(90),
            "q": rng.normal(size=90),
            "who": [f"n{i}" for i in range(90)],
        }
    )


@pytest.mark.parametrize("kind", ["table", "batch", "reader", "generator", "dataset", "parquet"])
def test_from_arrow_streams(tmp_path, table, kind):
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=20)
    data = {
        "table": lambda: table,
        "batch": lambda: table.combine_chunks().to_batches()[0],
        "reader": lambda: table.to_reader(max_chunksize=7),
        "generator": lambda: (b for b in table.to_batches(max_chunksize=7)),
        "dataset": lambda: dataset.dataset(tmp_path / "t.parquet"),
        "parquet": lambda: parquet.ParquetFile(tmp_path / "t.parquet"),
    }[kind]()
    store = RowStore.from_arrow(
        tmp_path / "s",
        data,
        "cells",
        y="age",
        weight="w",
        covariates=["q"],
        payload=["who"],
        dtype="float64",
        shard_mib=0.001,
    )
    assert len(store.shards) > 3
    assert store.to_rows() == RaggedRows.from_arrow(table["cells"])
    assert store.response_type == "int64"
    assert store.responses().tolist() == list(range(90))
    np.testing.assert_array_equal(store.covariates()[:, 0], table["q"].to_numpy())
    assert store.take([5, 80]).payload("who") == ["n5", "n80"]


def test_from_arrow_refuses(tmp_path, table):
    with pytest.raises(StoreError, match="column 'z' is not in the table"):
        RowStore.from_arrow(tmp_path / "s", table, "z")
    with pytest.raises(StoreError, match="payload cannot be called 'weights'"):
        RowStore.from_arrow(
            tmp_path / "s", table.rename_columns({"w": "weights"}), "cells", payload=["weights"]
        )
    holes = table.set_column(1, "age", pa.array([1, None] * 45))
    with pytest.raises(StoreError, match="sample 1: y is None"):
        RowStore.from_arrow(tmp_path / "s", holes, "cells", y="age")
    empty = pa.table({"cells": [[[1.0]], []]})
    with pytest.raises(StoreError, match=r"batch 0.*sample 1 has no rows"):
        RowStore.from_arrow(tmp_path / "s", empty, "cells")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- transformers


class Doubled:
    """A sample (i + 1, 2) full of 2 i from each number i; remembers how it was called."""

    def __init__(self):
        self.calls = []

    def transform(self, inputs):
        self.calls.append(len(inputs))
        if 13 in inputs:
            raise ValueError("13 is unlucky")
        return RaggedRows.from_samples([np.full((i + 1, 2), 2.0 * i) for i in inputs])


def test_from_transformer_works_in_chunks(tmp_path):
    doubled = Doubled()
    store = RowStore.from_transformer(
        tmp_path / "s",
        doubled,
        (i for i in range(10)),
        y=(i % 2 == 0 for i in range(10)),
        weights=np.ones(10),
        covariates=np.arange(20.0).reshape(10, 2),
        chunk=4,
        payload="number",
    )
    assert doubled.calls == [4, 4, 2]
    assert store.to_rows() == Doubled().transform(range(10)).astype("float32")
    assert store.response_type == "bool"
    assert store.covariates().ravel().tolist() == list(range(20))
    assert store.part(0).payload("number") == list(range(10))


@pytest.mark.parametrize(
    ("inputs", "y", "said"),
    [
        (range(10), range(9), "y ends after 9 values, but there are more inputs"),
        (range(10), range(11), "y has more than 10 values"),
        (range(20), None, "inputs 12 to 15, counted from 12: 13 is unlucky"),
    ],
)
def test_from_transformer_refuses(tmp_path, inputs, y, said):
    with pytest.raises(StoreError, match=said):
        RowStore.from_transformer(tmp_path / "s", Doubled(), inputs, y, chunk=4)
    assert not list(tmp_path.iterdir())


def test_images(tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    paths = []
    for i in range(6):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(rng.integers(0, 255, (8, 8 + 4 * i), dtype=np.uint8)).save(paths[-1])
    patches = PatchRows(4).fit(paths[:1])
    store = RowStore.from_transformer(
        tmp_path / "s", patches, iter(paths), range(6), chunk=4, payload="path"
    )
    assert store.to_rows() == patches.transform(paths)
    assert store.part(0).payload("path") == [str(path) for path in paths]


def test_texts(tmp_path, tiny_bert):  # noqa: F811
    texts = ["it works!", "it does not", "good, good", "so so", "nothing"]
    rows = TextRows(tiny_bert)
    pipeline = make_pipeline(FunctionTransformer(), rows)
    for name, transformer in {"rows": rows, "pipeline": pipeline}.items():
        store = RowStore.from_transformer(
            tmp_path / name, transformer, texts, list("abaab"), chunk=2, payload="text"
        )
        expected = rows.transform(texts)
        assert store.lengths().tolist() == expected.lengths.tolist()
        # Texts that go through the model together differ in the last digits
        np.testing.assert_allclose(store.to_rows().values, expected.values, atol=1e-5)
        assert store.responses().tolist() == list("abaab")
        assert store.take([3]).payload("text") == ["so so"]
