"""Files of samples: tables of matrices, long tables, arrays, texts, images.

========================================  ========================================
file                                      what a sample is
========================================  ========================================
Parquet, Feather; ``--rows column``       a cell that holds a list of rows
any table; ``--sample column``            the lines with the same id, one a row
NPZ                                       ``X`` (n, p, d), or ``values``, ``offsets``
any table; ``--text column``              the words of a text
any table; ``--image column``             the patches of the image at a path
a folder that ``diagatt store`` wrote     a sample of the store
========================================  ========================================

Tables are CSV, TSV, JSONL, Parquet or Feather.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Columns", "Inputs", "read_inputs"]

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".feather", ".arrow")


@dataclass(frozen=True)
class Columns:
    """Which columns of a table mean what; kept in the model file, so that they are said once."""

    rows: str | None = None
    sample: str | None = None
    text: str | None = None
    image: str | None = None
    target: str | None = None
    covariates: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def asdict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def fromdict(cls, stored: dict[str, Any]) -> Columns:
        """Back from JSON."""
        restored: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()
        }
        return cls(**restored)


@dataclass(frozen=True)
class Inputs:
    """Samples of a file.

    Attributes
    ----------
    kind : {"rows", "text", "image", "store"}
    X : RaggedRows, list of str, list of paths, or RowStore
    y : array of shape (n,), or None
    covariates : array of shape (n, q), or None
    ids : list of str
    columns : Columns
        With what was found out filled in.
    """

    kind: str
    X: Any
    y: np.ndarray | None
    covariates: np.ndarray | None
    ids: list[str]
    columns: Columns = field(default_factory=Columns)

    def __len__(self) -> int:
        return len(self.X)

    def take(self, samples: np.ndarray) -> Inputs:
        """These samples, in this order."""
        X = self.X[samples] if self.kind in ("rows", "store") else [self.X[i] for i in samples]
        y = None if self.y is None else self.y[samples]
        covariates = None if self.covariates is None else self.covariates[samples]
        return Inputs(self.kind, X, y, covariates, [self.ids[i] for i in samples], self.columns)

    def in_memory(self) -> Inputs:
        """Samples of a store as rows; others as they are."""
        if self.kind != "store":
            return self
        rows, covariates = self.X.to_rows(), self.X.covariates()
        return Inputs("rows", rows, self.y, covariates, self.ids, self.columns)


def read_inputs(path: Path, columns: Columns, *, need_target: bool = False) -> Inputs:
    """Read the samples of a file.

    Parameters
    ----------
    path : Path
    columns : Columns
    need_target : bool
        Whether a file without the target column is an error; otherwise it has no responses.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        return _read_store(path, need_target)
    if path.suffix == ".npz":
        found = _read_npz(path, columns)
        known = found.y is not None
    else:
        table = _read_table(path)
        known = columns.target in table.column_names
    if need_target and not known:
        what = f"has no column {columns.target!r}" if columns.target else "needs --target COLUMN"
        raise ValueError(f"{path} {what}: the response must be known here.")
    return found if path.suffix == ".npz" else _from_table(table, path, columns)


def _read_store(path: Path, need_target: bool) -> Inputs:
    from diagatt.stores import RowStore

    store = RowStore(path)
    if need_target and not store.has_response:
        raise ValueError(f"{path} holds no responses: they must be known here.")
    ids = [str(i) for i in range(len(store))]
    return Inputs("store", store, store.responses(), None, ids)


def _read_npz(path: Path, columns: Columns) -> Inputs:
    from diagatt.ragged import RaggedRows

    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    if "X" in found:
        X = RaggedRows.coerce(found["X"])
    elif {"values", "offsets"} <= set(found):
        X = RaggedRows(found["values"], found["offsets"])
    else:
        raise ValueError(f"{path} needs an array X, or values and offsets; it has {list(found)}.")
    y = found.get(columns.target or "y")
    ids = [str(i) for i in found.get("ids", range(len(X)))]
    return Inputs("rows", X, y, found.get("covariates"), ids, columns)


