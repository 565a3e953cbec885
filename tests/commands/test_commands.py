"""The commands as a user runs them."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from diagatt import DiagAttRegressor, simulate
from diagatt.metrics import rmse
from diagatt.text import TextClassifier
from tests.commands.running import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Parquet file of matrices, and a model fitted to it."""
    path = tmp_path_factory.mktemp("commands")
    data = simulate.regression(300, p=(4, 8), d=3, mu=(3,), sigma2=(4,), seed=0)
    columns = {"cells": [s.tolist() for s in data.X], "y": data.y, "age": np.arange(300.0)}
    parquet.write_table(pa.table(columns), path / "cells.parquet")
    done = run(
        *("fit", path / "cells.parquet", "--target", "y", "--covariates", "age"),
        *("--solver", "likelihood", "-o", path / "m.safetensors"),
    )
    assert done.exit_code == 0, done.output
    return path


def test_a_fitted_file_is_an_ordinary_model(folder):
    model = DiagAttRegressor.load(folder / "m.safetensors")
    table = parquet.read_table(folder / "cells.parquet")
    fresh = DiagAttRegressor(solver="likelihood", random_state=0).fit(
        table["cells"], table["y"].to_numpy(), covariates=np.arange(300.0)[:, None]
    )
    np.testing.assert_array_equal(model.query_key_, fresh.query_key_)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_predictions_and_rows_are_those_of_the_model(folder, kind):
    path = folder / f"p.{kind}"
    done = run("predict", folder / "m.safetensors", folder / "cells.parquet", "-o", path)
    assert done.exit_code == 0, done.output
    if kind == "csv":
        lines = list(csv.DictReader(path.open()))
    elif kind == "jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        lines = parquet.read_table(path).to_pylist()
    table = parquet.read_table(folder / "cells.parquet")
    model = DiagAttRegressor.load(folder / "m.safetensors")
    expected = model.predict(table["cells"], covariates=np.arange(300.0)[:, None])
    np.testing.assert_allclose([float(x["prediction"]) for x in lines], expected, rtol=1e-5)
    located = model.locate(table["cells"])
    assert [int(x["head0_row"]) for x in lines] == located[:, 0].tolist()
    weight = model.attention(table["cells"])[7][located[7, 0], 0]
    assert float(lines[7]["head0_weight"]) == pytest.approx(weight, rel=1e-5)


def test_evaluate_prints_the_metric(folder):
    out = folder / "scores.json"
    done = run("evaluate", folder / "m.safetensors", folder / "cells.parquet", "-o", out)
    table = parquet.read_table(folder / "cells.parquet")
    model = DiagAttRegressor.load(folder / "m.safetensors")
    predicted = model.predict(table["cells"], covariates=np.arange(300.0)[:, None])
    expected = rmse(table["y"].to_numpy(), predicted)
    assert f"{expected:.4g}" in done.output
    scores = json.loads(out.read_text())
    assert scores["rmse"]["value"] == pytest.approx(expected)
    assert scores["rmse"]["low"] < expected < scores["rmse"]["high"]
    assert list(scores) == ["samples", "interval", "r2", "rmse", "mae", "log_score"]


def test_evaluate_refuses_words_where_the_model_predicts_numbers(folder, tmp_path):
    table = parquet.read_table(folder / "cells.parquet").drop(["y"])
    table = table.append_column("y", pa.array(["high", "low"] * 150))
    parquet.write_table(table, tmp_path / "words.parquet")
    done = run("evaluate", folder / "m.safetensors", tmp_path / "words.parquet")
    assert done.exit_code == 1
    said = str(done.exception)
    assert "the response of sample 0 is 'high', and the model predicts numbers" in said


def test_explain_writes_the_page_and_info_says_what_is_inside(folder):
    done = run(
        "explain", folder / "m.safetensors", folder / "cells.parquet", "-o", folder / "p.html"
    )
    assert done.exit_code == 0, done.output
    assert "which rows decided?" in (folder / "p.html").read_text(encoding="utf-8")
    told = run("info", folder / "m.safetensors").output
    for fact in ("DiagAttRegressor", "likelihood", "cells", "age"):
        assert fact in told


def test_held_out_samples_are_not_fitted(folder):
    done = run(
        *("fit", folder / "cells.parquet", "--target", "y", "--solver", "likelihood"),
        *("--split", "0.25", "-o", folder / "half.safetensors"),
    )
    assert "75 samples held out" in done.output
    assert "The saved model is fitted to the other 225 samples; --refit" in done.output
    assert DiagAttRegressor.load(folder / "half.safetensors").n_samples_ == 225


