"""No command destroys a file of the user: not an input, not an older output, not when it fails."""

import contextlib
import errno
import io
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from diagatt import __main__, resampling, simulate
from diagatt.commands import cli
from diagatt.stores import RowStore

COMMANDS = {
    "fit": lambda model, data, out: ("fit", data, "--solver", "likelihood", "-o", out),
    "predict": lambda model, data, out: ("predict", model, data, "-o", out),
    "evaluate": lambda model, data, out: ("evaluate", model, data, "-o", out),
    "explain": lambda model, data, out: ("explain", model, data, "-o", out),
    "store": lambda model, data, out: ("store", "write", out, data),
}
READ = {name: ("DATA",) if name in ("fit", "store") else ("DATA", "MODEL") for name in COMMANDS}
OUTPUT = {name: "OUT" if name == "store" else "--output" for name in COMMANDS}
FILES = [name for name in COMMANDS if name != "store"]
ENDINGS = {"fit": "m", "predict": "p.csv", "evaluate": "s.json", "explain": "p.html", "store": "s"}

every_command = pytest.mark.parametrize("command", COMMANDS)
every_file = pytest.mark.parametrize("command", FILES)


def run(*arguments):
    """Return the exit code and what was said on stderr, as the shell would see them."""
    said, before = io.StringIO(), sys.argv
    sys.argv = ["diagatt", *(str(a) for a in arguments)]
    try:
        with contextlib.redirect_stderr(said), pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        sys.argv = before
    return end.value.code, said.getvalue()


def refused(*arguments, code=1):
    """Return the one sentence with which a command ended."""
    found, said = run(*arguments)
    assert found == code, said
    assert said.startswith("error: ")
    assert said.count("\n") == 1, said
    return said


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    """Scores need no exact intervals here: what happens to files is tested."""
    few = partial(resampling.bootstrap_intervals, n_draws=10)
    monkeypatch.setattr(resampling, "bootstrap_intervals", few)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Samples, the same samples as a store, and a model."""
    folder = tmp_path_factory.mktemp("outputs")
    data = simulate.regression(60, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
    np.savez(folder / "d.npz", X=np.asarray(data.X.to_padded()[0]), y=data.y)
    RowStore.from_rows(folder / "store", data.X, data.y, shard_mib=0.001)
    assert run(*COMMANDS["fit"](None, folder / "d.npz", folder / "m"))[0] == 0
    return folder


def content(folder):
    """Return every file below a folder, hidden ones included, with its bytes."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---------------------------------------------------------------------- inputs


