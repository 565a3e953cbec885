"""New samples: every container, every hostile value, every method of every fitted model."""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import torch

from benchmarks.battery.judge import Case, equal, finite
from benchmarks.battery.models import METHODS, NAMES, D, X, estimators, expected, fitted, methods
from diagatt import RaggedRows
from diagatt.persistence import registered

Matrices = list[Any]
SAMPLES = r"X\b|sample|row|column|feature|values|shape"


def boxed(matrices: Matrices) -> np.ndarray:
    """Put matrices into an array of objects."""
    box = np.empty(len(matrices), dtype=object)
    for i, matrix in enumerate(matrices):
        box[i] = matrix
    return box


def _names(matrix: Any) -> list[str]:
    return [*NAMES, "more", "yet more"][: matrix.shape[1]]


def _polars(matrix: Any) -> pl.DataFrame:
    if any(isinstance(entry, pd.Timestamp | pd.Timedelta) for entry in np.ravel(matrix)):
        raise TypeError("polars would make a number of it")
    if any(isinstance(entry, decimal.Decimal) and entry.is_snan() for entry in np.ravel(matrix)):
        raise TypeError("polars would panic")
    return pl.DataFrame(matrix.tolist(), schema=_names(matrix), orient="row", strict=True)


def _long(matrices: Matrices) -> RaggedRows:
    if any(len(m) == 0 for m in matrices):
        raise ValueError("a long table has no empty samples")
    lines = np.concatenate(matrices)
    table = {"id": np.repeat(np.arange(len(matrices)), [len(m) for m in matrices])}
    table |= dict(zip(_names(lines), lines.T, strict=True))
    return RaggedRows.from_frame(table, "id")[0]