def test_refit_saves_the_fit_to_all_samples(folder):
    parts = ("fit", folder / "cells.parquet", "--target", "y", "--solver", "likelihood")
    done = run(*parts, "--split", "0.25", "--refit", "-o", folder / "all.safetensors")
    assert "75 samples held out" in done.output
    assert "The saved model is fitted to all 300 samples." in done.output
    whole = DiagAttRegressor.load(folder / "all.safetensors")
    assert run(*parts, "-o", folder / "plain.safetensors").exit_code == 0
    plain = DiagAttRegressor.load(folder / "plain.safetensors")
    np.testing.assert_array_equal(whole.query_key_, plain.query_key_)
    wrong = run(*parts, "--refit", "-o", folder / "no.safetensors")
    assert "--refit goes with --split" in str(wrong.exception)


def test_fit_says_what_it_understood_before_it_works(folder):
    done = run(
        *("fit", folder / "cells.parquet", "--target", "y", "--covariates", "age"),
        *("--solver", "likelihood", "-o", folder / "told.safetensors"),
    )
    said = done.output[: done.output.index("EM")]
    assert "DiagAttRegressor: 300 samples from" in said
    for fact in ("4 to 8 per sample", "covariates", "age", "y, numbers from "):
        assert fact in said


def test_words_and_few_whole_numbers_are_classes(tmp_path):
    data = simulate.classification(80, p=4, d=3, seed=0)
    for name, labels in [("words", np.where(data.y == 1, "ill", "well")), ("numbers", data.y)]:
        table = pa.table({"cells": [s.tolist() for s in data.X], "y": labels})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        file, quick = tmp_path / f"{name}.parquet", ("--solver", "likelihood")
        done = run("fit", file, "--target", "y", *quick, "-o", tmp_path / name)
        assert "DiagAttClassifier" in done.output, done.output
    done = run(
        *("fit", tmp_path / "numbers.parquet", "--target", "y", "--family", "gaussian"),
        *(*quick, "-o", tmp_path / "m"),
    )
    assert "DiagAttRegressor" in done.output, done.output


