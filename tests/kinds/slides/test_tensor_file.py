"""Tensors of torch.save are read as torch reads them, and nothing else is."""

import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

from diagatt.kinds.slides.tensor_file import TensorFile


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    "view",
    [lambda t: t, lambda t: t[3:, 1:], lambda t: t.T, lambda t: t[:, ::2]],
    ids=["whole", "part", "transposed", "every other"],
)
def test_the_same_numbers_as_torch(tmp_path, dtype, view):
    tensor = view(torch.randn(7, 6, generator=torch.Generator().manual_seed(0)).to(dtype))
    torch.save(tensor, tmp_path / "t.pt")
    file = TensorFile(tmp_path / "t.pt")
    expected = tensor.float() if dtype is torch.bfloat16 else tensor
    assert file.shape == tuple(tensor.shape)
    assert file.dtype == expected.numpy().dtype
    np.testing.assert_array_equal(file.read(), expected.numpy())


def test_newer_pickle_protocols(tmp_path):
    tensor = torch.arange(6.0).reshape(2, 3)
    torch.save(tensor, tmp_path / "t.pt", pickle_protocol=4)
    np.testing.assert_array_equal(TensorFile(tmp_path / "t.pt").read(), tensor.numpy())


class Evil:
    """Runs a function when it is unpickled."""

    def __reduce__(self):
        return print, ("owned",)


@pytest.mark.parametrize(
    "content",
    [
        {"features": torch.ones(2, 2)},
        [torch.ones(2, 2)],
        torch.ones(2, 2, dtype=torch.int64),
        torch.nn.Parameter(torch.ones(2, 2)),
        Evil(),
        (torch.ones(2, 2), Evil()),
        OrderedDict(a=1),
        "words",
    ],
    ids=["dict", "list", "integers", "parameter", "evil", "evil pair", "ordered", "words"],
)
def test_anything_else_is_refused_and_nothing_runs(tmp_path, content, capsys):
    torch.save(content, tmp_path / "t.pt")
    with pytest.raises(ValueError, match="cannot be read safely"):
        TensorFile(tmp_path / "t.pt")
    assert "owned" not in capsys.readouterr().out


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "legacy.pt").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "empty.pt").write_bytes(b"")
    torch.save(torch.ones(2), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("words.txt", "nothing")
    for name in ("legacy", "empty", "old", "other"):
        with pytest.raises(ValueError, match="cannot be read safely"):
            TensorFile(tmp_path / f"{name}.pt")


def rewritten(source, target, change):
    """Copy an archive with one of its parts changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)


def test_a_tensor_beyond_its_bytes_is_refused(tmp_path):
    torch.save(torch.ones(100, 4), tmp_path / "t.pt")
    cut = lambda name, content: content[:64] if "/data/" in name else content  # noqa: E731
    rewritten(tmp_path / "t.pt", tmp_path / "cut.pt", cut)
    with pytest.raises(ValueError, match="lies outside its 16 numbers"):
        TensorFile(tmp_path / "cut.pt").read()


def test_every_changed_byte_of_the_pickle_is_read_as_a_tensor_or_refused(tmp_path):
    torch.save(torch.arange(8.0).reshape(4, 2), tmp_path / "t.pt")
    with zipfile.ZipFile(tmp_path / "t.pt") as archive:
        name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        program = archive.read(name)
    rng = np.random.default_rng(0)
    for at in range(len(program)):
        broken = bytearray(program)
        broken[at] = rng.integers(256)
        path = tmp_path / "broken.pt"
        parts = {name: bytes(broken)}
        rewritten(tmp_path / "t.pt", path, lambda n, c, parts=parts: parts.get(n, c))
        try:
            found = TensorFile(path).read()
        except (ValueError, KeyError):
            continue
        assert found.size <= 8
        assert found.dtype.kind == "f"
