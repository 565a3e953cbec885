"""Columns by name at the command line: any order, nothing unknown, ids as they are written."""

import csv

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

from diagatt import DiagAttRegressor
from tests.commands.running import run

N = 30


def write(path, **columns):
    arrow_csv.write_csv(pa.table(columns), path)


def test_a_column_without_a_name_is_no_feature(folder, tmp_path):
    """Where pandas has written the numbers of the lines."""
    _, columns = folder
    counted = {"": np.arange(len(columns["a"])), **columns}
    write(tmp_path / "counted.csv", **counted)
    given = ("--sample", "patient", "--target", "y", "--drop", "cell,notes")
    done = run("fit", tmp_path / "counted.csv", *given, "-o", tmp_path / "m")
    assert "column 1 of" in str(done.exception)
    assert "has no name: if it counts the lines, write the table without it" in str(done.exception)
    named = ("--features", "a,b,c", "--solver", "likelihood")  # the others are then not used
    done = run("fit", tmp_path / "counted.csv", *given, *named, "-o", tmp_path / "m")
    assert done.exit_code == 0, done.exception


def test_a_line_without_a_sample_is_named_as_in_the_file(folder, tmp_path):
    path, columns = folder
    patient = columns["patient"].astype(object)
    patient[7] = None
    write(tmp_path / "some.csv", **{**columns, "patient": pa.array(patient)})
    for command in (["predict", path / "m"], ["evaluate", path / "m"]):
        done = run(*command, tmp_path / "some.csv", "-o", tmp_path / "p.csv")
        assert "some.csv, line 9: 'patient' is empty: drop the line" in str(done.exception)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long table of patients with cells, and a model fitted to it."""
    path = tmp_path_factory.mktemp("columns")
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 5, N)
    patient = np.repeat([f"{i:03d}" for i in range(N)], counts)
    genes = rng.normal(size=(len(patient), 3)).round(6)
    columns = {
        "patient": patient,
        "cell": [f"0{j}" for j in range(len(patient))],
        "b": genes[:, 0],
        "a": genes[:, 1],
        "sex": np.repeat(rng.integers(0, 2, N), counts),
        "dose": np.repeat(rng.normal(size=N).round(4), counts),
        "c": genes[:, 2],
        "notes": ["x"] * len(patient),
        "y": np.repeat(rng.normal(size=N).round(4), counts),
    }
    write(path / "cells.csv", **columns)
    done = fit(path)
    assert done.exit_code == 0, done.exception
    done = run("predict", path / "m", path / "cells.csv", "-o", path / "p.csv")
    assert done.exit_code == 0, done.exception
    return path, columns


def fit(path, *more):
    return run(
        *("fit", path / "cells.csv", "--sample", "patient", "--id", "cell", "--target", "y"),
        *("--covariates", "sex,dose", "--drop", "notes", "--solver", "likelihood"),
        *("-o", path / "m", *more),
    )


def predict(folder, **columns):
    write(folder / "new.csv", **columns)
    return run("predict", folder / "m", folder / "new.csv", "-o", folder / "q.csv", "--overwrite")


def lines(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_the_model_knows_its_names(folder):
    path, _ = folder
    model = DiagAttRegressor.load(path / "m")
    assert model.feature_names_in_.tolist() == ["b", "a", "c"]
    assert model.covariate_names_in_.tolist() == ["sex", "dose"]
    said = run("info", path / "m").output
    assert "3: b, a, c" in said


def test_ids_stay_as_they_are_written(folder):
    path, columns = folder
    found = lines(path / "p.csv")
    assert [line["sample"] for line in found] == [f"{i:03d}" for i in range(N)]
    start = 0
    for line in found:
        row = start + int(line["head0_row"])
        assert line["head0_row_id"] == columns["cell"][row]
        start += int((columns["patient"] == line["sample"]).sum())


@pytest.mark.parametrize("seed", range(3))
def test_columns_in_any_order_give_the_same_predictions(folder, seed):
    path, columns = folder
    names = np.random.default_rng(seed).permutation([n for n in columns if n not in ("y", "notes")])
    done = predict(path, **{name: columns[name] for name in names})
    assert done.exit_code == 0, done.exception
    assert (path / "q.csv").read_text() == (path / "p.csv").read_text()


def test_renamed_missing_and_further_columns_are_refused(folder):
    path, columns = folder
    without = {name: c for name, c in columns.items() if name != "a"}
    for table, message in [
        (without, "has no column 'a'"),
        ({**without, "A": columns["a"]}, "has no column 'a'"),
        ({**columns, "size": columns["a"], "more": columns["a"]}, "pass --drop size,more"),
        ({n: c for n, c in columns.items() if n != "dose"}, "has no column 'dose'"),
        ({n: c for n, c in columns.items() if n != "cell"}, "has no column 'cell'"),
    ]:
        done = predict(path, **table)
        assert done.exit_code == 1
        assert isinstance(done.exception, ValueError)
        assert message in str(done.exception)


def test_what_is_dropped_is_not_read(folder):
    path, columns = folder
    write(path / "more.csv", **columns, size=columns["notes"])
    for command in (["predict", "-o", path / "r.csv"], ["evaluate"], ["explain", "-o", path / "x"]):
        done = run(command[0], path / "m", path / "more.csv", *command[1:])
        assert "pass --drop size" in str(done.exception)
        done = run(command[0], path / "m", path / "more.csv", *command[1:], "--drop", "size")
        assert done.exit_code == 0, done.exception
    assert (path / "r.csv").read_text() == (path / "p.csv").read_text()


def test_two_columns_of_one_name(folder):
    path, _ = folder
    head, *rest = (path / "cells.csv").read_text().splitlines()
    (path / "twins.csv").write_text("\n".join([head.replace('"a"', '"b"'), *rest]))
    done = run("predict", path / "m", path / "twins.csv", "-o", path / "t.csv")
    assert "has two columns 'b'" in str(done.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "patient"], "column 'patient' is given as --target and as --sample"),
        (["--target", "y", "--covariates", "y"], "column 'y' is given as --target and as --cov"),
        (["--target", "y", "--covariates", "sex,sex"], "'sex' is given as --covariates twice"),
        (["--target", "y", "--features", "a,y"], "column 'y' is given as --target and as --feat"),
        (["--target", "y", "--features", "a,b", "--drop", "b"], "'b' is given as --drop and as"),
        (["--target", "y", "--id", "patient"], "column 'patient' is given as --id and as --sample"),
    ],
)
def test_a_column_has_one_meaning(folder, options, message):
    path, _ = folder
    done = run("fit", path / "cells.csv", "--sample", "patient", "-o", path / "n", *options)
    assert message in str(done.exception)


def test_features_can_be_named(folder, tmp_path):
    path, _ = folder
    fitted = run(
        *("fit", path / "cells.csv", "--sample", "patient", "--target", "y", "--solver"),
        *("likelihood", "--features", "c,a", "-o", tmp_path / "m"),
    )
    assert fitted.exit_code == 0, fitted.exception
    assert DiagAttRegressor.load(tmp_path / "m").feature_names_in_.tolist() == ["c", "a"]
    done = run("predict", tmp_path / "m", path / "cells.csv", "-o", tmp_path / "p.csv")
    assert done.exit_code == 0, done.exception  # the fit did not use the others either


@pytest.mark.parametrize(("family", "hinted"), [("auto", True), ("multinomial", False)])
def test_whole_numbers_that_become_classes_are_noticed(folder, tmp_path, family, hinted):
    """A count of 0 to 9 would otherwise be ten classes without a word."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", X=rng.normal(size=(60, 3, 2)), y=rng.integers(0, 4, 60))
    done = run(
        *("fit", tmp_path / "d.npz", "--solver", "likelihood", "-o", tmp_path / "m"),
        *("--family", family),
    )
    assert ("--family gaussian or poisson" in " ".join(done.output.split())) == hinted


def test_an_empty_covariate_is_called_empty(tmp_path):
    (tmp_path / "d.csv").write_text("who,x,age,y\na,1.0,31,1.5\na,2.0,,1.5\nb,3.0,47,2.5\n")
    how = ("--sample", "who", "--target", "y", "--covariates", "age")
    done = run("fit", tmp_path / "d.csv", *how, "-o", tmp_path / "m")
    assert "line 3: age is empty, but sample a has 31.0 before" in str(done.exception)