def command(*arguments, **options):
    line = [sys.executable, "-m", "diagatt", *(str(a) for a in arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)


def test_a_mistake_is_one_sentence_and_a_traceback_only_when_asked(folder):
    wrong = command("fit", folder / "none.csv", "--target", "y")
    assert wrong.returncode == 1
    assert wrong.stderr == f"error: {folder / 'none.csv'} does not exist.\n"
    shown = command("--debug", "fit", folder / "none.csv", "--target", "y")
    assert "Traceback" in shown.stderr
    assert command("fit").returncode == 2  # as commands say that they were called wrongly


def test_interrupted_while_fitting_nothing_is_written(tmp_path):
    data = simulate.regression(3000, p=40, d=30, seed=0)
    np.savez(tmp_path / "d.npz", X=np.asarray(data.X.to_padded()[0]), y=data.y)
    process = subprocess.Popen(
        [sys.executable, "-m", "diagatt", "fit", "d.npz", "--solver", "gradient", "-o", "m.st"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    while "samples from" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(600) != 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.npz"]
    assert "Traceback" not in process.stdout.read()


def test_help_needs_no_heavy_import():
    code = (
        "import sys, diagatt.commands.cli; "
        "print([m for m in ('torch', 'sklearn', 'pyarrow', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    told = run("--help").output
    for name in ("demo", "fit", "predict", "explain", "evaluate", "study", "info"):
        assert name in told
    assert "diagatt fit reviews.csv" in run("fit", "--help").output


@pytest.fixture
def fewer_starts(monkeypatch):
    """Presets for texts from two starts: what commands do with a fit is tested here."""
    from diagatt.kinds.text import presets

    for preset in (presets._TEXT, presets._KEYWORD):
        monkeypatch.setitem(preset, "n_restarts", 2)
    return presets


def test_texts_with_covariates(tmp_path, fewer_starts):
    path = tmp_path / "t.csv"
    texts = ["What a lovely phone.", "A dreadful film.", "Great food!", "The worst service."]
    lines = [f"{text},{i % 7},{'bad' if i % 2 else 'good'}" for i, text in enumerate(texts * 5)]
    path.write_text("\n".join(["review,age,label", *lines]))
    model, out = tmp_path / "m.safetensors", tmp_path / "p.jsonl"
    done = run(
        "fit", path, "--text", "review", "--target", "label", "--covariates", "age", "-o", model
    )
    assert done.exit_code == 0, done.output
    assert run("predict", model, path, "-o", out).exit_code == 0
    first = json.loads(out.read_text().splitlines()[0])
    text = texts[0]
    assert text[first["head0_start"] : first["head0_stop"]] == first["head0_word"]
    loaded = TextClassifier.load(model)  # in Python, nobody asked for progress bars
    assert not loaded.text_rows_.verbose
    assert not loaded.estimator_.verbose
    page = run("explain", model, path, "-o", tmp_path / "p.html")
    assert page.exit_code == 0, page.output


@pytest.mark.parametrize("preset", ["text", "keyword"])
def test_the_language_model_reads_each_text_once_per_command(
    tmp_path, monkeypatch, fewer_starts, preset
):
    from diagatt.kinds.text import rows

    monkeypatch.setitem(fewer_starts._KEYWORD_LAYER, "steps", 10)
    path, model = tmp_path / "t.csv", tmp_path / "m"
    lines = [f"A {'superb' if i % 2 else 'dismal'} box on day {i}.,{i % 2}" for i in range(30)]
    path.write_text("\n".join(["review,label", *lines]))
    calls, embed = [], rows.hidden_vectors

    def counted(language_model, batch, layers):
        calls.append(len(batch))
        return embed(language_model, batch, layers)

    monkeypatch.setattr(rows, "hidden_vectors", counted)
    monkeypatch.chdir(tmp_path)
    columns = ("--text", "review", "--target", "label", "--preset", preset)
    for arguments in [("fit", path, *columns, "-o", model)] + [
        (command, model, path) for command in ("predict", "evaluate", "explain")
    ]:
        calls.clear()
        done = run(*arguments)
        assert done.exit_code == 0, (done.output, done.exception)
        assert calls == [30], arguments[0]


def test_one_module_is_built_per_command(folder, monkeypatch):
    built, build = [], DiagAttRegressor.to_module
    monkeypatch.setattr(DiagAttRegressor, "to_module", lambda self: built.append(1) or build(self))
    monkeypatch.chdir(folder)
    for command in ("predict", "evaluate", "explain"):
        built.clear()
        assert run(command, folder / "m.safetensors", folder / "cells.parquet").exit_code == 0
        assert built == [1], command


def test_texts_in_which_one_word_decides(tmp_path, fewer_starts, monkeypatch):
    monkeypatch.setitem(fewer_starts._KEYWORD_LAYER, "steps", 250)
    path, model, out = (tmp_path / name for name in ("t.csv", "m.safetensors", "p.jsonl"))
    words = ["superb", "dismal", "lovely", "dreadful"]
    lines = [f"The {w} box came on day {i}.,{i % 2}" for i, w in enumerate(words * 3)]
    path.write_text("\n".join(["review,label", *lines]))
    asked = ("fit", path, "--text", "review", "--target", "label", "-o", model, "--overwrite")
    done = run(*asked, "--preset", "keyword")
    assert done.exit_code == 0, done.output
    assert run("predict", model, path, "-o", out).exit_code == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["prediction"] for line in found] == [i % 2 for i in range(12)]
    assert [line["head0_word"] for line in found] == words * 3
    told = run("info", model).output
    for fact in ("BlendedClassifier", "3 members", "gradient"):
        assert fact in told
    assert "fixes heads" in str(run(*asked, "--preset", "keyword", "--heads", "2").exception)
    assert "choose 'text' or 'keyword'" in str(run(*asked, "--preset", "words").exception)


def test_presets_are_for_texts(folder):
    done = run("fit", folder / "cells.parquet", "--target", "y", "--preset", "keyword")
    assert "--preset keyword is for texts" in str(done.exception)


def test_images_and_their_boxes(tmp_path):
    from PIL import Image

    from diagatt.datasets import digit_canvas

    train, _ = digit_canvas(120, 2, size=24, seed=0)
    lines = ["file,digit"]
    for i, (image, label) in enumerate(zip(train.images, train.y, strict=True)):
        pixels = (255 * (image - image.min()) / np.ptp(image)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
        lines.append(f"{i}.png,{label}")
    (tmp_path / "i.csv").write_text("\n".join(lines))
    model, out = tmp_path / "m.safetensors", tmp_path / "p.jsonl"
    done = run(
        *("fit", tmp_path / "i.csv", "--image", "file", "--target", "digit"),
        *("--solver", "likelihood", "-o", model),
    )
    assert done.exit_code == 0, done.output
    assert run("predict", model, tmp_path / "i.csv", "-o", out).exit_code == 0
    boxes = [json.loads(line) for line in out.read_text().splitlines()]
    found = [(b["head0_top"], b["head0_left"], b["head0_bottom"], b["head0_right"]) for b in boxes]
    assert np.mean([tuple(t) == f for t, f in zip(train.boxes, found, strict=True)]) > 0.9
    page = run("explain", model, tmp_path / "i.csv", "-o", tmp_path / "p.html")
    assert page.exit_code == 0, page.output
    assert (tmp_path / "p.html").read_text(encoding="utf-8").count("data:image/png") >= 1


def test_patches_that_reach_beyond_the_image_are_drawn_inside(tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(12):
        pixels = rng.integers(0, 100 + 100 * (i % 2), (10, 13), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
    lines = ["file,y", *(f"{i}.png,{'ab'[i % 2]}" for i in range(12))]
    (tmp_path / "i.csv").write_text("\n".join(lines))
    model = tmp_path / "m"
    arguments = ("fit", tmp_path / "i.csv", "--image", "file", "--target", "y")
    done = run(*arguments, "--solver", "likelihood", "-o", model)
    assert done.exit_code == 0, done.output
    page = run("explain", model, tmp_path / "i.csv", "-o", tmp_path / "p.html")
    assert page.exit_code == 0, (page.output, page.exception)
