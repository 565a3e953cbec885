"""``diagatt cv`` as a user runs it."""

import csv
from functools import partial

import numpy as np
import pytest

from tests.commands import running

N = 36


run = partial(running.run, columns=80)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A long table of patients from nine sites."""

    def columns(data):
        return {
            "site": [f"s{i % 9}" for i in range(N)],
            "age": 20.0 + np.arange(N),
            "ill": np.where(data.y > 0, "yes", "no"),
            "dose": data.y,
        }

    return running.write_visits(tmp_path_factory.mktemp("cv") / "cells.csv", N, columns)


def test_classes_with_groups_and_covariates(table, tmp_path):
    folder = tmp_path / "out"
    done = run(
        *("cv", table, "--sample", "patient", "--target", "ill", "--groups", "site"),
        *("--covariates", "age", "--drop", "dose", "--folds", 3, "--solver", "uniform"),
        *("-o", folder, "--format", "svg"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    assert "36, by sample column patient" in done.output
    assert "2: a, b" in done.output
    assert "ill, 2 classes: no (" in done.output
    assert "site: 9" in done.output
    for name in ("AUC", "accuracy", "balanced accuracy", "log score", "mean pooling", "trees"):
        assert name in done.output
    assert max(map(len, done.output.splitlines()[:-1])) <= 80
    assert {p.name for p in folder.iterdir()} == {
        *("roc.svg", "calibration.svg", "confusion.svg"),
        *("methods.md", "predictions.csv", "scores.csv"),
    }
    lines = list(csv.DictReader((folder / "predictions.csv").open()))
    assert [line["sample"] for line in lines] == [f"{i:03d}" for i in range(N)]
    for site in range(9):
        assert len({line["fold"] for line in lines[site::9]}) == 1
    chances = [float(lines[0][f"diagatt_probability_{c}"]) for c in ("no", "yes")]
    assert sum(chances) == pytest.approx(1)
    again = run("cv", table, "--sample", "patient", "--target", "ill", "-o", folder)
    assert "--overwrite" in str(again.exception)


def test_numbers_and_a_vector_figure(table, tmp_path):
    done = run(
        *("cv", table, "--sample", "patient", "--target", "dose", "--drop", "ill,site,age"),
        *("--folds", 2, "--solver", "uniform", "-o", tmp_path / "out", "--format", "pdf"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    assert "R²" in done.output
    assert (tmp_path / "out" / "observed-predicted.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--folds", 99, "--drop", "site,age,dose"],
            "--folds 99 needs as many samples, and there are 36",
        ),
        (
            ["--folds", 10, "--groups", "site", "--drop", "dose"],
            "10 needs as many different values of site",
        ),
        (["--format", "gif"], "--format must be one of png, pdf, svg"),
        (["--groups", "nowhere"], "no column 'nowhere'"),
        (["--groups", "patient"], "a column has one meaning"),
        (["--heads", "two"], "--heads must be a positive whole number or auto"),
    ],
)
def test_mistakes_are_sentences(table, tmp_path, more, message):
    done = run(
        *("cv", table, "--sample", "patient", "--target", "ill", "-o", tmp_path / "out"), *more
    )
    assert done.exit_code == 1
    assert message in str(done.exception)
