"""Every way to give samples holds the same samples."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from diagatt import DiagAttRegressor, RaggedRows, simulate
from diagatt.kinds import Columns
from diagatt.kinds.files import load_model, read_inputs, save_model

FORMAT_1 = Path(__file__).parent.parent / "golden" / "format1"


@pytest.fixture(scope="module")
def data():
    found = simulate.regression(12, p=(2, 5), d=3, seed=0)
    return RaggedRows.coerce([np.round(s.astype(float), 6) for s in found.X]), np.round(found.y, 6)


def write_long(path, X, y, order=None, wrong=None):
    lines = [(f"s{i}", *row, float(y[i])) for i, s in enumerate(X) for row in s.tolist()]
    lines = lines if order is None else [lines[i] for i in order]
    if wrong is not None:
        lines[wrong] = (*lines[wrong][:-1], 99.0)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "a", "b", "c", "y"), *lines])


def test_lists_in_parquet_and_feather(tmp_path, data):
    X, y = data
    table = pa.table({"cells": [s.tolist() for s in X], "y": y, "age": np.arange(12.0)})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        found = read_inputs(tmp_path / name, Columns(target="y", covariates=("age",)))
        assert found.columns.asked == {"rows": "cells"}  # the only column of lists
        np.testing.assert_array_equal(found.X.values, X.values)
        np.testing.assert_array_equal(found.X.offsets, X.offsets)
        np.testing.assert_array_equal(found.y, y)
        np.testing.assert_array_equal(found.covariates[:, 0], np.arange(12.0))


def test_a_long_table_in_any_order_of_lines(tmp_path, data):
    X, y = data
    write_long(tmp_path / "long.csv", X, y)
    found = read_inputs(tmp_path / "long.csv", Columns({"sample": "id"}, target="y"))
    np.testing.assert_array_equal(found.X.values, X.values)
    np.testing.assert_array_equal(found.y, y)
    order = np.random.default_rng(0).permutation(X.n_rows)
    write_long(tmp_path / "mixed.csv", X, y, order)
    mixed = read_inputs(tmp_path / "mixed.csv", Columns({"sample": "id"}, target="y"))
    for name, sample, response in zip(mixed.ids, mixed.X, mixed.y, strict=True):
        i = int(name[1:])
        assert response == y[i]
        assert sorted(sample.tolist()) == sorted(X[i].tolist())


def test_a_response_that_changes_within_a_sample_is_refused(tmp_path, data):
    write_long(tmp_path / "long.csv", *data, wrong=1)
    with pytest.raises(ValueError, match=r"long.csv, line 3: y is 99.0, but sample s0 has"):
        read_inputs(tmp_path / "long.csv", Columns({"sample": "id"}, target="y"))


def test_arrays(tmp_path, data):
    X, y = data
    np.savez(tmp_path / "packed.npz", values=X.values, offsets=X.offsets, y=y)
    np.savez(tmp_path / "dense.npz", X=np.ones((3, 2, 4)), label=[0, 1, 0])
    packed = read_inputs(tmp_path / "packed.npz", Columns())
    assert packed.X == X
    np.testing.assert_array_equal(packed.y, y)
    dense = read_inputs(tmp_path / "dense.npz", Columns(target="label"))
    assert (len(dense), dense.X.n_features, dense.y.tolist()) == (3, 4, [0, 1, 0])
    np.savez(tmp_path / "other.npz", A=np.ones(3))
    with pytest.raises(ValueError, match=r"needs an array X, or values and offsets; it has"):
        read_inputs(tmp_path / "other.npz", Columns())


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("y", np.ones(2)),
        ("y", np.float64(1)),
        ("y", np.ones((3, 2))),
        ("ids", np.ones(2)),
        ("ids", np.ones((3, 2))),
        ("groups", np.ones(4)),
        ("covariates", np.ones(3)),
        ("covariates", np.ones((4, 1))),
        ("ids", np.array([1.0, np.nan, 2.0])),
    ],
)
def test_arrays_about_samples_have_an_entry_for_each(name, array, tmp_path):
    np.savez(tmp_path / "x.npz", **({"X": np.ones((3, 2, 4)), "y": np.arange(3)} | {name: array}))
    with pytest.raises(ValueError, match=rf"x.npz: (the array )?{name}"):
        read_inputs(tmp_path / "x.npz", Columns())


def test_responses_of_npz_files_may_be_a_column(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.ones((3, 2, 4)), y=np.arange(3)[:, None])
    assert read_inputs(tmp_path / "x.npz", Columns()).named_y.tolist() == [0, 1, 2]


TEXTS = ['He said "no", twice.', "line one\nline two", "NA", "null", "plain", "ünïcode 😀"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_texts_survive_quotes_breaks_and_words_that_look_missing(tmp_path, kind):
    path, labels = tmp_path / f"t.{kind}", ["a", "b"] * 3
    if kind in ("csv", "tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t" if kind == "tsv" else ",")
            writer.writerows([("text", "label"), *zip(TEXTS, labels, strict=True)])
    elif kind == "jsonl":
        lines = zip(TEXTS, labels, strict=True)
        path.write_text("".join(json.dumps({"text": t, "label": x}) + "\n" for t, x in lines))
    else:
        parquet.write_table(pa.table({"text": TEXTS, "label": labels}), path)
    found = read_inputs(path, Columns({"text": "text"}, target="label"))
    assert (found.X, found.y.tolist()) == (TEXTS, labels)
    assert [TEXTS[4], TEXTS[0]] == found.take(np.array([4, 0])).X


def test_image_paths_are_relative_to_the_table(tmp_path):
    (tmp_path / "i.csv").write_text("file,y\na.png,1\nb/c.png,2\n")
    found = read_inputs(tmp_path / "i.csv", Columns({"image": "file"}, target="y"))
    assert [tmp_path / "a.png", tmp_path / "b" / "c.png"] == found.X


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns({"text": "words"}, target="label"), r"has no column 'words'; it has text, label"),
        (
            Columns(target="label"),
            r"say what a sample is, with --image, --rows, --sample or --text COLUMN, or --slides F",
        ),
        (
            Columns({"text": "text", "image": "text"}, target="label"),
            r"give one of --text, --image, not several",
        ),
        (Columns({"text": "text"}), r"needs --target COLUMN"),
        (Columns({"text": "text"}, target="y"), r"has no column 'y'"),
        (Columns({"text": "text"}, target="label"), r"line 3: 'text' is empty"),
        (
            Columns({"text": "label"}, target="notes", covariates=("text",)),
            r"'text' is empty|numbers",
        ),
    ],
)
def test_mistakes_are_named(tmp_path, columns, message):
    path = tmp_path / "t.csv"
    path.write_text("text,label,notes\nx,a,u\n,b,v\n")
    with pytest.raises(ValueError, match=message):
        read_inputs(path, columns, need_target=True)


def test_files_that_are_not_there_or_unknown(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.csv does not exist"):
        read_inputs(tmp_path / "none.csv", Columns())
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"unknown kind of file"):
        read_inputs(tmp_path / "a.xlsx", Columns())
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(ValueError, match=r"a.csv cannot be read"):
        read_inputs(tmp_path / "a.csv", Columns({"text": "x"}))


def test_columns_come_back_from_json():
    columns = Columns({"text": "t"}, target="y", covariates=("a", "b"))
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns


def test_columns_of_older_files_come_back():
    stored = {"rows": None, "sample": "id", "text": None, "image": None, "target": "y"}
    stored |= {"covariates": ["a"], "features": []}
    assert Columns.from_json(stored) == Columns({"sample": "id"}, "y", ("a",))


def test_a_plain_model_is_loaded_without_the_rooms_of_texts_and_images(tmp_path):
    data = simulate.regression(40, p=4, d=3, seed=0)
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    columns = Columns({"rows": "cells"}, "y")
    save_model(model, tmp_path / "m", columns)
    loaded, found = load_model(tmp_path / "m")
    assert found == columns
    np.testing.assert_array_equal(loaded.predict(data.X), model.predict(data.X))
    code = (
        "import sys; from pathlib import Path; from diagatt.kinds.files import load_model\n"
        f"load_model(Path({str(tmp_path / 'm')!r}))\n"
        "rooms = [f'diagatt.kinds.{r}.estimator' for r in ('text', 'image')] + ['diagatt.text']\n"
        "assert not {*rooms, 'diagatt.images'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.parametrize("name", ["image", "text", "blended", "likelihood", "pooled"])
def test_any_model_of_format_1_is_loaded(name):
    loaded, columns = load_model(FORMAT_1 / f"{name}.safetensors")
    assert hasattr(loaded, "predict")
    assert columns == Columns()
