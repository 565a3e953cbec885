"""One data set in every container: the same model, and the same predictions to 1e-6."""

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttRegressor, RaggedRows
from diagatt.kinds import Columns
from diagatt.kinds.files import read_inputs
from diagatt.slides import read_slides
from diagatt.solvers import Likelihood
from diagatt.stores import RowStore

N, NAMES = 40, ["gene_3", "gene_1", "gene_2"]


@pytest.fixture(scope="module")
def long():
    """A long table; the cells of a patient do not stand together."""
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(N), rng.integers(3, 7, N)))
    genes = rng.normal(size=(len(patient), 3)).astype(np.float32)
    first = np.unique(patient, return_index=True)[1]
    genes[first] += 4
    y = genes[first] @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=N)
    frame = pd.DataFrame(genes, columns=NAMES)
    frame["patient"] = [f"{i:03d}" for i in patient]
    frame["cell"] = [f"cell {j}" for j in range(len(frame))]
    frame["y"] = y[patient]
    return frame


def new_model():
    return DiagAttRegressor(solver=Likelihood(), random_state=0)


@pytest.fixture(scope="module")
def reference(long):
    """Ids, responses, rows and the predictions of a model of rows in memory, by id."""
    X, ids = RaggedRows.from_frame(long, "patient", NAMES, row="cell")
    y = long.drop_duplicates("patient")["y"].to_numpy()
    model = new_model().fit(X, y)
    return X, y, ids, model, dict(zip(ids, model.predict(X), strict=True))


def from_frame(long, tmp_path, reference):
    X, ids = RaggedRows.from_frame(long, "patient", ["gene_1", "gene_2", "gene_3"])
    return X, long.drop_duplicates("patient")["y"].to_numpy(), ids, {}


def from_anndata(long, tmp_path, reference):
    obs = long[["patient", "y"]].set_index(long["cell"])
    names = pd.DataFrame(index=NAMES[::-1])
    adata = anndata.AnnData(long[NAMES[::-1]].to_numpy(), obs, names)
    ids = long["patient"].drop_duplicates().tolist()
    return adata, None, ids, {"sample_key": "patient"}


def from_h5(long, tmp_path, reference):
    for patient, cells in long.groupby("patient", sort=False):
        with h5py.File(tmp_path / f"{patient}.h5", "w") as file:
            file["features"] = cells[NAMES].to_numpy()
            file["coords"] = np.zeros((len(cells), 2), int)
    labels = long.drop_duplicates("patient").rename(columns={"patient": "slide_id"})
    slides = read_slides(tmp_path, labels[["slide_id", "y"]], target="y")
    return slides.rows().with_names(NAMES), slides.y, slides.ids, {}


def from_npz(long, tmp_path, reference):
    X, y, ids, *_ = reference
    arrays = {
        "values": X.values,
        "offsets": X.offsets,
        "y": y,
        "ids": ids.astype(str),
        "feature_names": NAMES,
    }
    np.savez(tmp_path / "x.npz", **arrays)
    inputs = read_inputs(tmp_path / "x.npz", Columns())
    return inputs.X, inputs.y, inputs.ids, {}


def from_store(long, tmp_path, reference):
    X, y, *_ = reference
    shuffled = X.with_features(NAMES[::-1])
    store = RowStore.from_rows(tmp_path / "s", shuffled, y, shard_mib=0.001)
    assert len(store.shards) > 2
    return store, None, store.sample_ids(), {}


SOURCES = [from_frame, from_anndata, from_h5, from_npz, from_store]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_every_container_gives_the_same_model(long, tmp_path, reference, source):
    *_, model, expected = reference
    X, y, ids, how = source(long, tmp_path, reference)
    order = [str(i) for i in ids]
    wanted = np.array([expected[i] for i in order])
    atol = 1e-6 * np.abs(wanted).max()
    # The model of rows in memory takes the columns of this container by name.
    np.testing.assert_allclose(model.predict(X, **how), wanted, rtol=0, atol=atol)
    # So does one fitted to this container whose file was read again.
    target = {"target": "y"} if how else {}
    fitted = new_model().fit(X, *([] if y is None else [y]), **how, **target)
    fitted.save(tmp_path / "m.safetensors")
    again = DiagAttRegressor.load(tmp_path / "m.safetensors")
    assert sorted(again.feature_names_in_) == sorted(NAMES)
    np.testing.assert_allclose(again.predict(X, **how), fitted.predict(X, **how), rtol=1e-6)
    everything = dict(zip(order, again.predict(X, **how), strict=True))
    found = np.array([everything[i] for i in expected])
    assert np.abs(found - list(expected.values())).max() <= atol
