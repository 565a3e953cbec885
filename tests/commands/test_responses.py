"""Exposures and times to an event at the command line."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from diagatt import DiagAttClassifier, DiagAttRegressor, DiagAttSurvival, simulate
from diagatt.commands.cli import app

N = 80


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with one line per row: three features, and what is known of the samples."""
    monkeypatch.chdir(tmp_path)
    data = simulate.survival(N, p=4, d=3, mu=(3,), sigma2=(4,), seed=0, dtype=np.float64)
    years = np.linspace(1, 3, N).round(3)
    with open("visits.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "a", "b", "c", "days", "died", "years", "relapses"])
        for i, sample in enumerate(data.X):
            shared = [data.y["time"][i] + 0.01, int(data.y["event"][i]), years[i], i % 5]
            for row in sample:
                writer.writerow([f"p{i}", *row.tolist(), *shared])
    return data, years


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output + (str(result.exception) if result.exception else "")


def test_times_are_fitted_predicted_and_evaluated(table):
    columns = [
        "--sample",
        "patient",
        "--time",
        "days",
        "--event",
        "died",
        "--drop",
        "years,relapses",
    ]
    code, said = run("fit", "visits.csv", *columns, "--solver", "likelihood", "-o", "m.safetensors")
    assert code == 0, said
    assert "DiagAttSurvival: 80 samples" in said
    assert "with the event" in said
    code, said = run("predict", "m.safetensors", "visits.csv", "-o", "p.csv")
    assert code == 0, said
    with open("p.csv") as file:
        risks = [float(line["prediction"]) for line in csv.DictReader(file)]
    model = DiagAttSurvival.load("m.safetensors")
    np.testing.assert_allclose(risks, model.predict(table[0].X), rtol=1e-9)
    code, said = run("evaluate", "m.safetensors", "visits.csv", "-o", "e.json")
    assert code == 0, said
    with open("e.json") as file:
        found = json.load(file)["concordance"]
    assert 0.6 < found["low"] < found["value"] < found["high"] <= 1
    assert "Uno's concordance" in said
    assert "integrated Brier" in said
    code, said = run("explain", "m.safetensors", "visits.csv", "-o", "page.html")
    assert code == 0, said
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    assert "Concordance" in page
    assert "risk score: larger ones mean earlier events" in page
    assert "p0 (event at" in page or "p0 (no event by" in page


def test_an_exposure_is_kept_with_the_model(table):
    _, years = table
    columns = ["--sample", "patient", "--target", "relapses", "--exposure", "years"]
    asked = [*columns, "--drop", "days,died", "--family", "poisson", "--solver", "likelihood"]
    code, said = run("fit", "visits.csv", *asked, "-o", "m.safetensors")
    assert code == 0, said
    assert "years, mean 2" in said
    code, said = run("predict", "m.safetensors", "visits.csv", "-o", "p.csv")
    assert code == 0, said
    with open("p.csv") as file:
        counts = [float(line["prediction"]) for line in csv.DictReader(file)]
    model = DiagAttRegressor.load("m.safetensors")
    np.testing.assert_allclose(counts, years * model.predict(table[0].X), rtol=1e-9)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--time", "days", "--target", "relapses"], "--time is a response, and so is --target"),
        (["--event", "died", "--target", "relapses"], "--event and --start go with --time"),
        (["--time", "hours"], "no column 'hours'"),
        (["--time", "days", "--event", "years"], "the events 'years' must be 1 or true"),
        (["--time", "days", "--family", "poisson"], "not one of times to an event"),
        (["--target", "relapses", "--exposure", "years"], "needs a log link"),
    ],
)
def test_what_does_not_go_together_is_refused(table, words, sentence):
    code, said = run("fit", "visits.csv", "--sample", "patient", *words)
    assert code != 0
    assert sentence in " ".join(said.split())


