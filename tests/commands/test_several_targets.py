"""Several targets at the command line: stores, cross-validation and pages; weights of classes."""

import csv
from functools import partial

import numpy as np
import pytest

from diagatt import DiagAttRegressor
from diagatt.metrics import number_scores
from diagatt.resampling import paired_interval
from diagatt.stores import RowStore
from tests.commands.running import answer, write_visits

N = 40


run = partial(answer, columns=100)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A long table of patients with two numbers, two labels, and a time to an event."""

    def columns(data):
        return {
            "bmi": data.y,
            "age": np.arange(N) * 0.5,
            "ill": (data.y > 0).astype(int),
            "odd": np.arange(N) % 2,
            "days": np.exp(data.y / 3),
            "died": (np.arange(N) % 3 > 0).astype(int),
        }

    return write_visits(tmp_path_factory.mktemp("several") / "visits.csv", N, columns)


def asked(*named):
    """The options that name these columns, and drop the other responses."""
    others = {"bmi", "age", "ill", "odd", "days", "died"} - set(named)
    return ["--sample", "patient", "--drop", ",".join(sorted(others))]


def test_each_of_several_numbers_has_its_score(table, tmp_path):
    out = tmp_path / "cv"
    code, said = run(
        *("cv", table, *asked("bmi", "age"), "--target", "bmi,age"),
        *("--folds", 2, "--solver", "uniform", "-o", out),
    )
    assert code == 0, said
    assert "R² of bmi" in said
    assert "R² of age" in said
    assert "mean over 2 outcomes of the R²" in (out / "methods.md").read_text()
    with open(out / "predictions.csv") as file:
        lines = list(csv.DictReader(file))
    fold, y, ours = (
        np.array([float(line[name]) for line in lines]) for name in ("fold", "bmi", "diagatt_bmi")
    )
    by_fold = [number_scores(y[fold == k], ours[fold == k], "gaussian")["r2"] for k in (1, 2)]
    with open(out / "scores.csv") as file:
        scores = {(s["method"], s["score"]): float(s["mean"]) for s in csv.DictReader(file)}
    assert scores["diagatt", "r2: bmi"] == pytest.approx(paired_interval(by_fold, 1.0)[0])
    both = [scores["trees", f"r2: {name}"] for name in ("bmi", "age")]
    assert scores["trees", "r2"] == pytest.approx(np.mean(both))
    assert {path.name for path in out.iterdir()} == {
        *("methods.md", "predictions.csv", "scores.csv"),
        *("observed-predicted-bmi.png", "observed-predicted-age.png"),
    }


def test_each_of_several_labels_has_its_score(table, tmp_path):
    code, said = run(
        *("cv", table, *asked("ill", "odd"), "--target", "ill,odd", "--class-weight", "balanced"),
        *("--folds", 2, "--solver", "uniform", "-o", tmp_path / "cv"),
    )
    assert code == 0, said
    assert "AUC of ill" in said
    assert (tmp_path / "cv" / "roc.png").exists()


def test_weights_of_classes_reach_every_method(table, tmp_path):
    """Rare classes are predicted more often."""
    shares = []
    for k, more in enumerate(([], ["--class-weight", "balanced"])):
        out = tmp_path / str(k)
        code, said = run(
            *("cv", table, *asked("died"), "--target", "died", *more),
            *("--folds", 2, "--solver", "uniform", "-o", out),
        )
        assert code == 0, said
        with open(out / "predictions.csv") as file:
            lines = list(csv.DictReader(file))
        names = ("diagatt_probability_0", "mean_pooling_probability_0")
        shares.append([np.mean([float(line[name]) for line in lines]) for name in names])
    assert (np.array(shares[1]) > np.array(shares[0]) + 0.05).all()
    code, said = run("cv", table, *asked("bmi"), "--target", "bmi", "--class-weight", "balanced")
    assert code != 0
    assert "--class-weight is for classes" in said


def test_a_store_keeps_several_targets_and_a_page_shows_one(table, tmp_path):
    store, model, page = tmp_path / "store", tmp_path / "m.safetensors", tmp_path / "page.html"
    code, said = run("store", "write", store, table, *asked("bmi", "age"), "--target", "bmi,age")
    assert code == 0, said
    assert RowStore(store).response_names == ("bmi", "age")
    assert "bmi (mean" in run("store", "info", store)[1]
    code, said = run("fit", store, "--solver", "likelihood", "-o", model)
    assert code == 0, said
    assert list(DiagAttRegressor.load(model).outcomes_) == ["bmi", "age"]
    code, said = run("evaluate", model, store)
    assert "R² of age" in said
    code, said = run("explain", model, store, "-o", page)
    assert code != 0
    assert "outcomes bmi, age, and a page shows one: name it with --outcome" in said
    code, said = run("explain", model, store, "--outcome", "age", "-o", page)
    assert code == 0, said
    assert "RMSE" in page.read_text(encoding="utf-8")


def test_a_store_keeps_times(table, tmp_path):
    store, model = tmp_path / "store", tmp_path / "m.safetensors"
    columns = [*asked("days", "died"), "--time", "days", "--event", "died"]
    code, said = run("store", "write", store, table, *columns)
    assert code == 0, said
    assert "with the event" in run("store", "info", store)[1]
    code, said = run("fit", store, "--solver", "uniform", "-o", model)
    assert code == 0, said
    assert "DiagAttSurvival: 40 samples" in said
    code, said = run("evaluate", model, store)
    assert code == 0, said
    assert "Uno's concordance" in said
    code, said = run("predict", model, store, "-o", tmp_path / "predictions")
    assert code == 0, said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--target", "bmi"), "contains its own responses"),
        (("--exposure", "years"), "keeps no exposure"),
    ],
)
def test_a_store_names_no_columns(table, tmp_path, given, said):
    store = tmp_path / "store"
    run("store", "write", store, table, *asked("bmi"), "--target", "bmi")
    code, found = run("fit", store, *given, "-o", tmp_path / "m.safetensors")
    assert code != 0
    assert said in found
