"""An option that would do nothing is refused: nothing that a user says is passed over."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from diagatt.stores import RowStore
from tests.commands.running import run

N, P, D = 24, 3, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same samples as a table, an NPZ file and a store, with a model."""
    path = tmp_path_factory.mktemp("ignored")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, P, D)), rng.normal(size=N)
    a, b = X.reshape(-1, D).T
    columns = {"who": np.repeat([f"s{i}" for i in range(N)], P), "a": a, "b": b}
    csv.write_csv(pa.table({**columns, "y": np.repeat(y, P)}), path / "d.csv")
    np.savez(path / "d.npz", X=X, y=y)
    RowStore.from_rows(path / "store", X, y)
    done = run(*fit(path / "d.csv"), "-o", path / "m")
    assert done.exit_code == 0, done.exception
    return path


def fit(data):
    named = ["--sample", "who", "--target", "y"] if data.suffix == ".csv" else []
    return ["fit", data, *named, "--solver", "likelihood"]


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain"])
@pytest.mark.parametrize("data", ["d.csv", "d.npz", "store"])
def test_drop_of_what_is_not_there(folder, tmp_path, command, data):
    out = tmp_path / ("o.html" if command == "explain" else "o.csv")
    if command == "predict" and data == "store":
        out = tmp_path / "parts"
    done = run(command, folder / "m", folder / data, "--drop", "bogus", "-o", out)
    said = "no column 'bogus'" if data == "d.csv" else "--drop bogus is for tables"
    assert said in str(done.exception)
    assert not out.exists()


def test_drop_of_what_is_not_there_when_fitted_or_drawn(folder, tmp_path):
    for arguments in (
        [*fit(folder / "d.csv"), "-o", tmp_path / "m"],
        ["cv", folder / "d.csv", "--sample", "who", "--target", "y", "-o", tmp_path / "cv"],
        ["store", "write", tmp_path / "s", folder / "d.csv", "--sample", "who", "--target", "y"],
        ["plot", "scores", folder / "m", folder / "d.csv", "-o", tmp_path / "f.png"],
    ):
        done = run(*arguments, "--drop", "bogus")
        assert "no column 'bogus'" in str(done.exception), arguments
    assert not list(tmp_path.iterdir())


OPTIONS = {
    "--covariates": "bogus",
    "--drop": "bogus",
    "--id": "bogus",
    "--groups": "bogus",
    "--categories": "bogus",
    "--exposure": "bogus",
    "--offset": "bogus",
    "--sample": "bogus",
    "--rows": "bogus",
    "--text": "bogus",
    "--image": "bogus",
    "--layer": "bogus",
    "--time": "bogus",
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("data", ["d.npz", "store"])
def test_columns_of_what_has_none(folder, tmp_path, option, data):
    done = run(*fit(folder / data), option, OPTIONS[option], "-o", tmp_path / "m")
    said = str(done.exception)
    assert done.exit_code == 1
    assert option in said or "bogus" in said
    assert data in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [o for o in OPTIONS if o not in ("--sample", "--layer")])
def test_columns_that_a_table_has_not(folder, tmp_path, option):
    done = run(*fit(folder / "d.csv"), option, OPTIONS[option], "-o", tmp_path / "m")
    assert done.exit_code == 1
    assert isinstance(done.exception, ValueError)
    assert not list(tmp_path.iterdir())


def test_memory_and_checkpoints_are_for_what_is_read_in_passes(folder, tmp_path):
    for option, value in (("--memory", 64), ("--checkpoint", tmp_path / "c")):
        done = run(*fit(folder / "d.csv"), option, value, "-o", tmp_path / "m")
        assert f"{option} {value} is for" in str(done.exception)
    done = run("predict", folder / "m", folder / "d.csv", "--memory", 64, "-o", tmp_path / "p.csv")
    assert "--memory 64 is for" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_split_that_holds_out_nothing(folder, tmp_path):
    done = run(*fit(folder / "d.csv"), "--split", 0.01, "-o", tmp_path / "m")
    assert "--split 0.01 of 24 samples holds out none" in str(done.exception)


