"""``diagatt fit`` and ``diagatt predict`` on stores: parts, checkpoints, files of others."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from diagatt import DiagAttRegressor, GatedAttentionRegressor, PooledRegressor, modelfile, simulate
from diagatt.commands import predict as predict_module
from diagatt.report import render_page
from diagatt.stores import RowStore
from tests.commands.running import run


def succeed(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Stores of several shards and of one, and a model fitted to the former."""
    folder = tmp_path_factory.mktemp("stored")
    data = simulate.regression(300, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    RowStore.from_rows(folder / "store", data.X, data.y, shard_mib=0.01)
    RowStore.from_rows(folder / "small", data.X[:20], data.y[:20])
    succeed("fit", folder / "store", "--solver", "likelihood", "-o", folder / "m")
    assert len(RowStore(folder / "store").shards) > 2
    return folder


def predict(folder, out, store="store", model="m"):
    return succeed("predict", folder / model, folder / store, "-o", out, "--memory", 64)


def test_times_between_two_bounds_are_refused_and_described(tmp_path):
    """`fit` ended with "no field of name stop"."""
    data = simulate.regression(20, p=3, d=2, seed=0)
    bounds = {"lower": np.ones(20), "upper": np.full(20, 2.0)}
    RowStore.from_rows(tmp_path / "s", data.X, bounds)
    done = run("fit", tmp_path / "s", "--family", "weibull", "-o", tmp_path / "m")
    assert "times between two bounds" in str(done.exception)
    assert "times between lower and upper, up to 1" in succeed("store", "info", tmp_path / "s")


# ---------------------------------------------------------------------- predictions


def test_a_model_of_a_store_knows_no_columns_of_a_table(folder, tmp_path):
    (tmp_path / "t.csv").write_text("who,a,b,c,d\nann,1,2,3,4\n")
    done = run("predict", folder / "m", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert "the model was not fitted to a table, and knows no column" in str(done.exception)


def test_parts_hold_what_the_model_says(folder, tmp_path):
    assert "300 samples" in predict(folder, tmp_path / "out")
    store, model = RowStore(folder / "store"), DiagAttRegressor.load(folder / "m")
    table = pq.read_table(tmp_path / "out")
    assert table["sample"].to_pylist() == list(range(300))
    np.testing.assert_allclose(table["prediction"], model.predict(store), rtol=1e-6)
    found = model.certainty(store)
    np.testing.assert_array_equal(table["head0_row"], found.rows[:, 0])
    np.testing.assert_allclose(table["head0_weight"], found.posterior[:, 0], rtol=1e-6)


def test_parts_that_are_there_are_not_predicted_again(folder, tmp_path):
    out = tmp_path / "again"
    predict(folder, out)
    first = sorted(out.glob("*.parquet"))
    before = [path.stat().st_mtime_ns for path in first]
    first[1].write_bytes(b"damaged")
    predict(folder, out)
    after = sorted(out.glob("*.parquet"))
    assert [path.name for path in after] == [path.name for path in first]
    kept = [path.stat().st_mtime_ns == old for path, old in zip(after, before, strict=True)]
    assert kept == [i != 1 for i in range(len(first))]
    assert pq.read_table(after[1]).num_rows > 0


def test_parts_of_a_larger_store_are_removed(folder, tmp_path):
    predict(folder, tmp_path / "out")
    predict(folder, tmp_path / "out", store="small")
    assert [path.name for path in (tmp_path / "out").glob("*.parquet")] == ["part-00000.parquet"]
    assert pq.read_table(tmp_path / "out").num_rows == 20


@pytest.mark.parametrize("name", ["part-09999.parquet", "part-00000.parquet", "thesis.txt"])
def test_a_folder_with_files_of_others_is_refused_and_left_alone(folder, tmp_path, name):
    (tmp_path / name).write_bytes(b"years of work")
    done = run("predict", folder / "m", folder / "store", "-o", tmp_path)
    assert f"holds {name}, which diagatt predict did not write" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"years of work"


def test_files_of_others_that_came_later_are_refused_and_left_alone(folder, tmp_path):
    predict(folder, tmp_path)
    (tmp_path / "part-09999.parquet").write_bytes(b"years of work")
    done = run("predict", folder / "m", folder / "small", "-o", tmp_path)
    assert "holds part-09999.parquet" in str(done.exception)
    assert (tmp_path / "part-09999.parquet").read_bytes() == b"years of work"
    assert len(list(tmp_path.glob("*.parquet"))) == len(RowStore(folder / "store").shards) + 1


def test_predictions_of_a_store_are_a_folder(folder):
    done = run("predict", folder / "m", folder / "store", "-o", "p.csv")
    assert "p.csv: predictions of a store are a folder of parts" in str(done.exception)


@pytest.mark.parametrize("competitor", [PooledRegressor, GatedAttentionRegressor])
def test_competitors_predict_stores_and_tables_alike(folder, tmp_path, competitor):
    store = RowStore(folder / "store")
    rows = store.to_rows()
    model = competitor(random_state=0).fit(rows, store.responses())
    model.save(tmp_path / "m")
    np.savez(tmp_path / "d.npz", values=rows.values, offsets=rows.offsets)
    succeed("predict", tmp_path / "m", tmp_path / "d.npz", "-o", tmp_path / "p.jsonl")
    succeed("predict", tmp_path / "m", folder / "store", "-o", tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    table = pq.read_table(tmp_path / "out").to_pylist()
    expected, located = model.predict(rows), model.locate(rows)
    for found in (lines, table):
        np.testing.assert_allclose([x["prediction"] for x in found], expected, rtol=1e-6)
        assert [x["head1_row"] for x in found] == located[:, 1].tolist()


# ---------------------------------------------------------------------- checkpoints


def test_only_the_checkpoint_of_this_fit_is_removed(folder, tmp_path):
    others = [tmp_path / name for name in ("state_of_my_thesis.bin", "state-1.bin", "states.bin")]
    for path in others:
        path.write_bytes(b"years of work")
    state, model = tmp_path / "state.bin", tmp_path / "m"
    succeed("fit", folder / "store", "--solver", "likelihood", "--checkpoint", state, "-o", model)
    assert sorted(tmp_path.iterdir()) == sorted([*others, model])
    assert all(path.read_bytes() == b"years of work" for path in others)


def test_a_checkpoint_that_is_no_checkpoint_is_refused_and_left_alone(folder, tmp_path):
    state = tmp_path / "state.bin"
    state.write_bytes(b"years of work")
    done = run("fit", folder / "store", "--solver", "likelihood", "--checkpoint", state)
    assert "state.bin is not a readable diagatt file" in str(done.exception)
    assert state.read_bytes() == b"years of work"


def test_a_file_that_the_fit_never_wrote_is_not_removed(folder, tmp_path):
    """L-BFGS keeps no checkpoint: whatever stands there is not ours."""
    state = tmp_path / "state.bin"
    state.write_bytes(b"years of work")
    arguments = ("fit", folder / "small", "--solver", "gradient", "--checkpoint", state)
    succeed(*arguments, "-o", tmp_path / "m")
    assert state.read_bytes() == b"years of work"


def test_a_fit_that_ended_before_its_model_was_saved_is_finished(folder, tmp_path, monkeypatch):
    """The second run goes on from the last state, reports the same, and leaves nothing behind."""
    fit = ("fit", folder / "store", "--solver", "likelihood", "-o")
    succeed(*fit, tmp_path / "undisturbed")
    with monkeypatch.context() as patch:
        patch.setattr("diagatt.kinds.files.save_model", lambda *_: 1 / 0)
        run(*fit, tmp_path / "m")
    assert [path.name for path in tmp_path.glob("m*")] == ["m.checkpoint"]
    succeed(*fit, tmp_path / "m")
    assert [path.name for path in tmp_path.glob("m*")] == ["m"]
    (arrays, document), (other_arrays, other_document) = (
        modelfile.parse((tmp_path / name).read_bytes(), name) for name in ("m", "undisturbed")
    )
    assert document == other_document
    assert arrays.keys() == other_arrays.keys()
    assert all(np.array_equal(arrays[name], other_arrays[name]) for name in arrays)


def test_the_default_checkpoint_is_gone_when_the_model_is_there(folder):
    assert not list(folder.glob("*checkpoint*"))


def test_whole_shards_are_held_out(folder, tmp_path):
    store = RowStore(folder / "store")
    arguments = ("fit", folder / "store", "--solver", "likelihood", "-o", tmp_path / "m")
    output = succeed(*arguments, "--split", 0.4)
    held_out = 300 - DiagAttRegressor.load(tmp_path / "m").n_samples_
    assert f"{held_out} samples held out" in output
    order = np.random.default_rng(0).permutation(len(store.shards))
    count = round(0.4 * len(store.shards))
    assert held_out == sum(store.shards[k].n_samples for k in order[:count])
    done = run("fit", folder / "small", "--split", 0.4, "-o", tmp_path / "small")
    assert "holds out whole shards, and" in str(done.exception)


def test_what_a_killed_writer_left_of_the_list_of_parts_stops_nobody(tmp_path):
    out = tmp_path / "parts"
    out.mkdir()
    (out / "._written.json.99999999.0123abcd.tmp").write_bytes(b"half")  # no process has this id
    predict_module._prepare_folder(out, ["part-00000.parquet"])
    assert [path.name for path in out.iterdir()] == ["_written.json"]


def test_the_page_of_a_store_is_that_of_its_samples_in_memory_and_reads_one_part_at_a_time(
    folder, tmp_path, monkeypatch
):
    """`explain` read the whole store into memory."""
    model, store = DiagAttRegressor.load(folder / "m"), RowStore(folder / "store")
    y = store.responses()
    expected = render_page(model, store.to_rows(), y, title="store: which rows decided?")
    monkeypatch.setattr(RowStore, "take", lambda *_: pytest.fail("the store is read whole"))
    succeed("explain", folder / "m", folder / "store", "-o", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    own, expected = (re.search('"top":.*?"standout":.*?]', text)[0] for text in (page, expected))
    own, expected = (re.split(r"(-?\d+\.\d+)", text) for text in (own, expected))
    assert own[::2] == expected[::2]
    for one, other in zip(own[1::2], expected[1::2], strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-4, abs=0.1)
