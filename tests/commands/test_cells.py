"""``diagatt fit cells.h5ad``: from a file of cells to predictions with the names of cells."""

import csv
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest

from diagatt import DiagAttClassifier
from tests.commands.running import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cells")
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(30), 4))
    values = rng.normal(size=(120, 3)).astype(np.float32)
    values[np.unique(patient, return_index=True)[1]] += (4 * (-1.0) ** np.arange(30))[:, None]
    with warnings.catch_warnings():  # anndata 0.12 cannot write the strings of pandas 3
        warnings.simplefilter("ignore")
        pd.set_option("future.infer_string", False)
        obs = pd.DataFrame(
            {
                "patient": [f"{i:03d}" for i in patient],
                "ill": (patient % 2 == 0).astype(int),
                "age": (30.0 + patient),
            },
            index=[f"AAC-{j}" for j in range(120)],
        )
        names = pd.DataFrame(index=["CD8A", "LYZ", "NKG7"])
        adata = anndata.AnnData(values, obs, names)
        adata.layers["half"] = values / 2
        adata.write_h5ad(path / "cells.h5ad")
        pd.reset_option("future.infer_string")
    done = fit(path, "m.safetensors")
    assert done.exit_code == 0, done.exception
    return path, adata


def fit(path, name, *more):
    how = ("--sample", "patient", "--target", "ill", "--covariates", "age")
    solver = ("--solver", "likelihood", "-o", path / name)
    return run("fit", path / "cells.h5ad", *how, *solver, *more)


def test_fit_and_predict_name_patients_and_cells(folder):
    path, adata = folder
    done = run("predict", path / "m.safetensors", path / "cells.h5ad", "-o", path / "p.csv")
    assert done.exit_code == 0, done.exception
    with open(path / "p.csv") as file:
        lines = list(csv.DictReader(file))
    model = DiagAttClassifier.load(path / "m.safetensors")
    how = {"sample_key": "patient", "covariates": ["age"]}
    assert [int(line["prediction"]) for line in lines] == model.predict(adata, **how).tolist()
    owner = adata.obs["patient"].astype(str)
    assert [owner[line["head0_row_id"]] for line in lines] == [line["sample"] for line in lines]
    assert lines[0]["sample"] in {f"{i:03d}" for i in range(30)}
    strongest = lines[0]["head0_features"].split(", ")
    assert {word.split()[0] for word in strongest} == {"CD8A", "LYZ", "NKG7"}


def test_the_model_remembers_its_layer(folder):
    path, adata = folder
    done = fit(path, "half.safetensors", "--layer", "half")
    assert done.exit_code == 0, done.exception
    done = run("predict", path / "half.safetensors", path / "cells.h5ad", "-o", path / "h.csv")
    assert done.exit_code == 0, done.exception
    model = DiagAttClassifier.load(path / "half.safetensors")
    how = {"sample_key": "patient", "covariates": ["age"], "layer": "half"}
    with open(path / "h.csv") as file:
        found = [int(line["prediction"]) for line in csv.DictReader(file)]
    assert found == model.predict(adata, **how).tolist()


def test_little_memory_goes_through_a_store(folder, monkeypatch):
    path, adata = folder
    monkeypatch.setattr("diagatt.kinds.cells.IN_MEMORY", 1e-4)
    done = fit(path, "small.safetensors", "--memory", "4")
    assert done.exit_code == 0, done.exception
    small, whole = (DiagAttClassifier.load(path / f"{n}.safetensors") for n in ("small", "m"))
    how = {"sample_key": "patient", "covariates": ["age"]}
    np.testing.assert_allclose(
        small.predict_proba(adata, **how), whole.predict_proba(adata, **how), atol=1e-5
    )


def test_mistakes_are_said_in_the_words_of_the_command_line(folder):
    path, _ = folder
    done = run("fit", path / "cells.h5ad", "--sample", "patient", "--target", "il")
    assert "obs has no column 'il'; it has age, ill, patient." in str(done.exception)
    done = run("fit", path / "cells.h5ad", "--target", "ill", "-o", path / "x.safetensors")
    assert "--sample COLUMN" in str(done.exception)
    (path / "t.csv").write_text("a,b\n1,2\n")
    done = run("fit", path / "t.csv", "--target", "a", "--layer", "x", "-o", path / "x.safetensors")
    assert "--layer is for cells" in str(done.exception)