def test_several_targets_share_the_rows(table, tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(N, 2))
    with open("visits.csv", newline="") as file:
        head, *lines = csv.reader(file)
    with open("labels.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*head, "fever", "rash"])
        for line in lines:
            writer.writerow([*line, *labels[int(line[0][1:])]])
    shared = ["--sample", "patient", "--solver", "uniform"]
    asked = ["--target", "days,years", "--drop", "died,relapses,fever,rash"]
    code, said = run("fit", "labels.csv", *shared, *asked, "-o", "m.safetensors")
    assert code == 0, said
    assert "2 columns of numbers" in said
    code, said = run("predict", "m.safetensors", "labels.csv", "-o", "p.csv")
    assert code == 0, said
    with open("p.csv") as file:
        found = [float(line["prediction_years"]) for line in csv.DictReader(file)]
    model = DiagAttRegressor.load("m.safetensors")
    np.testing.assert_allclose(found, model.predict(table[0].X)[:, 1], rtol=1e-9)
    code, said = run("evaluate", "m.safetensors", "labels.csv", "-o", "e.json")
    assert code == 0, said
    with open("e.json") as file:
        scores = json.load(file)
    both = [scores["r2: days"]["value"], scores["r2: years"]["value"]]
    assert scores["r2"]["value"] == pytest.approx(np.mean(both))
    assert "R² of years" in said
    asked = ["--target", "fever,rash", "--drop", "died,relapses,days,years"]
    code, said = run("fit", "labels.csv", *shared, *asked, "-o", "c.safetensors")
    assert code == 0, said
    assert "DiagAttClassifier" in said
    code, said = run("predict", "c.safetensors", "labels.csv", "-o", "q.csv")
    with open("q.csv") as file:
        first = next(csv.DictReader(file))
    assert {"prediction_rash", "probability_fever"} <= set(first)
    code, said = run("explain", "c.safetensors", "labels.csv")
    assert "a page shows one: name it with --outcome" in " ".join(said.split())
    asked = ["--target", "fever,cough", "--drop", "died,relapses,days,years,rash"]
    assert "has no column 'cough'" in run("fit", "labels.csv", *shared, *asked)[1]


def test_weights_of_rows_are_a_column(table):
    data, _ = table
    weights = np.random.default_rng(0).integers(1, 5, data.X.n_rows)
    with open("visits.csv", newline="") as file:
        head, *lines = csv.reader(file)
    with open("reads.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*head, "reads"])
        writer.writerows([*line, weight] for line, weight in zip(lines, weights, strict=True))
    asked = ["--sample", "patient", "--target", "relapses", "--drop", "days,died,years"]
    asked += ["--row-weight", "reads", "--family", "poisson", "--solver", "uniform"]
    code, said = run("fit", "reads.csv", *asked, "-o", "m.safetensors")
    assert code == 0, said
    assert "row weights" in said
    code, said = run("predict", "m.safetensors", "reads.csv", "-o", "p.csv")
    assert code == 0, said
    with open("p.csv") as file:
        found = [float(line["prediction"]) for line in csv.DictReader(file)]
    model = DiagAttRegressor(family="poisson", solver="uniform")
    X = data.X.with_row_weight(weights)
    expected = model.fit(X, np.arange(N) % 5).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    code, said = run("store", "write", "store", "reads.csv", *asked[:8])
    assert code == 0, said
    assert "--row-weight is a column of a table" in run("fit", "x.csv", "--row-weight", "reads")[1]
    with open("reads.csv", "a", newline="") as file:
        csv.writer(file).writerow([*lines[-1], 0])
    said = run("fit", "reads.csv", *asked, "-o", "n.safetensors")[1]
    assert "has the weight 0: weights are positive; drop the row" in said


def test_classes_are_balanced(table):
    data, _ = table
    columns = ["--sample", "patient", "--drop", "days,years,relapses", "--solver", "uniform"]
    asked = [*columns, "--class-weight", "balanced", "-o", "m.safetensors"]
    code, said = run("fit", "visits.csv", *asked, "--target", "died")
    assert code == 0, said
    model = DiagAttClassifier.load("m.safetensors")
    y = data.y["event"].astype(int)
    own = DiagAttClassifier(solver="uniform").fit(data.X, y, class_weight="balanced")
    np.testing.assert_allclose(model.value_, own.value_, rtol=1e-6)
    asked = ["--sample", "patient", "--target", "years", "--drop", "days,died,relapses"]
    said = run("fit", "visits.csv", *asked, "--class-weight", "balanced", "-o", "n.safetensors")[1]
    assert "--class-weight is for classes" in said


def test_times_are_cross_validated(table):
    columns = ["--sample", "patient", "--time", "days", "--event", "died"]
    asked = [*columns, "--drop", "years,relapses", "--solver", "likelihood", "--folds", "2"]
    code, said = run("cv", "visits.csv", *asked, "-o", "cv")
    assert code == 0, said
    assert "Uno's concordance" in said
    assert "the difference in concordance is" in " ".join(said.split())
    with open("cv/predictions.csv") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == N
    data = table[0]
    held_out = {line["sample"]: float(line["diagatt"]) for line in lines if line["fold"] == "1"}
    inside = [i for i in range(N) if f"p{i}" not in held_out]
    times = data.y[inside]
    times["time"] += 0.01
    model = DiagAttSurvival(solver="likelihood", random_state=0).fit(data.X[inside], times)
    outside = [int(name[1:]) for name in held_out]
    np.testing.assert_allclose(list(held_out.values()), model.predict(data.X[outside]), rtol=1e-6)
    with open("cv/methods.md") as file:
        assert "ridge Cox regression on mean rows and with 300" in file.read()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("days", -1, "the time -1 of sample p0 is not positive"),
        ("died", 2, "the events 'died' must be 1 or true"),
        ("died", "yes", "elsewhere) 'died' must be numbers, and this is 'yes'"),
        ("days", "long", "line 2: the times 'days' must be numbers, and this is 'long'"),
    ],
)
@pytest.mark.parametrize("command", [["fit"], ["store", "write", "folder"]])
def test_bad_times_are_told_by_their_sample_or_column(table, command, column, value, said):
    with open("visits.csv") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        line[column] = value if line["patient"] == "p0" else line[column]
    with open("bad.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    columns = ["--sample", "patient", "--time", "days", "--event", "died"]
    code, found = run(*command, "bad.csv", *columns, "--drop", "years,relapses")
    assert code != 0
    assert said in found


def test_an_exposure_in_cross_validation(table):
    data, years = table
    columns = ["--sample", "patient", "--target", "relapses", "--exposure", "years"]
    asked = [*columns, "--drop", "days,died", "--family", "poisson", "--solver", "uniform"]
    code, said = run("cv", "visits.csv", *asked, "--folds", 2)
    assert code == 0, said
    assert "years, mean 2" in said
    with open("cv/methods.md") as file:
        assert ", and years is the exposure of the counts." in file.read()
    with open("cv/predictions.csv") as file:
        lines = list(csv.DictReader(file))
    fold = np.array([int(line["fold"]) for line in lines])
    y = np.arange(N) % 5
    model = DiagAttRegressor(family="poisson", solver="uniform", random_state=0)
    train, test = (np.flatnonzero(fold == k) for k in (2, 1))
    model.fit(data.X[train], y[train], exposure=years[train])
    wanted = model.predict(data.X[test], exposure=years[test])
    found = [float(lines[i]["diagatt"]) for i in test]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