# A container that cannot hold the matrices raises an error of its own, and the case does not exist.
PLAIN: dict[str, Callable[[Matrices], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": boxed,
    "nested lists": lambda ms: [m.tolist() for m in ms],
    "RaggedRows": lambda ms: RaggedRows.from_samples(ms),
    "tensors": lambda ms: [torch.tensor(m) for m in ms],
    "nested tensor": lambda ms: torch.nested.nested_tensor([torch.tensor(m) for m in ms]),
    "jagged tensor": lambda ms: torch.nested.nested_tensor(
        [torch.tensor(m) for m in ms], layout=torch.jagged
    ),
    "arrow column": lambda ms: pa.array([m.tolist() for m in ms], pa.list_(pa.list_(pa.float64()))),
    "arrow floats32": lambda ms: pa.chunked_array(
        [pa.array([m.tolist()], pa.large_list(pa.list_(pa.float32()))) for m in ms]
    ),
    "float32": lambda ms: _cast(ms, np.float32),
    "float16": lambda ms: _cast(ms, np.float16),
    "big endian": lambda ms: _cast(ms, ">f8"),
    "long double": lambda ms: _cast(ms, np.longdouble),
    "columns first": lambda ms: [np.asfortranarray(m) for m in ms],
    "backwards": lambda ms: [np.ascontiguousarray(m[::-1, ::-1])[::-1, ::-1] for m in ms],
    "strided": lambda ms: [np.repeat(m, 2, axis=1)[:, ::2] for m in ms],
    "read only": lambda ms: [_locked(m) for m in ms],
    "no mask": lambda ms: [np.ma.masked_array(np.ma.getdata(m)) for m in ms if _unmasked(ms)],
    "numbered frames": lambda ms: [pd.DataFrame(m) for m in ms],
    "Python objects": lambda ms: [m.astype(object) for m in ms],
}
NAMED: dict[str, Callable[[Matrices], Any]] = {
    "pandas": lambda ms: [pd.DataFrame(m, columns=_names(m)) for m in ms],
    "polars": lambda ms: [_polars(m) for m in ms],
    "arrow tables": lambda ms: [pa.table(dict(zip(_names(m), m.T, strict=True))) for m in ms],
    "long table": _long,
    "named RaggedRows": lambda ms: RaggedRows.from_samples(ms).with_names(_names(ms[0])),
}
KEEP_MASKS = ("list", "tuple", "objects", "pandas", "RaggedRows")


def _cast(matrices: Matrices, kind: Any) -> Matrices:
    if any(m.dtype != np.float64 for m in matrices):
        raise TypeError("what is spoiled would be repaired, or spoiled otherwise")
    with np.errstate(over="ignore"):
        return [m.astype(kind) for m in matrices]


def _locked(matrix: np.ndarray) -> np.ndarray:
    matrix = matrix.copy()
    matrix.setflags(write=False)
    return matrix


def _unmasked(matrices: Matrices) -> bool:
    if any(np.ma.isMaskedArray(m) for m in matrices):
        raise TypeError("the container has no masks")
    return True


def put(value: Any, kind: Any = float) -> Callable[[Matrices], Matrices]:
    """Return what puts a value into one entry of one sample."""

    def spoil(matrices: Matrices) -> Matrices:
        copies = [m.astype(kind) for m in matrices]
        copies[7][1, 2] = value
        return copies

    return spoil


def masked(matrices: Matrices) -> Matrices:
    """Hide one entry."""
    copies = [np.ma.masked_array(m, mask=np.zeros(m.shape)) for m in matrices]
    copies[7][1, 2] = np.ma.masked
    return copies


def _in_one(change: Callable[[Any], Any]) -> Callable[[Matrices], Matrices]:
    return lambda ms: [change(m) if i == 7 else m for i, m in enumerate(ms)]


# Every entry is changed, or one, or one sample; True if the samples must be refused.
HAZARDS: dict[str, tuple[Callable[[Matrices], Matrices], bool | None]] = {
    "nothing": (lambda ms: [m.copy() for m in ms], False),
    "NaN": (put(np.nan), True),
    "infinity": (put(np.inf), True),
    "minus infinity": (put(-np.inf), True),
    "masked": (masked, True),
    "None": (put(None, object), True),
    "pandas.NA": (put(pd.NA, object), True),
    "a word": (put("1", object), True),
    "bytes": (put(b"1", object), True),
    "a date": (put(pd.Timestamp("2020-01-01"), object), True),
    "a duration": (put(pd.Timedelta("1D"), object), True),
    "NaT": (put(pd.NaT, object), True),
    "a list": (put([1.0], object), True),
    "a signalling NaN": (put(decimal.Decimal("sNaN"), object), True),
    "complex": (lambda ms: [m + 1j for m in ms], True),
    "an imaginary entry": (put(1j, object), True),
    "words": (lambda ms: [m.astype(str) for m in ms], True),
    "dates": (lambda ms: [m.astype("M8[D]") for m in ms], True),
    "durations": (lambda ms: [m.astype("m8[s]") for m in ms], True),
    "Decimal": (lambda ms: [np.vectorize(decimal.Decimal)(m) for m in ms], None),
    "Fraction": (lambda ms: [np.vectorize(fractions.Fraction)(m) for m in ms], None),
    "huge": (put(1e300), None),
    "beyond float64": (put(10**400, object), True),
    "tiny": (put(1e-300), None),
    "too few features": (lambda ms: [m[:, : D - 1] for m in ms], True),
    "too many features": (lambda ms: [np.hstack([m, m[:, :1]]) for m in ms], True),
    "one sample with other features": (_in_one(lambda m: m[:, : D - 1]), True),
    "an empty sample": (_in_one(lambda m: m[:0]), True),
    "a vector": (_in_one(lambda m: m[0]), True),
    "a cube": (_in_one(lambda m: m[None]), True),
    "no features": (lambda ms: [m[:, :0] for m in ms], True),
    "no samples": (lambda ms: ms[:0], True),
    "sparse": (lambda ms: [scipy.sparse.csr_matrix(m) for m in ms], True),
}
_FRAME = pd.DataFrame({"who": ["p", "p", "q"], **{name: [1.0, 2.0, 3.0] for name in NAMES}})
NONSENSE: dict[str, Any] = {
    "None": None,
    "a word": "samples",
    "a number": 3.0,
    "a dictionary": {"X": 1},
    "a set": {1, 2},
    "an object": object(),
    "True": True,
    "a function": len,
    "one matrix": X[0],
    "one vector": X[0][0],
    "four axes": np.zeros((2, 2, 2, D)),
    "a series": pd.Series([1.0, 2.0]),
    "a list of numbers": [1.0, 2.0],
    "a list of words": ["a", "b"],
    "a generator": (m for m in ()),
    "bytes": b"123",
    "an empty array": np.zeros((0, 2, D)),
    "an empty frame": pd.DataFrame(),
    "a grouped frame": _FRAME.groupby("who"),
    "pairs of names and frames": list(_FRAME.groupby("who")),
    "a lazy frame": pl.DataFrame(_FRAME).lazy(),
}


def cases() -> Iterator[Case]:
    """Yield the cases of new samples."""
    for name, _ in estimators():
        for family, containers, named in (("arrays", PLAIN, False), ("frames", NAMED, True)):
            for container in containers:
                for hazard, (_, refuses) in HAZARDS.items():
                    made = _made(container, hazard)
                    if made is not None:
                        yield from _asked(
                            family, name, named, f"{container} · {hazard}", made, refuses
                        )
        yield from _permutations(name)
        for what, value in NONSENSE.items():
            yield from _asked("nonsense", name, False, what, value, True)


@cache
def _made(container: str, hazard: str) -> Any:
    """Return the samples; None if the container cannot hold them."""
    build, spoil = (PLAIN | NAMED)[container], HAZARDS[hazard][0]
    if hazard == "masked" and container not in KEEP_MASKS:
        return None
    try:
        made = build(spoil(X))
        len(made)
    except Exception:  # of NumPy, pandas, polars, pyarrow, torch: whatever they say
        return None
    return made


def _asked(
    family: str, name: str, named: bool, what: str, made: Any, refuses: bool | None
) -> Iterator[Case]:
    for method in _methods(name):
        yield Case(
            family,
            f"{name} · {what} · {method}",
            lambda method=method: _ask(name, named, False, method, made),
            refuses,
            _oracle(name, method, named, what),
            SAMPLES,
        )


def _oracle(name: str, method: str, named: bool, what: str) -> Callable[[Any], bool]:
    if what.endswith(("huge", "tiny")):
        return finite
    return lambda answer: equal(answer, expected(name, method, named))


def _ask(name: str, named: bool, saved: bool, method: str, made: Any) -> Any:
    return dict(methods(fitted(name, named, saved)))[method](made)


def _methods(name: str) -> list[str]:
    kind = registered()[name.split("(")[0]]
    return [method for method in METHODS if hasattr(kind, method)]


def _permutations(name: str) -> Iterator[Case]:
    """Yield frames whose columns are permuted, renamed, missing, doubled or more than expected."""
    turned = [2, 0, 1]
    makes = {
        "pandas": lambda m, names: pd.DataFrame(m, columns=names),
        "polars": lambda m, names: pl.DataFrame(m.tolist(), schema=names, orient="row"),
        "arrow": lambda m, names: pa.Table.from_arrays([pa.array(c) for c in m.T], names),
    }
    tables: dict[str, tuple[Callable[[int, np.ndarray], tuple], bool]] = {
        "permuted": (lambda i, m: (m[:, turned], [NAMES[k] for k in turned]), False),
        "permuted in some": (
            lambda i, m: (m[:, turned], [NAMES[k] for k in turned]) if i % 3 else (m, list(NAMES)),
            False,
        ),
        "renamed": (lambda i, m: (m, ["age", "Size", "007"]), True),
        "renamed in one": (lambda i, m: (m, ["age", "Size" if i == 5 else "size", "007"]), True),
        "missing": (lambda i, m: (m[:, :2], list(NAMES[:2])), True),
        "one more": (lambda i, m: (m[:, [0, 1, 2, 0]], [*NAMES, "more"]), True),
        "one more in one": (
            lambda i, m: (m[:, [0, 1, 2, 0]], [*NAMES, "more"]) if i == 5 else (m, list(NAMES)),
            True,
        ),
        "doubled": (lambda i, m: (m[:, [0, 1, 1]], ["age", "size", "size"]), True),
        "doubled more": (lambda i, m: (m[:, [0, 1, 2, 2]], [*NAMES, "007"]), True),
        "spaces": (lambda i, m: (m, [f"{n} " for n in NAMES]), True),
        "numbers as names": (lambda i, m: (m, ["age", "size", 7]), True),
        "no names in one": (lambda i, m: (m, None if i == 5 else list(NAMES)), True),
    }
    for container, make in makes.items():
        for table, (change, refuses) in tables.items():
            try:
                made = [
                    m if names is None else make(m, names)
                    for m, names in (change(i, m) for i, m in enumerate(X))
                ]
            except Exception:  # polars and arrow refuse some of these names themselves
                continue
            for saved in (False, True):
                for method in _methods(name):
                    words = (
                        f"{name} · {container} · {table}{' · saved' if saved else ''} · {method}"
                    )
                    yield Case(
                        "names",
                        words,
                        lambda method=method, saved=saved, made=made: _ask(
                            name, True, saved, method, made
                        ),
                        refuses,
                        _oracle(name, method, True, table),
                        r"column|name",
                    )
