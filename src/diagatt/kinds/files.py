"""Files of samples, and files of models with the columns that they were fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagatt.kinds import KINDS, Columns, Inputs, Kind

if TYPE_CHECKING:
    from diagatt.kinds.tables import Table

MEMORY = 1024  # MiB


def read_inputs(
    path: Path, columns: Columns, *, need_target: bool = False, memory: float = MEMORY
) -> Inputs:
    """Read the samples of a file; `memory` are MiB that the rows of a store may take."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    for kind in KINDS.values():
        if kind.reads(path, columns):
            _refuse_what_does_nothing(path, columns, kind, memory)
            found = kind.open(path, columns, memory)
            if need_target and found.y is None:
                name = columns.target or "y"
                raise ValueError(f"{path} holds no responses {name!r}: they must be known here.")
            return found
    from diagatt.kinds.tables import Table

    _refuse_memory(path, memory)
    table = Table.read(path, text=columns.as_text)
    for name in columns.known.values() if need_target else ():
        table.column(name)
    wanted = (columns.target,) if columns.target in table.names else columns.targets
    missing = [name for name in wanted if name not in table.names]
    if len(wanted) == 1:  # " y " and "y," are the column y, unless a column is called so
        columns = replace(columns, target=wanted[0])
    if need_target and "time" not in columns.known and (missing or not wanted):
        what = f"has no column {missing[0]!r}" if missing else "needs --target COLUMN"
        there = f" It has {table.listed}.{table.hint(missing[0])}" if missing else ""
        raise ValueError(f"{path} {what}: the response must be known here.{there}")
    for kind in KINDS.values():
        for option in kind.reading:
            if option.name in columns.asked:
                said = f"--{option.name.replace('_', '-')} is for {kind.name}s"
                raise ValueError(f"{said}, but {path} is a table of another kind.")
    columns = columns if columns.asked else replace(columns, asked=_guess(table, columns))
    if len(columns.asked) > 1:
        raise ValueError(f"give one of {', '.join('--' + o for o in columns.asked)}, not several.")
    owners = {option.name: kind for kind in KINDS.values() for option in kind.columns}
    ids = (columns.id, None if columns.of_a_model else columns.groups)
    own = [name for name in ids if name is not None]
    own += columns.given.get("drop", ())
    for name in (*columns.asked.values(), *own, *columns.covariates, *columns.features):
        table.column(name)
    if len(table) == 0:
        raise ValueError(f"{path} has no lines.")
    return owners[next(iter(columns.asked))].read(table, columns)


def _refuse_what_does_nothing(path: Path, columns: Columns, kind: Kind, memory: float) -> None:
    """Refuse options of tables with a path that is no table, and a limit that would not hold."""
    for option, named in columns.given.items():
        if option not in kind.takes:
            said = f"--{option.replace('_', '-')} {','.join(named)}"
            raise ValueError(
                f"{said} is for tables, and {path} is not a table: leave it out, or give a table."
            )
    if columns.of_a_model and "offset" in columns.known:
        raise ValueError(
            f"the model knows an offset, {columns.known['offset']}, which {path} does not hold: "
            "give a table."
        )
    if not kind.bounded:
        _refuse_memory(path, memory)


def _refuse_memory(path: Path, memory: float) -> None:
    if memory != MEMORY:
        raise ValueError(
            f"--memory {memory:g} is for stores, .h5ad files and slides: {path} is read as a "
            "whole; write a store with `diagatt store write`."
        )


def _guess(table: Table, columns: Columns) -> dict[str, str]:
    for kind in KINDS.values():
        if found := kind.guess(table):
            return found
    if columns.of_a_model:
        raise ValueError(
            f"{table.name}: the model was not fitted to a table, and knows no column that names "
            "samples: write them to a store with `diagatt store write`, and give the store."
        )
    *others, last = [f"--{option.name}" for kind in KINDS.values() for option in kind.columns]
    raise ValueError(
        f"{table.name}: say what a sample is, with {', '.join(others)} or {last} COLUMN, or "
        f"--slides FOLDER if the table lists slides; the columns are {table.listed}."
    )


def save_model(model: Any, path: Path, columns: Columns) -> None:
    """Write a model with the columns it was fitted to, so that they need not be given again."""
    from diagatt import modelfile

    tensors, document = model.to_document()
    modelfile.write(path, tensors, {**_quiet(document), "columns": columns.to_json()})


def _quiet(document: Any) -> Any:
    """Return the document of a model without progress bars, which only the commands show."""
    if isinstance(document, list):
        return [_quiet(entry) for entry in document]
    if not isinstance(document, dict):
        return document
    return {k: False if (k, v) == ("verbose", True) else _quiet(v) for k, v in document.items()}


@dataclass(frozen=True)
class ModelFile:
    """A model file that was read, and whose model is not made yet.

    What a command must know before, the columns, is known without torch.
    """

    path: Path
    tensors: dict[str, Any]
    document: dict[str, Any]
    columns: Columns

    def model(self) -> Any:
        """Return the model; only the room that holds its class is imported."""
        name = self.document.get("class")
        for kind in KINDS.values():
            if name in kind.models:
                home = getattr(import_module(kind.home), name)
                return home.from_document(self.tensors, self.document, self.path)
        from diagatt.persistence import restore

        return restore(self.tensors, self.document, self.path)


def read_model_file(path: Path) -> ModelFile:
    """Read the file of any model of this library, and the columns that it was fitted to."""
    from diagatt import modelfile

    tensors, document = modelfile.read(path)
    try:
        columns = Columns.from_json(document.get("columns", {}))
        empty = document.get("parameters", {}).get("missing") == "marginalize"
        columns = replace(columns, of_a_model=True, takes_empty=empty)
    except (ValueError, AttributeError) as error:
        raise modelfile.ModelFileError(f"{path} is damaged: {error}.") from error
    return ModelFile(path, tensors, document, columns)


def load_model(path: Path) -> tuple[Any, Columns]:
    """Read any model of this library, and the columns it was fitted to."""
    found = read_model_file(path)
    return found.model(), found.columns