def _read_table(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv, feather, json, parquet

    try:
        if path.suffix in (".csv", ".tsv"):
            parse = csv.ParseOptions(
                delimiter="\t" if path.suffix == ".tsv" else ",", newlines_in_values=True
            )
            # Only an empty unquoted cell is missing: "NA" and "null" are words.
            convert = csv.ConvertOptions(
                null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            return csv.read_csv(path, parse_options=parse, convert_options=convert)
        if path.suffix in (".jsonl", ".ndjson"):
            return json.read_json(path)
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        if path.suffix in (".feather", ".arrow"):
            return feather.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    raise ValueError(f"{path}: unknown kind of file; give one of {', '.join([*TABLES, '.npz'])}.")


def _from_table(table: Any, path: Path, columns: Columns) -> Inputs:
    kinds = [k for k in ("rows", "sample", "text", "image") if getattr(columns, k)]
    if len(kinds) > 1:
        raise ValueError(f"say one of {', '.join('--' + k for k in kinds)}, not several.")
    if not kinds:
        columns = _guess(table, path, columns)
        kinds = ["rows"]
    for name in (getattr(columns, kinds[0]), *columns.covariates, *columns.features):
        _require(table, path, name)
    if table.num_rows == 0:
        raise ValueError(f"{path} has no lines.")
    if kinds[0] == "sample":
        return _long(table, path, columns)
    X: Any
    ids = [str(i) for i in range(table.num_rows)]
    if kinds[0] == "rows":
        from diagatt.ragged import RaggedRows

        X = RaggedRows.from_arrow(table[columns.rows])
    else:
        X = _strings(table, path, str(getattr(columns, kinds[0])))
        if kinds[0] == "image":
            ids, X = X, [path.parent / name for name in X]
    y = _response(table, path, columns.target)
    covariates = _covariates(table, path, columns.covariates)
    return Inputs(kinds[0], X, y, covariates, ids, columns)


def _guess(table: Any, path: Path, columns: Columns) -> Columns:
    """A table with one column of lists needs no option."""
    from dataclasses import replace

    nested = [f.name for f in table.schema if hasattr(f.type, "value_type")]
    if len(nested) == 1:
        return replace(columns, rows=nested[0])
    raise ValueError(
        f"{path}: say what a sample is, with --text, --image, --rows or --sample COLUMN; the "
        f"columns are {', '.join(table.column_names)}."
    )


def _long(table: Any, path: Path, columns: Columns) -> Inputs:
    """One line a row; responses and covariates must be the same in all lines of a sample."""
    from diagatt.ragged import RaggedRows

    known = {columns.sample, columns.target, *columns.covariates}
    features = list(columns.features) or [c for c in table.column_names if c not in known]
    X, ids = RaggedRows.from_frame(table, str(columns.sample), features)
    own = np.asarray(table[columns.sample].to_pylist())
    first = {value: i for i, value in reversed(list(enumerate(own.tolist())))}
    lines = np.array([first[value] for value in ids.tolist()])
    place = {value: k for k, value in enumerate(ids.tolist())}
    sample = np.array([place[value] for value in own.tolist()])

    def per_sample(values: np.ndarray, name: str) -> np.ndarray:
        wrong = np.flatnonzero(values != values[lines][sample])
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(
                f"{path}, line {i + 2}: {name} is {values[i]}, but sample {own[i]} has "
                f"{values[lines][sample[i]]} before: it must be the same in all its lines."
            )
        return values[lines]

    y = _response(table, path, columns.target)
    y = None if y is None else per_sample(y, str(columns.target))
    covariates = None
    if columns.covariates:
        parts = [_numbers(table, path, name) for name in columns.covariates]
        covariates = np.column_stack(
            [per_sample(v, n) for v, n in zip(parts, columns.covariates, strict=True)]
        )
    return Inputs("rows", X, y, covariates, [str(i) for i in ids], columns)


def _require(table: Any, path: Path, name: str) -> None:
    if name not in table.column_names:
        raise ValueError(f"{path} has no column {name!r}; it has {', '.join(table.column_names)}.")


def _strings(table: Any, path: Path, name: str) -> list[str]:
    values = table[name].to_pylist()
    for i, value in enumerate(values):
        if value is None:
            raise ValueError(f"{path}, line {i + 2}: {name!r} is empty: drop the line or fill it.")
    return [str(value) for value in values]


def _response(table: Any, path: Path, name: str | None) -> np.ndarray | None:
    if name is None or name not in table.column_names:
        return None
    values = table[name].to_pylist()
    for i, value in enumerate(values):
        if value is None:
            raise ValueError(f"{path}, line {i + 2}: {name!r} is empty: drop the line or fill it.")
    return np.asarray(values)


def _covariates(table: Any, path: Path, names: tuple[str, ...]) -> np.ndarray | None:
    return np.column_stack([_numbers(table, path, n) for n in names]) if names else None


def _numbers(table: Any, path: Path, name: str) -> np.ndarray:
    try:
        return np.asarray(table[name].to_pylist(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: covariate {name!r} must hold numbers ({error}).") from error
