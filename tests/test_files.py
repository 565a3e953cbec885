"""Files and folders that are whole or not there; nothing of somebody else's is deleted."""

import subprocess
import sys

import pytest

from diagatt.files import write_atomically


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