@every_command
def test_a_dash_is_no_name_of_an_output(command, work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused(*COMMANDS[command](work / "m", work / "d.npz", "-"))
    kind = "folder" if command == "store" else "file"
    assert f"{OUTPUT[command]} - is no name of a {kind}: give one." in said
    assert not os.path.lexists(tmp_path / "-")


def spelled(path, spelling):
    """Return another name of a file."""
    if spelling == "plain":
        return path
    if spelling == "relative":
        return Path("..") / path.parent.name / path.name
    if spelling == "through a linked folder":
        (path.parent / "folder").symlink_to(path.parent)
        return path.parent / "folder" / path.name
    link = path.with_name("link.npz")
    link.symlink_to(path) if spelling == "symlink" else link.hardlink_to(path)
    return link


@pytest.mark.parametrize(
    "spelling", ["plain", "relative", "symlink", "hard link", "through a linked folder"]
)
@pytest.mark.parametrize(
    ("command", "read"), [(name, read) for name, reads in READ.items() for read in reads]
)
@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)], ids=["", "overwrite"])
def test_an_output_that_is_an_input_is_refused(
    command, read, spelling, overwrite, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    files = {"DATA": tmp_path / "d.npz", "MODEL": tmp_path / "m"}
    for path in files.values():
        path.write_bytes(b"years of work")  # never read: the refusal comes before any work
    before = content(tmp_path)
    out = spelled(files[read], spelling)
    said = refused(*COMMANDS[command](files["MODEL"], files["DATA"], out), *overwrite)
    assert f"{OUTPUT[command]} {out} is the same as {read} {files[read]}" in said
    assert all(path.read_bytes() == old for path, old in before.items())


@every_command
@pytest.mark.parametrize("inside", ["", "new", "shard-00000.arrow"])
def test_a_store_that_is_read_is_not_written_to(command, inside, work):
    before = content(work)
    out = work / "store" / inside
    said = refused(*COMMANDS[command](work / "m", work / "store", out), "--overwrite")
    assert f"{OUTPUT[command]} {out} {'lies in' if inside else 'is the same as'} DATA" in said
    assert content(work) == before


def test_a_folder_that_contains_an_input_is_refused(work):
    for arguments in (
        ("predict", work / "m", work / "store", "-o", work),
        ("store", "write", work, work / "d.npz", "--overwrite"),
    ):
        assert f" {work} contains " in refused(*arguments)


def test_a_checkpoint_is_neither_the_data_nor_the_model(work, tmp_path):
    fit = ("fit", work / "store", "-o", tmp_path / "m", "--checkpoint")
    for state, said in {
        work / "store": "is the same as DATA",
        work / "store" / "state": "lies in DATA",
        tmp_path / "m": "is the same as --output",
        tmp_path / "none" / "state": "make the folder",
    }.items():
        found = refused(*fit, state)
        assert said in found
        assert str(state) in found
    assert not content(tmp_path)


# ---------------------------------------------------------------------- existing outputs


@every_command
def test_an_existing_output_is_replaced_only_when_asked(command, work, tmp_path):
    out = tmp_path / ENDINGS[command]
    arguments = COMMANDS[command](work / "m", work / "d.npz", out)
    assert run(*arguments)[0] == 0
    if command != "store":
        out.write_bytes(b"years of work")
    before, inode = content(tmp_path), out.stat().st_ino
    said = refused(*arguments)
    assert f"{OUTPUT[command]} {out} exists: pass --overwrite to replace it" in said
    assert content(tmp_path) == before
    assert run(*arguments, "--overwrite")[0] == 0
    assert out.stat().st_ino != inode  # a new file under the old name, never half of either
    assert (content(tmp_path) == before) == (command == "store")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


@every_file
def test_a_folder_is_not_an_output_file(command, work, tmp_path):
    out = tmp_path / "p.csv"
    out.mkdir()
    said = refused(*COMMANDS[command](work / "m", work / "d.npz", out), "--overwrite")
    assert f"--output {out} is not a file" in said


@every_command
def test_a_link_to_nothing_is_an_existing_output(command, work, tmp_path):
    out = tmp_path / "p.csv"
    out.symlink_to(tmp_path / "disk-that-is-not-mounted")
    said = refused(*COMMANDS[command](work / "m", work / "d.npz", out))
    assert "exists: pass --overwrite" in said


def test_reports_of_a_study_replace_no_page_of_others(tmp_path):
    (tmp_path / "README.md").write_text("years of work")
    for action in ("run", "report"):
        said = refused("study", action, "table1", "--store", tmp_path)
        assert f"{tmp_path / 'README.md'} exists, and {tmp_path} holds no results" in said
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "years of work"
    assert run("study", "report", "table1", "--store", tmp_path, "--overwrite")[0] == 0


# ---------------------------------------------------------------------- places


def no_place(tmp_path, where):
    if where == "missing":
        return tmp_path / "none" / "p.csv"
    if where == "too long":
        return tmp_path / ("p" * 245 + ".csv")
    (tmp_path / "file").write_text("not a folder")
    return tmp_path / "file" / "p.csv"


@every_command
@pytest.mark.parametrize("where", ["missing", "in a file", "too long"])
def test_a_place_that_cannot_be_written_is_an_error_before_the_work(command, where, tmp_path):
    out = no_place(tmp_path, where)
    data = tmp_path / "d.npz"
    data.write_bytes(b"never read")
    before = content(tmp_path)
    assert f"{out} cannot be written: " in refused(*COMMANDS[command](data, data, out))
    assert content(tmp_path) == before


@every_command
def test_a_folder_without_permission_is_an_error_before_the_work(command, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    data = tmp_path / "d.npz"
    said = refused(*COMMANDS[command](data, data, tmp_path / "p.csv"))
    assert f"{tmp_path / 'p.csv'} cannot be written: {tmp_path} is not writable" in said


def test_folders_of_parts_and_results_are_made_but_not_in_files(work, tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    for arguments in (
        ("predict", work / "m", work / "store", "-o", file / "a" / "b"),
        ("study", "run", "table1", "--store", file / "a" / "b"),
        ("study", "report", "table1", "--store", file / "a" / "b"),
    ):
        assert f"{file} is not a folder" in refused(*arguments)
    assert run("predict", work / "m", work / "store", "-o", tmp_path / "a" / "b")[0] == 0


@pytest.mark.parametrize("name", ["p.txt", "p"])
def test_an_ending_that_is_not_known_is_an_error_before_the_work(name, tmp_path):
    said = refused("predict", tmp_path / "no-model", tmp_path / "d.npz", "-o", tmp_path / name)
    assert "predictions are written as .csv, .jsonl or .parquet" in said


# ---------------------------------------------------------------------- failures


def failing(error):
    """Return an ``open`` whose files take half of the first content and then fail."""

    class Failing(io.FileIO):
        def write(self, content):
            super().write(content[: len(content) // 2])
            raise error

    return lambda path, mode: Failing(path, mode.replace("b", ""))


FAILURES = {
    "disk full": (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 1, "No space left on device"),
    "interrupted": (KeyboardInterrupt(), 130, "interrupted"),
}


@every_command
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("old", [False, True], ids=["new", "replaced"])
def test_a_failure_leaves_the_old_files_and_nothing_else(
    command, failure, old, work, tmp_path, monkeypatch
):
    error, code, reason = FAILURES[failure]
    out = tmp_path / ENDINGS[command]
    arguments = COMMANDS[command](work / "m", work / "d.npz", out)
    if old:
        assert run(*arguments)[0] == 0
    before = content(tmp_path)
    monkeypatch.setattr("diagatt.files.open", failing(error), raising=False)
    said = refused(*arguments, "--overwrite", code=code)
    assert reason in said
    assert str(out if command != "store" or code == 130 else tmp_path) in said
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == [out.name] * old


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_prediction_of_a_store_is_completed(failure, work, tmp_path, monkeypatch):
    error, code, reason = FAILURES[failure]
    arguments = ("predict", work / "m", work / "store", "-o", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr("diagatt.files.open", failing(error), raising=False)
        said = refused(*arguments, code=code)
    assert reason in said
    assert str(tmp_path / "out") in said
    assert not content(tmp_path)
    assert run(*arguments)[0] == 0
    assert len(list((tmp_path / "out").glob("part-*"))) == len(RowStore(work / "store").shards)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_report_of_a_study_is_one_sentence(failure, tmp_path, monkeypatch):
    error, code, reason = FAILURES[failure]
    monkeypatch.setattr("diagatt.files.open", failing(error), raising=False)
    said = refused("study", "report", "table1", "--store", tmp_path / "results", code=code)
    assert reason in said
    assert str(tmp_path / "results") in said
    assert not content(tmp_path)


def test_an_interrupt_after_the_model_is_written_says_so(work, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("diagatt.commands.evaluate.scored", interrupt)
    arguments = COMMANDS["fit"](None, work / "d.npz", tmp_path / "m")
    said = refused(*arguments, "--split", 0.5, code=130)
    assert said == f"error: interrupted after {tmp_path / 'm'} was written.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_an_interrupt_outside_of_the_work_is_one_sentence(monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupt)
    with pytest.raises(SystemExit) as end:
        __main__.main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "error: interrupted.\n"
