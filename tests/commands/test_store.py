"""``diagatt store`` as a user runs it."""

import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from diagatt import RaggedRows
from diagatt.commands.cli import main
from diagatt.stores import RowStore
from tests.commands import running

run = partial(running.run, columns=80)


@pytest.fixture
def cells(tmp_path):
    """A Parquet file of 50 matrices with a response and two covariates."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(p, 3)).tolist() for p in rng.integers(2, 9, 50)]
    columns = {"cells": X, "age": np.arange(50.0), "a": np.ones(50), "b": rng.normal(size=50)}
    parquet.write_table(pa.table(columns), tmp_path / "cells.parquet")
    return tmp_path / "cells.parquet"


def test_write_info_check(cells, tmp_path):
    out = tmp_path / "store"
    done = run(
        *("store", "write", out, cells, "--rows", "cells", "--target", "age"),
        *("--covariates", "a,b", "--shard-mib", 0.001),
    )
    assert done.exit_code == 0, done.output
    store = RowStore(out)
    assert f"50 samples in {len(store.shards)} shards" in " ".join(done.output.split())
    table = parquet.read_table(cells)
    assert store.to_rows() == RaggedRows.from_arrow(table["cells"]).astype("float32")
    assert store.responses().tolist() == list(range(50))
    np.testing.assert_array_equal(store.covariates()[:, 1], table["b"].to_numpy())

    shown = run("store", "info", out).output
    assert max(len(line) for line in shown.splitlines()) <= 80
    said = " ".join(shown.replace("│", " ").split())
    assert f"rows {store.n_rows}" in said
    assert "features 3 (float32)" in said
    assert f"mean 24.5, deviation {np.arange(50).std():g}, 0 to 49 (float64)" in said
    assert store.digest[:16] in said

    checked = run("store", "check", out)
    assert f"is sound: {len(store.shards)} shards" in " ".join(checked.output.split())


def test_long_tables_and_classes(tmp_path):
    lines = [[f"p{i // 4}", i * 1.0, "old" if i < 20 else "young"] for i in range(40)]
    table = pa.table({n: [x[k] for x in lines] for k, n in enumerate(["who", "x", "group"])})
    csv.write_csv(table, tmp_path / "t.csv")
    done = run(
        *("store", "write", tmp_path / "s", tmp_path / "t.csv"),
        *("--sample", "who", "--target", "group"),
    )
    assert done.exit_code == 0, done.output
    assert RowStore(tmp_path / "s").part(0).payload("id") == [f"p{i}" for i in range(10)]
    assert "old (5), young (5)" in run("store", "info", tmp_path / "s").output


def test_images_with_their_paths(tmp_path):
    from PIL import Image

    from diagatt.images import PatchRows

    rng = np.random.default_rng(0)
    names = [f"{i}.png" for i in range(3)]
    for name in names:
        pixels = rng.integers(0, 255, (9, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / name)
    csv.write_csv(pa.table({"file": names, "y": [1, 0, 1]}), tmp_path / "t.csv")
    done = run(
        *("store", "write", tmp_path / "s", tmp_path / "t.csv"),
        *("--image", "file", "--target", "y", "--patch", 4),
    )
    assert done.exit_code == 0, done.output
    store, paths = RowStore(tmp_path / "s"), [tmp_path / name for name in names]
    assert store.to_rows() == PatchRows(4, padding="edge").fit_transform(paths)
    assert store.part(0).payload("path") == [str(path) for path in paths]


def test_texts_with_their_words(tmp_path, monkeypatch):
    class Letters:
        """One row per letter: quicker than a language model."""

        def __init__(self, *settings, **named):
            pass

        def transform(self, texts):
            return RaggedRows.from_samples([np.array([[float(ord(c))] for c in t]) for t in texts])

    monkeypatch.setattr("diagatt.kinds.text.rows.TextRows", Letters)
    texts = [f"text {i}" for i in range(300)]
    csv.write_csv(pa.table({"words": texts, "y": range(300)}), tmp_path / "t.csv")
    done = run("store", "write", tmp_path / "s", tmp_path / "t.csv", "--text", "words")
    assert done.exit_code == 0, done.output
    store = RowStore(tmp_path / "s")
    assert store.take(slice(None)).payload("text") == texts
    assert not store.has_response


def test_mistakes_are_one_sentence(cells, tmp_path, monkeypatch, capsys):
    out = tmp_path / "store"
    RowStore.write(out, [np.ones((2, 2))])
    shard = out / "shard-00000.arrow"
    content = bytearray(shard.read_bytes())
    content[-20] ^= 1
    shard.write_bytes(content)
    for line, said in {
        f"store write {out} {cells}": "exists: pass --overwrite",
        f"store check {out}": "shard-00000.arrow",
        f"store info {tmp_path}": "is not a row store",
        f"store write {tmp_path}/new {cells} --target z": "has no column 'z'",
        f"store write {tmp_path}/new {cells} --shard-mib 0": "--shard-mib must be above 0",
    }.items():
        monkeypatch.setattr(sys, "argv", ["diagatt", *line.split()])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert said in error
        assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_help_needs_no_torch():
    code = (
        "import sys; from diagatt.commands.cli import app; from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(app, ['store', 'write', '--help']).exit_code == 0\n"
        "assert not {'torch', 'pyarrow', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
