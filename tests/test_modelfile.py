"""Model files: verified bytes, written whole or not at all."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save as save_tensors

from diagatt import ModelFileError, modelfile

TENSORS = {
    "W": np.arange(8.0).reshape(2, 2, 2),
    "v": np.array([1.5, -2.0], dtype=np.float32),
    "scalar": np.array(3.0),
    "empty": np.empty((0, 3)),
    "count": np.array([1, 2**40]),
    "flag": np.array([True, False]),
}
DOCUMENT = {"kind": "test", "text": 'quotes " and "sha256":"' + "0" * 64 + '"', "nested": [1, {}]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    modelfile.write(path, TENSORS, DOCUMENT)
    return path


def assert_same(read):
    tensors, document = read
    assert document == DOCUMENT
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert tensors[name].shape == tensor.shape
        np.testing.assert_array_equal(tensors[name], tensor)


def test_round_trip(path):
    assert_same(modelfile.read(path))
    assert_same(modelfile.read(str(path)))


def test_equal_contents_make_equal_files(path):
    """Safetensors alone orders its metadata anew in each call."""
    written = path.read_bytes()
    for _ in range(20):
        modelfile.write(path, TENSORS, DOCUMENT)
        assert path.read_bytes() == written


def test_arrays_that_are_not_contiguous_round_trip(tmp_path):
    array = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::2]
    modelfile.write(tmp_path / "m", {"a": array}, {})
    np.testing.assert_array_equal(modelfile.read(tmp_path / "m")[0]["a"], array)


def test_the_file_is_plain_safetensors(path):
    for name, tensor in load_file(path).items():
        np.testing.assert_array_equal(tensor, TENSORS[name])


# ---------------------------------------------------------------------- damage


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as error:
        modelfile.read(path)
    return str(error.value)


def messages(contents, monkeypatch):
    """What `read` says to each of many contents of a file, without a disk; all are refused."""
    current = [b""]
    monkeypatch.setattr(Path, "read_bytes", lambda self: current[0])
    for content in contents:
        current[0] = bytes(content)
        try:
            modelfile.read("here")
        except ModelFileError as error:
            yield str(error)
        else:
            raise AssertionError("a damaged file was read")


def bit_flips(content):
    damaged = bytearray(content)
    for bit in range(8 * len(content)):
        damaged[bit // 8] ^= 1 << bit % 8
        yield damaged
        damaged[bit // 8] ^= 1 << bit % 8


def test_every_truncation_is_refused(path, monkeypatch):
    content = path.read_bytes()
    parts = (content[:length] for length in range(len(content)))
    said = list(messages(parts, monkeypatch))
    assert len(said) == len(content)
    assert all("here" in message and "restore a copy" in message for message in said)


def test_every_single_bit_flip_is_refused(path, monkeypatch):
    content = path.read_bytes()
    said = list(messages(bit_flips(content), monkeypatch))
    assert len(said) == 8 * len(content) > 5000
    assert all("here" in message and "restore a copy" in message for message in said)


@pytest.mark.parametrize("extra", [b"\0", b"more", bytes(100)])
def test_appended_bytes_are_refused(path, extra):
    assert "checksum does not match" in refused(path, path.read_bytes() + extra)


def test_overwritten_stretches_are_refused(path):
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        start, stop = np.sort(rng.integers(0, len(content) + 1, size=2))
        noise = rng.bytes(stop - start)
        damaged = content[:start] + noise + content[stop:]
        if damaged != content:
            refused(path, damaged)


FOREIGN = {
    "empty file": b"",
    "text": b"hello, I am a text file that is longer than a header",
    "zeros": bytes(500),
    "other safetensors": save_tensors({"a": np.zeros(3)}),
    "other metadata": save_tensors({"a": np.zeros(3)}, {"format": "pt"}),
    "header is a list": (2).to_bytes(8, "little") + b"[]",
    "metadata is text": (21).to_bytes(8, "little") + b'{"__metadata__":"abc"}',
}


@pytest.mark.parametrize("what", FOREIGN)
def test_foreign_files_are_refused(path, what):
    assert "restore a copy" in refused(path, FOREIGN[what])


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        modelfile.read(tmp_path / "nothing")


# ---------------------------------------------------------------------- atomic writing


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_a_disk_error_leaves_the_old_file_and_nothing_else(path, monkeypatch, broken):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="No space left"):
        modelfile.write(path, {"other": np.ones(3)}, {})
    monkeypatch.undo()
    assert_same(modelfile.read(path))
    assert names(path.parent) == [path.name]


def test_an_unwritable_document_leaves_the_old_file(path):
    with pytest.raises(TypeError):
        modelfile.write(path, {}, {"object": object()})
    assert_same(modelfile.read(path))
    assert names(path.parent) == [path.name]


def test_a_new_file_obeys_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        modelfile.write(tmp_path / "m", TENSORS, DOCUMENT)
    finally:
        os.umask(old)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o640


def test_strays_of_dead_writers_go_and_all_else_stays(path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    stray = path.parent / f".{path.name}.{gone.pid}.0123abcd.tmp"
    alive = path.parent / f".{path.name}.{os.getpid()}.0123abcd.tmp"
    others = [
        path.parent / f".other.{gone.pid}.0123abcd.tmp",
        path.parent / f".{path.name}.notes.tmp",
        path.parent / f"{path.name}.tmp",
    ]
    for file in (stray, alive, *others):
        file.write_bytes(b"x")
    modelfile.write(path, TENSORS, DOCUMENT)
    assert not stray.exists()
    assert all(file.exists() for file in (alive, *others))
    assert_same(modelfile.read(path))


def test_names_with_special_characters(tmp_path):
    path = tmp_path / "a[1]*? ü.safetensors"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    stray = tmp_path / f".{path.name}.{gone.pid}.00000000.tmp"
    stray.write_bytes(b"x")
    modelfile.write(path, TENSORS, DOCUMENT)
    assert_same(modelfile.read(path))
    assert names(tmp_path) == [path.name]


# A writer that imports as little as it can, says when it begins, and saves until it is killed.
WRITER = """
import importlib.util, itertools, sys
import numpy as np
spec = importlib.util.spec_from_file_location("modelfile", sys.argv[1])
modelfile = importlib.util.module_from_spec(spec)
spec.loader.exec_module(modelfile)
print("ready", flush=True)
for version in itertools.count(1):
    modelfile.write(sys.argv[2], {"a": np.full(50_000, float(version))}, {"version": version})
"""


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "model.safetensors"
    modelfile.write(path, {"a": np.full(50_000, 0.0)}, {"version": 0})
    luck, strays = random.Random(0), 0
    for _ in range(40):
        command = [sys.executable, "-c", WRITER, modelfile.__file__, str(path)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(luck.uniform(0, 0.02))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        tensors, document = modelfile.read(path)
        assert (tensors["a"] == document["version"]).all()
        assert tensors["a"].shape == (50_000,)
        strays += len(names(tmp_path)) - 1
    assert strays > 0  # some kills did come in the middle of a write
    modelfile.write(path, TENSORS, DOCUMENT)
    assert names(tmp_path) == [path.name]


def test_the_document_is_readable_by_anyone_with_json(path):
    content = Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert json.loads(header["__metadata__"]["diagatt"]) == DOCUMENT
