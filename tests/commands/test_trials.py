"""Successes among trials, and overdispersed counts with an exposure, at the command line."""

import csv

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from typer.testing import CliRunner

from diagatt import simulate
from diagatt.commands.cli import app

N = 30


def run(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "80"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A long table of districts, with women as rows."""
    path = tmp_path_factory.mktemp("trials") / "districts.csv"
    data = simulate.regression(N, p=(2, 4), d=2, mu=(3,), sigma2=(4,), seed=0)
    rng = np.random.default_rng(0)
    owner, trials = np.repeat(np.arange(N), data.X.lengths), rng.integers(1, 9, N)
    wins, years = rng.binomial(trials, 1 / (1 + np.exp(-data.y))), rng.uniform(0.5, 3, N)
    columns = {
        "district": owner,
        "a": data.X.values[:, 0],
        "b": data.X.values[:, 1],
        "users": wins[owner],
        "others": (trials - wins)[owner],
        "years": years[owner],
    }
    arrow_csv.write_csv(pa.table(columns), path)
    return path


LONG = ("--sample", "district", "--solver", "likelihood")


def test_shares_of_successes_are_cross_validated(table, tmp_path):
    asked = ("--target", "users,others", "--family", "binomial", "--drop", "years")
    said = run("cv", table, *LONG, *asked, "--folds", 3, "-o", tmp_path / "cv")
    assert "RMSE" in said
    assert max(map(len, said.splitlines()[:-1])) <= 80
    assert "…" not in said
    line = next(csv.DictReader((tmp_path / "cv" / "predictions.csv").open()))
    assert {"users", "others", "diagatt", "mean_pooling", "trees"} < set(line)
    assert all(0 <= float(line[method]) <= 1 for method in ("diagatt", "mean_pooling", "trees"))
    assert (tmp_path / "cv" / "observed-predicted.png").exists()


def test_shares_of_successes_are_evaluated_and_drawn(table, tmp_path):
    asked = ("--target", "users,others", "--family", "binomial", "--drop", "years")
    run("fit", table, *LONG, *asked, "-o", tmp_path / "m")
    assert "log score" in run("evaluate", tmp_path / "m", table)
    run("explain", tmp_path / "m", table, "-o", tmp_path / "page.html")
    assert "binomial" in (tmp_path / "page.html").read_text(encoding="utf-8")
    run("plot", "observed-predicted", tmp_path / "m", table, "-o", tmp_path / "figure.png")


def test_overdispersed_counts_with_an_exposure_have_baselines(table, tmp_path):
    asked = ("--target", "users", "--family", "negative_binomial", "--exposure", "years")
    said = run("cv", table, *LONG, *asked, "--drop", "others", "--folds", 3, "-o", tmp_path / "cv")
    assert "mean pooling" in said
