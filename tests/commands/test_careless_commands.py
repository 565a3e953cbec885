"""What people mistype at the command line: refused by name, or understood."""

import sys

import numpy as np
import pandas as pd
import pytest

from diagatt.commands.cli import main
from tests.commands.running import run

N, P = 24, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long table, a table of texts, and arrays."""
    path = tmp_path_factory.mktemp("careless")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, P, 2)).round(3), rng.normal(size=N).round(3)
    long = pd.DataFrame(X.reshape(-1, 2), columns=["a", "b"])
    long.insert(0, "who", np.repeat([f"p{i}" for i in range(N)], P))
    long.assign(y=np.repeat(y, P)).to_csv(path / "d.csv", index=False)
    words = pd.DataFrame({"text": ["good", "bad"] * 6, "count": range(12), "y": ["p", "n"] * 6})
    words.to_csv(path / "t.csv", index=False)
    np.savez(path / "both.npz", X=X.reshape(-1, 2), offsets=np.arange(N + 1) * P, y=y)
    return path


def fit(folder, data, *more):
    out = ["-o", folder / "m", "--overwrite", "--solver", "likelihood"]
    return run("fit", folder / data, *out, *more)


@pytest.mark.parametrize("target", ["y", " y ", "y,"])
def test_spaces_and_commas_around_a_target(folder, target):
    done = fit(folder, "d.csv", "--sample", "who", "--target", target)
    assert done.exit_code == 0, done.exception
    done = run("predict", folder / "m", folder / "d.csv", "-o", folder / "p.csv", "--overwrite")
    assert done.exit_code == 0, done.exception


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (
            "t.csv",
            ["--text", "count", "--target", "y"],
            "column 'count' holds numbers and no texts",
        ),
        (
            "d.csv",
            ["--sample", "who", "--target", "y", "--family", "weibull"],
            "--family weibull is for times to an event: name their column with --time",
        ),
        (
            "d.csv",
            ["--sample", "who", "--target", "y", "--family", "bernoulli"],
            "--family bernoulli is for classes, and the responses are numbers, such as",
        ),
        (
            "t.csv",
            ["--text", "text", "--target", "y", "--class-weight", "even"],
            "--class-weight must be balanced, got even",
        ),
        ("both.npz", [], "has X and offsets: call packed rows values, not X"),
    ],
)
def test_options_that_do_not_fit_the_data(folder, data, options, message):
    assert message in str(fit(folder, data, *options).exception)


def test_a_column_without_a_name_at_prediction(folder, tmp_path):
    fit(folder, "d.csv", "--sample", "who", "--target", "y")
    pd.read_csv(folder / "d.csv").to_csv(tmp_path / "counted.csv")  # pandas counts the lines
    done = run("predict", folder / "m", tmp_path / "counted.csv", "-o", tmp_path / "p.csv")
    assert "column 1 of" in str(done.exception)
    assert "index=False in pandas" in str(done.exception)


def test_a_sample_with_a_space_behind_its_name(folder, tmp_path):
    table = pd.read_csv(folder / "d.csv")
    table.loc[1, "who"] = "p0 "
    table.to_csv(tmp_path / "d.csv", index=False)
    done = fit(tmp_path, "d.csv", "--sample", "who", "--target", "y")
    assert "look alike: 'p0' and 'p0 ' differ in white space" in str(done.exception)


def test_a_path_that_is_too_long(folder, monkeypatch, capsys):
    assert "cannot be read: File name too long" in str(run("summary", "m" * 300).exception)
    monkeypatch.setattr(sys, "argv", ["diagatt", "fit", "x" * 300, "--target", "y"])
    with pytest.raises(SystemExit):
        main()
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("error: xxx")
    assert said.endswith("x: File name too long.")
