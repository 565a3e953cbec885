"""AnnData: the samples are those of its cells, in memory, backed and from a file."""

import warnings

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows
from diagatt.cells import annotate, read_cells, write_store
from diagatt.kinds.cells import source
from diagatt.kinds.cells.table import CellTable
from diagatt.solvers import Likelihood

QUICK = {"solver": Likelihood(), "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def words_as_objects():
    """anndata 0.12 cannot write the strings of pandas 3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pd.option_context("future.infer_string", False):
            yield


@pytest.fixture(scope="module")
def adata(words_as_objects):
    """40 patients, whose cells are scattered over the object; patient 3 is called "003"."""
    rng = np.random.default_rng(0)
    n, d = 40, 4
    patient = rng.permutation(np.repeat(np.arange(n), rng.integers(3, 7, n)))
    values = rng.normal(size=(len(patient), d)).astype(np.float32)
    ill = np.arange(n) % 2 == 0
    first = np.unique(patient, return_index=True)[1]
    values[first] += np.where(ill, 4.0, -4.0)[:, None].astype(np.float32)
    obs = pd.DataFrame(
        {
            "patient": pd.Categorical([f"{i:03d}" for i in patient]),
            "disease": pd.Categorical(np.where(ill, "ill", "well")[patient]),
            "age": (20.0 + np.arange(n))[patient],
            "site": [f"s{i % 3}" for i in patient],
        },
        index=[f"cell{j}" for j in range(len(patient))],
    )
    made = anndata.AnnData(values, obs, pd.DataFrame(index=[f"gene{j}" for j in range(d)]))
    made.layers["twice"] = sp.csr_matrix(2 * values)
    made.obsm["X_pca"] = values[:, :2]
    return made


def by_hand(adata):
    """The samples, grouped by pandas."""
    order = adata.obs["patient"].astype(str).drop_duplicates().tolist()
    own = adata.obs["patient"].astype(str).to_numpy()
    X = [np.asarray(adata.X)[own == name] for name in order]
    labels = adata.obs.drop_duplicates("patient")
    return X, labels, order


def test_samples_are_those_of_pandas(adata):
    X, labels, order = by_hand(adata)
    found = read_cells(adata, "patient", target="disease", covariates=["age"], groups="site")
    rows = found.rows()
    assert rows == RaggedRows.from_samples(X)
    assert rows.sample_ids.tolist() == order
    assert "003" in order
    assert rows.feature_names == ("gene0", "gene1", "gene2", "gene3")
    assert found.y.tolist() == labels["disease"].tolist()
    assert found.covariates["age"].to_pylist() == labels["age"].tolist()
    assert found.groups.tolist() == labels["site"].tolist()
    first = np.flatnonzero(adata.obs["patient"].astype(str) == order[0])
    assert rows.row_ids[: len(first)].tolist() == adata.obs_names[first].tolist()


def test_layer_and_obsm(adata):
    X, *_ = by_hand(adata)
    twice = read_cells(adata, "patient", layer="twice").rows()
    np.testing.assert_array_equal(twice.values, 2 * np.concatenate(X))
    pca = read_cells(adata, "patient", obsm="X_pca").rows()
    assert pca.feature_names == ("X_pca-0", "X_pca-1")
    np.testing.assert_array_equal(pca.values, np.concatenate(X)[:, :2])


def test_fit_and_every_answer(adata):
    X, labels, _ = by_hand(adata)
    Z = labels[["age"]]
    how = {"sample_key": "patient", "covariates": ["age"]}
    model = DiagAttClassifier(**QUICK).fit(adata, target="disease", **how)
    named = RaggedRows.from_samples(X).with_names(tuple(adata.var_names))
    same = DiagAttClassifier(**QUICK).fit(named, labels["disease"], covariates=Z)
    assert model.feature_names_in_.tolist() == list(adata.var_names)
    for name in ("predict", "predict_proba", "decision_function"):
        found, expected = getattr(model, name)(adata, **how), getattr(same, name)(named, Z)
        np.testing.assert_array_equal(found, expected)
    for name in ("locate", "attention", "scores", "transform"):
        found = getattr(model, name)(adata, sample_key="patient")
        np.testing.assert_array_equal(
            np.concatenate(found), np.concatenate(getattr(same, name)(named))
        )
    shuffled = adata[:, ["gene2", "gene0", "gene3", "gene1"]]
    np.testing.assert_array_equal(model.predict(shuffled, **how), model.predict(adata, **how))


@pytest.mark.parametrize("backed", [False, True])
def test_large_sparse_matrices_stay_sparse(adata, tmp_path, monkeypatch, backed):
    stored = adata.copy()
    few = np.asarray(adata.X) * (np.abs(adata.X) > 2)
    stored.X = sp.csr_matrix(few)
    dense = read_cells(stored, "patient").rows()
    y = read_cells(adata, "patient", target="disease").y
    assert read_cells(stored, "patient").rows(sparse=True).to_dense() == dense
    if backed:
        stored.write_h5ad(tmp_path / "cells.h5ad")
        stored = tmp_path / "cells.h5ad"
    seen, original = [], source.CellSamples.rows

    def noted(self, sparse=False):
        seen.append(original(self, sparse))
        return seen[-1]

    monkeypatch.setattr(source, "IN_MEMORY", dense.values.nbytes - 1)
    monkeypatch.setattr(source.CellSamples, "rows", noted)
    model = DiagAttClassifier(**QUICK).fit(stored, sample_key="patient", target="disease")
    assert seen[0].is_sparse
    assert seen[0].to_dense() == dense
    expected = DiagAttClassifier(**QUICK).fit(seen[0], y).predict_proba(dense)
    found = model.predict_proba(stored, sample_key="patient")
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_backed_through_a_store(adata, tmp_path, monkeypatch, sparse):
    stored = adata.copy()
    if sparse:
        stored.X = sp.csr_matrix(stored.X)
    stored.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    monkeypatch.setattr(source, "IN_MEMORY", 0)  # as if it were large
    monkeypatch.setattr("diagatt.kinds.cells.samples.PART", 300)
    monkeypatch.setattr("diagatt.kinds.cells.table.BLOCK", 100)
    how = {"sample_key": "patient", "covariates": ["age"]}
    kept = []
    original = source.temporary_store

    def noted(*given):
        kept.append(original(*given))
        return kept[-1]

    monkeypatch.setattr(source, "temporary_store", noted)
    model = DiagAttClassifier(**QUICK).fit(backed, target="disease", **how)
    store = kept[0]
    assert store.to_rows() == read_cells(adata, "patient").rows()
    assert store.to_rows().row_ids.tolist() == read_cells(adata, "patient").rows().row_ids.tolist()
    assert store.covariate_names == ("age",)
    same = DiagAttClassifier(**QUICK).fit(adata, target="disease", **how)
    np.testing.assert_allclose(
        model.predict_proba(backed, **how), same.predict_proba(adata, **how), atol=1e-5
    )
    path = store.path
    kept.clear()
    del store
    assert not path.exists()  # it is no longer needed


def test_a_store_to_keep(adata, tmp_path):
    store = write_store(tmp_path / "s", adata, "patient", target="age", shard_mib=0.001)
    assert len(store.shards) > 1
    assert store.to_rows() == read_cells(adata, "patient").rows()
    assert store.dtype == np.float32
    np.testing.assert_array_equal(store.responses(), read_cells(adata, "patient", target="age").y)


def test_annotate_writes_attention_back(adata, tmp_path):
    adata = adata.copy()
    model = DiagAttClassifier(2, **QUICK).fit(adata, sample_key="patient", target="disease")
    annotate(model, adata, "patient")
    obs, said = adata.obs, adata.uns["diagatt"]
    sums = obs.groupby("patient", observed=True)[["diagatt_head0", "diagatt_head1"]].sum()
    np.testing.assert_allclose(sums, 1, atol=1e-5)
    assert obs.groupby("patient", observed=True)["diagatt_located"].sum().unique().tolist() == [2]
    attention = dict(
        zip(
            read_cells(adata, "patient").rows().row_ids,
            np.concatenate(model.attention(adata, sample_key="patient")).max(axis=1),
            strict=True,
        )
    )
    assert obs["diagatt_attention"].tolist() == [attention[cell] for cell in adata.obs_names]
    assert obs.loc[said["located"][0], "patient"].astype(str).eq(said["samples"][0]).all()
    assert said["prediction"].tolist() == model.predict(adata, sample_key="patient").tolist()
    adata.write_h5ad(tmp_path / "annotated.h5ad")
    again = anndata.read_h5ad(tmp_path / "annotated.h5ad")
    np.testing.assert_array_equal(again.uns["diagatt"]["probability"], said["probability"])


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"target": "disease"}, TypeError, "sample_key"),
        ({"sample_key": "patient"}, TypeError, "target="),
        ({"sample_key": "donor", "target": "age"}, ValueError, "no obs column 'donor'; it has pat"),
        ({"sample_key": "site", "target": "age"}, ValueError, "'s.' has several values of 'age'"),
        (
            {"sample_key": "patient", "target": "age", "layer": "x"},
            ValueError,
            "has no 'x'; it has",
        ),
        (
            {"sample_key": "patient", "target": "age", "covariates": ["site"]},
            ValueError,
            "covariate 'site' holds words",
        ),
        (
            {"sample_key": "patient", "target": "age", "layer": "twice", "obsm": "X_pca"},
            ValueError,
            "not both",
        ),
        (
            {"sample_key": "patient", "target": "patient"},
            ValueError,
            "target and sample_key are both 'patient'",
        ),
    ],
)
def test_refusals_say_what_is_wrong(adata, how, error, said):
    with pytest.raises(error, match=said):
        DiagAttRegressor(**QUICK).fit(adata, **how)


def test_missing_annotations_are_named(adata):
    adata = adata.copy()
    adata.obs.loc["cell5", "age"] = np.nan
    who = str(adata.obs.loc["cell5", "patient"])
    with pytest.raises(ValueError, match=f"sample '{who}' has cells without 'age'"):
        read_cells(adata, "patient", target="age")
    adata.obs["patient"] = adata.obs["patient"].astype(object)
    adata.obs.loc["cell7", "patient"] = np.nan
    with pytest.raises(ValueError, match="cell 'cell7' of adata has no 'patient'"):
        read_cells(adata, "patient")


def test_a_file_is_read_without_its_other_matrices(adata, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    with CellTable.opened(tmp_path / "cells.h5ad", layer="twice") as table:
        assert table.is_on_disk
        cells = np.array([7, 3, 30])
        np.testing.assert_array_equal(table.rows(cells), 2 * np.asarray(adata.X)[cells])
    with CellTable.opened(tmp_path / "cells.h5ad", obsm="X_pca") as table:
        assert table.is_on_disk
        assert table.feature_names == ("X_pca-0", "X_pca-1")
    with (
        pytest.raises(ValueError, match="no layers/x; there are: twice"),
        CellTable.opened(tmp_path / "cells.h5ad", layer="x"),
    ):
        pass


def test_what_is_no_hdf5_file_is_named(tmp_path):
    path = tmp_path / "cells.h5ad"
    with pytest.raises(FileNotFoundError, match=r"cells\.h5ad does not exist"):
        CellTable.opened(path).__enter__()
    path.write_text("patient,age")
    with pytest.raises(ValueError, match=r"cells\.h5ad is not .* HDF5 file: truncated, dam"):
        CellTable.opened(path).__enter__()
    (tmp_path / "folder.h5ad").mkdir()
    with pytest.raises(ValueError, match=r"folder\.h5ad is not .* HDF5 file: it is a folder"):
        CellTable.opened(tmp_path / "folder.h5ad").__enter__()
    with pytest.raises(TypeError, match=r"adata is a str, 'cells.h5ad': pass an AnnData object"):
        read_cells("cells.h5ad", "patient")


@pytest.mark.parametrize("lost", ["var", "X", "obs/_index"])
def test_a_damaged_file_is_named(adata, tmp_path, lost):
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    with h5py.File(path, "a") as file:
        del file[lost]
    with pytest.raises(ValueError, match=r"cells\.h5ad"), CellTable.opened(path):
        pass


def test_words_that_cannot_be_read_are_an_error_about_the_file(adata, tmp_path):
    adata.write_h5ad(tmp_path / "a.h5ad")
    content = bytearray((tmp_path / "a.h5ad").read_bytes())
    heap = content.index(b"GCOL")  # where HDF5 keeps words
    content[heap : heap + 4] = b"gone"
    (tmp_path / "a.h5ad").write_bytes(content)
    with pytest.raises(ValueError, match=r"a.h5ad is damaged"):
        DiagAttRegressor(**QUICK).fit(
            str(tmp_path / "a.h5ad"), sample_key="patient", target="age", covariates=["site"]
        )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("indices", lambda entries: np.full_like(entries, 10**6)),
        ("indices", lambda entries: np.full_like(entries, -1)),
        ("indptr", lambda entries: entries[::-1]),
    ],
)
def test_entries_outside_of_a_sparse_matrix_are_refused(adata, tmp_path, name, change):
    path = tmp_path / "a.h5ad"
    adata.write_h5ad(path)
    with h5py.File(path, "r+") as file:
        entries = file[f"layers/twice/{name}"]
        entries[:] = change(entries[:])
    with pytest.raises(
        ValueError, match=r"a.h5ad is damaged: entries of /layers/twice lie outside"
    ):
        DiagAttRegressor(**QUICK).fit(str(path), sample_key="patient", target="age", layer="twice")