def test_a_page_without_heat_maps(folder, tmp_path):
    given = ["explain", folder / "m", folder / "d.csv", "-o", tmp_path / "p.html"]
    assert "--mpp goes with --heat-maps" in str(run(*given, "--mpp", 0.5).exception)
    done = run(*given, "--heat-maps", tmp_path / "maps")
    assert "--heat-maps are for slides" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_samples_of_figures_that_show_none(folder, tmp_path):
    out = ("-o", tmp_path / "f.png")
    done = run("plot", "coefficients", folder / "m", folder / "d.csv", *out)
    assert "the figure coefficients shows the model alone" in str(done.exception)
    for option in ("--of", "--drop"):
        done = run("plot", "coefficients", folder / "m", option, "a", *out)
        assert f"{option} a is for figures of samples" in str(done.exception)
    done = run("plot", "scores", folder / "m", folder / "d.csv", "--of", "s1", *out)
    assert "--of s1 is for figures of one sample" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Counts with an exposure and an offset, and a model of each."""
    path = tmp_path_factory.mktemp("counts")
    rng = np.random.default_rng(1)
    X, years = rng.normal(size=(N, P, D)), rng.integers(1, 9, N).astype(float)
    a, b = X.reshape(-1, D).T
    who = np.repeat([f"s{i}" for i in range(N)], P)
    columns = {"who": who, "a": a, "b": b, "y": np.repeat(rng.poisson(years), P)}
    csv.write_csv(pa.table(columns), path / "bare.csv")
    csv.write_csv(pa.table({**columns, "years": np.repeat(years, P)}), path / "d.csv")
    np.savez(path / "d.npz", X=X)
    given = [*fit(path / "d.csv"), "--family", "poisson"]
    for option in ("exposure", "offset"):
        done = run(*given, f"--{option}", "years", "-o", path / option)
        assert done.exit_code == 0, done.exception
    return path


def test_predictions_without_the_exposure_say_so(counts, tmp_path):
    done = run("predict", counts / "exposure", counts / "d.npz", "-o", tmp_path / "p.csv")
    assert "predicted per unit of years, which" in done.output
    done = run("predict", counts / "exposure", counts / "d.csv", "-o", tmp_path / "q.csv")
    assert "per unit" not in done.output


def test_the_page_compares_counts_with_predictions_of_their_exposure(counts, tmp_path):
    done = run("explain", counts / "exposure", counts / "bare.csv", "-o", tmp_path / "p.html")
    assert "has responses but no years, the exposure" in str(done.exception)
    assert run("explain", counts / "exposure", counts / "d.csv", "-o", tmp_path / "p.html")
    from diagatt.kinds.files import load_model, read_inputs
    from diagatt.report import collect

    model, columns = load_model(counts / "exposure")
    inputs = read_inputs(counts / "d.csv", columns)
    drawn = collect(model, inputs.X, inputs.y, **inputs.known).prediction
    years = inputs.known["exposure"]
    np.testing.assert_allclose(drawn, years * model.predict(inputs.X), rtol=1e-6)


def test_an_offset_is_never_left_out(counts, tmp_path):
    for data in ("d.npz", "bare.csv"):
        done = run("predict", counts / "offset", counts / data, "-o", tmp_path / "p.csv")
        assert "years" in str(done.exception)
        assert done.exit_code == 1


@pytest.mark.parametrize("heads", ["²", "٣", "0.5", "-1", ""])
def test_heads_that_are_no_count(folder, tmp_path, heads):
    done = run(*fit(folder / "d.csv"), "--heads", heads, "-o", tmp_path / "m")
    assert "--heads must be a positive whole number or auto" in str(done.exception)


def test_lists_without_a_name(folder, tmp_path):
    done = run(*fit(folder / "d.csv"), "--covariates", " ,", "-o", tmp_path / "m")
    assert "a list of columns holds no name" in str(done.exception)


@pytest.mark.parametrize("content", [b"PK junk", b"", b"\x93NUMPY", "objects", "an array"], ids=str)
def test_what_is_no_npz_file(folder, tmp_path, content):
    path = tmp_path / "d.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "objects":
        np.savez(path, X=np.array([None, "x"], dtype=object))
    else:
        with path.open("wb") as file:
            np.save(file, np.ones(3))
    done = run("predict", folder / "m", path, "-o", tmp_path / "p.csv")
    assert f"{path} cannot be read" in str(done.exception)
