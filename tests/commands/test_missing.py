"""Empty cells of a table at the command line: refused, or missing entries."""

import csv

import numpy as np
import pytest

from diagatt import DiagAttRegressor, RaggedRows
from tests.commands.running import run

N, P = 40, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("missing")
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N * P, 3)).round(3)
    values[::P] += 3
    y = (values[::P] @ [1, -1, 2]).round(3)
    values[rng.random(values.shape) < 0.2] = np.nan
    with open(path / "cells.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "a", "b", "c", "y"])
        for i, row in enumerate(values):
            cells = ["" if np.isnan(x) else x for x in row]
            writer.writerow([f"{i // P:03d}", *cells, y[i // P]])
    return path, RaggedRows(values, P * np.arange(N + 1), ["a", "b", "c"]), y


def fit(path, *more):
    given = ("--sample", "patient", "--target", "y", "--solver", "likelihood", "--overwrite")
    return run("fit", path / "cells.csv", *given, "-o", path / "m", *more)


def test_empty_cells_are_missing_entries(folder):
    path, X, y = folder
    done = fit(path, "--missing", "marginalize")
    assert done.exit_code == 0, done.exception
    missing = np.isnan(X.values)
    rows = missing.any(axis=1).sum()
    assert f"missing   {missing.sum()} entries" in done.output
    assert f"in {rows} rows" in done.output
    for command in ("predict", "explain"):
        output = path / {"predict": "p.csv", "explain": "p.html"}[command]
        done = run(command, path / "m", path / "cells.csv", "-o", output)
        assert done.exit_code == 0, done.exception
    with open(path / "p.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    model = DiagAttRegressor(solver="likelihood", missing="marginalize", random_state=0).fit(X, y)
    found = [float(line["prediction"]) for line in lines]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-6)
    assert not any("nan" in line["head0_features"] for line in lines)
    assert "missing = marginalize" in " ".join(run("info", path / "m").output.split())


def test_empty_cells_are_refused_by_default(folder):
    path, _, _ = folder
    done = fit(path)
    assert done.exit_code != 0
    assert "pass --drop a or --missing marginalize" in str(done.exception)
    done = fit(path, "--missing", "guess")
    assert "--missing must be refuse or marginalize, got 'guess'" in str(done.exception)
