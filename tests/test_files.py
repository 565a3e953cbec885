"""Files and folders that are whole or not there; nothing of somebody else's is deleted."""

import os
import subprocess
import sys

import pytest

from diagatt.files import as_path, write_atomically


@pytest.fixture
def dead():
    """The id of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_only_temporary_files_of_dead_writers_are_deleted(tmp_path, dead):
    stray = tmp_path / f".a.{dead}.0123abcd.tmp"
    others = [
        tmp_path / name
        for name in (
            f".a.{dead}.backup.tmp",  # a name that no writer makes
            f".a.{dead}.0123ABCD.tmp",
            f".a.{dead}.0123abcde.tmp",
            f".a.7.{dead}.0123abcd.tmp",  # of a file called a.7
            f".b.{dead}.0123abcd.tmp",
            f".a.{dead}.0123abcd.tmp.txt",
        )
    ]
    for path in (stray, *others):
        path.write_text("mine")
    write_atomically(tmp_path / "a", b"content")
    assert (tmp_path / "a").read_bytes() == b"content"
    assert not stray.exists()
    assert all(path.read_text() == "mine" for path in others)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "model").write_bytes(b"old")
    (tmp_path / "link").symlink_to("model")
    (tmp_path / "ahead").symlink_to("later")
    write_atomically(tmp_path / "link", b"new")
    write_atomically(tmp_path / "ahead", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "model").read_bytes() == (tmp_path / "later").read_bytes() == b"new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ahead", "later", "link", "model"]


def test_what_is_private_stays_private(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", [None, 3, b"model", ["model"]])
def test_what_is_no_path(path):
    with pytest.raises(TypeError, match="path must be a string or a path, got "):
        as_path(path)


def test_a_path_with_a_null_character():
    with pytest.raises(ValueError, match="path must not hold a null character"):
        as_path("a\0b")


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    """`save("/dev/null")` by a user who may write there would replace the null device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="pipe is not a file: name another path"):
        write_atomically(pipe, b"content")
    assert pipe.is_fifo()
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]
