"""Names of features and covariates, and ids of samples and rows, on disk; and float16 rows."""

import json

import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttRegressor, RaggedRows
from diagatt.solvers import Likelihood
from diagatt.stores import RowStore, RowStoreWriter
from diagatt.stores.shard import StoreError

NAMES = ("size", "größe", "age")


def named(n=12, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 5, n)
    total = int(lengths.sum())
    return RaggedRows(
        rng.normal(size=(total, 3)).astype(np.float32),
        np.concatenate([[0], lengths.cumsum()]),
        NAMES,
        [f"{i:03d}" for i in range(n)],
        [f"cell {j}" for j in range(total)],
    )


@pytest.fixture
def store(tmp_path):
    X, Z = named(), pd.DataFrame({"sex": np.arange(12.0) % 2, "dose": np.arange(12.0)})
    return RowStore.from_rows(tmp_path / "s", X, np.arange(12.0), covariates=Z, shard_mib=0.0006)


def test_names_and_ids_return(store):
    X = named()
    assert len(store.shards) > 1
    assert store.feature_names == NAMES
    assert store.covariate_names == ("sex", "dose")
    assert store.sample_ids().tolist() == X.sample_ids.tolist()
    again = RowStore(store.path).to_rows()
    assert again == X
    assert again.feature_names == NAMES
    assert again.row_ids.tolist() == X.row_ids.tolist()
    assert again.sample_ids.tolist() == X.sample_ids.tolist()


def test_taken_samples_keep_their_ids(store):
    X, order = named(), [7, 0, 11, 3]
    taken = store[order]
    assert taken.row_ids.tolist() == X[order].row_ids.tolist()
    assert taken.sample_ids.tolist() == ["007", "000", "011", "003"]
    part = store.part(1).X
    assert (
        part[[1, 0]].row_ids.tolist()
        == np.concatenate(
            [
                part.row_ids[part.offsets[1] : part.offsets[2]],
                part.row_ids[: part.offsets[1]],
            ]
        ).tolist()
    )


def test_covariates_come_with_their_names(store):
    assert store.part(0).named_covariates.column_names == ["sex", "dose"]
    assert store.take([3]).named_covariates["dose"].to_pylist() == [3.0]


def test_shards_alone_know_the_names(store):
    digest = store.digest
    (store.path / "store.json").unlink()
    again = RowStore.index(store.path)
    assert (again.feature_names, again.digest) == (NAMES, digest)


def write(path, *blocks):
    with RowStoreWriter(path) as writer:
        for block in blocks:
            writer.extend(**block)


def test_columns_of_later_blocks_are_taken_by_name(tmp_path):
    X = named()
    write(tmp_path / "s", {"rows": X}, {"rows": X.with_features(NAMES[::-1])})
    rows = RowStore(tmp_path / "s").to_rows()
    np.testing.assert_array_equal(rows[12:].values, X.values)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X: X.with_names(None), "features of sample 12 have no names"),
        (lambda X: X.with_names(("size", "größe", "weight")), "no feature 'age'"),
    ],
)
def test_other_names_are_refused(tmp_path, change, said):
    with pytest.raises(StoreError, match=said):
        write(tmp_path / "s", {"rows": named()}, {"rows": change(named())})


def test_covariates_in_another_order_are_refused(tmp_path):
    Z = pd.DataFrame({"sex": np.zeros(12), "dose": np.ones(12)})
    said = "sample 12 has the covariates 'dose', 'sex'"
    blocks = [
        {"rows": named(), "covariates": Z[order]} for order in (["sex", "dose"], ["dose", "sex"])
    ]
    with pytest.raises(StoreError, match=said):
        write(tmp_path / "s", *blocks)


def test_format_2_only_where_it_is_needed(tmp_path, store):
    plain = RowStore.from_rows(tmp_path / "plain", np.ones((3, 2, 2)))
    formats = [json.loads((s.path / "store.json").read_text())["format"] for s in (plain, store)]
    assert formats == [1, 2]


@pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
def test_a_store_and_memory_give_the_same_model_by_name(tmp_path):
    rng = np.random.default_rng(1)
    X = named(60, seed=2).with_values(rng.normal(size=named(60, seed=2).values.shape))
    y = np.array([x[0].sum() for x in X])
    solver = Likelihood()
    model = DiagAttRegressor(solver=solver, random_state=0).fit(X, y)
    shuffled = X.with_features(NAMES[::-1])
    store = RowStore.from_rows(tmp_path / "s", shuffled, y, dtype="float64", shard_mib=0.0005)
    np.testing.assert_allclose(model.predict(store), model.predict(X), rtol=1e-12)
    fitted = DiagAttRegressor(solver=solver, random_state=0).fit(store)
    assert tuple(fitted.feature_names_in_) == NAMES[::-1]


def test_float16_takes_half_the_disk_and_is_read_as_float32(tmp_path):
    values = np.random.default_rng(0).normal(size=(200, 64)).astype(np.float16)
    rows = RaggedRows(values.astype(np.float32), np.arange(0, 201, 10))
    half = RowStore.from_rows(tmp_path / "half", rows, dtype="float16")
    assert half.dtype == np.float32
    assert half.nbytes < 200 * 64 * 2 + 5000
    np.testing.assert_array_equal(half.to_rows().values, values.astype(np.float32))
    assert half.part(0).X.dtype == np.float32
    (half.path / "store.json").unlink()
    assert RowStore.index(half.path).dtype == np.float32
    with pytest.raises(StoreError, match='too large for float16: write with dtype="float32"'):
        RowStore.from_rows(tmp_path / "h", np.full((1, 1, 1), 1e6), dtype="float16")
