"""One tensor of a file that ``torch.save`` wrote, read without unpickling anything.

Such a file is a ZIP archive: ``data.pkl`` says which storage the tensor uses and how, ``data/0``
holds its bytes. A pickle is a program that can call any function. Here its instructions are not
run but recognized one by one: a handful of them, three names, and as the result one tensor of
floats. Everything else is refused.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_TYPES = {"HalfStorage": "<f2", "FloatStorage": "<f4", "DoubleStorage": "<f8"}
_TYPES["BFloat16Storage"] = "<u2"  # unknown to NumPy: the upper half of a float32
_REBUILD, _ORDERED = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
_MOST_INSTRUCTIONS = 200
_INTEGERS = ("BININT", "BININT1", "BININT2", "LONG1")
_STRINGS = ("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class _Name:
    """A function or class that the pickle names; it is never looked up."""

    words: str


@dataclass(frozen=True)
class _Tensor:
    """What the pickle says about the tensor."""

    storage: str  # name of its bytes in the archive
    kind: str  # key of _TYPES
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class TensorFile:
    """A file with one tensor of float16, bfloat16, float32 or float64.

    Parameters
    ----------
    path : Path
        Written by ``torch.save(tensor, path)`` of torch 1.6 or later.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
        That of `read`: float32 for bfloat16.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                names = [n for n in archive.namelist() if n.endswith("/data.pkl")]
                if len(names) != 1:
                    raise ValueError("it has no data.pkl")
                self._folder = names[0].removesuffix("data.pkl")
                order = f"{self._folder}byteorder"
                if order in archive.namelist() and archive.read(order) != b"little":
                    raise ValueError("its bytes are in big-endian order")
                self._tensor = _recognized(archive.read(names[0]))
        except (ValueError, zipfile.BadZipFile, KeyError, IndexError) as error:
            raise ValueError(
                f"{path} cannot be read safely ({error}): it must hold one tensor of floats, saved "
                "by torch.save(features, path) of torch 1.6 or later. Save the features as .npy or "
                ".h5."
            ) from error
        self.shape = self._tensor.shape
        wide = self._tensor.kind == "BFloat16Storage"
        self.dtype = np.dtype("float32" if wide else _TYPES[self._tensor.kind])

    def read(self) -> np.ndarray:
        """Return the tensor."""
        tensor = self._tensor
        kind = np.dtype(_TYPES[tensor.kind])
        with zipfile.ZipFile(self.path) as archive:
            entry = archive.getinfo(f"{self._folder}data/{tensor.storage}")
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{self.path} is compressed, as torch.save never writes it.")
            flat = np.frombuffer(archive.read(entry), kind)
        last = tensor.start
        last += sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True))
        if math.prod(tensor.shape) == 0 or not 0 <= last < len(flat):
            raise ValueError(
                f"{self.path} is damaged: its tensor lies outside its {len(flat)} numbers."
            )
        view = np.lib.stride_tricks.as_strided(
            flat[tensor.start :], tensor.shape, [s * kind.itemsize for s in tensor.strides]
        )
        if kind == np.uint16:
            return (view.astype(np.uint32) << 16).view(np.float32)
        return np.ascontiguousarray(view)


def _recognized(program: bytes) -> _Tensor:
    """Follow the instructions of a pickle as far as they describe a tensor."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for count, (code, argument, _) in enumerate(pickletools.genops(program)):
        if count > _MOST_INSTRUCTIONS:
            raise ValueError("its pickle is longer than that of one tensor")
        name = code.name
        if name in ("PROTO", "FRAME"):
            continue
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[int(argument)] = stack[-1]  # type: ignore[arg-type]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument)])  # type: ignore[arg-type]
        elif name in _INTEGERS or name in _STRINGS:
            stack.append(argument)
        elif name in ("NEWTRUE", "NEWFALSE"):
            stack.append(name == "NEWTRUE")
        elif name == "GLOBAL":
            stack.append(_named(str(argument)))
        elif name == "STACK_GLOBAL":
            what, module = stack.pop(), stack.pop()
            stack.append(_named(f"{module} {what}"))
        elif name == "MARK":
            stack.append(_Name("mark"))
        elif name == "TUPLE":
            start = len(stack) - 1 - stack[::-1].index(_Name("mark"))
            stack[start:] = [tuple(stack[start + 1 :])]
        elif name in _TUPLES:
            size = _TUPLES[name]
            items = tuple(stack[len(stack) - size :])
            stack[len(stack) - size :] = [items]
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_called(function, arguments))
        elif name == "STOP":
            break
        else:
            raise ValueError(f"its pickle has the instruction {name}")
    if len(stack) != 1 or not isinstance(stack[0], _Tensor):
        raise ValueError("it holds something other than one tensor")
    return stack[0]


def _named(words: str) -> _Name:
    module, _, name = words.partition(" ")
    if words not in (_REBUILD, _ORDERED) and not (module == "torch" and name in _TYPES):
        raise ValueError(f"it names {words.replace(' ', '.')}")
    return _Name(words)


def _storage(described: Any) -> tuple[str, str]:
    """Return the kind and the name of a storage."""
    word, kind, name, _, _ = described
    known = isinstance(kind, _Name) and kind.words.removeprefix("torch ") in _TYPES
    if word != "storage" or not known or not str(name).isdigit():
        raise ValueError("its tensor has no storage of floats")
    return kind.words.removeprefix("torch "), str(name)


def _called(function: Any, arguments: Any) -> Any:
    """Return what a call that is allowed describes; nothing is called."""
    if function == _Name(_ORDERED) and arguments == ():
        return _Name("no hooks")
    if function != _Name(_REBUILD):
        raise ValueError("its pickle calls something other than the constructor of tensors")
    (kind, name), start, shape, strides, _, hooks = arguments[:6]
    numbers = (start, *shape, *strides)
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers)
    if not whole or len(shape) != len(strides) or hooks != _Name("no hooks"):
        raise ValueError("its tensor is not described by whole numbers")
    return _Tensor(name, kind, start, tuple(shape), tuple(strides))
