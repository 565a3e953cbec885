"""The commands with tables, options and paths that make no sense."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from benchmarks.battery.judge import Case
from benchmarks.battery.models import LABELS, NUMBERS, X, Z
from diagatt.commands.cli import app

Line = dict[str, Any]
TARGETS = {"numbers": NUMBERS, "classes": LABELS}
ROLES = ["--sample", "who", "--id", "cell", "--covariates", "sex,dose", "--solver", "likelihood"]


def lines(target: str) -> list[Line]:
    """Return a long table: patients with cells, two covariates and a response."""
    found = []
    for i, matrix in enumerate(X):
        for j, (a, b, c) in enumerate(matrix):
            beside = {"sex": Z[i, 0], "dose": Z[i, 1], "y": TARGETS[target][i]}
            found.append({"who": f"{i:03d}", "cell": f"0{j}", "a": a, "b": b, "c": c, **beside})
    return found


def as_csv(table: list[Line]) -> bytes:
    """Write lines as CSV; None is an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(table[0]) if table else ["who", "a", "y"])
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue().encode()


def cell(name: str, value: Any, line: int = 4) -> Callable[[list[Line]], bytes]:
    """Return what puts a value into one cell."""
    return lambda t: as_csv([{**one, name: value} if i == line else one for i, one in enumerate(t)])


def column(change: Callable[[Line], Line]) -> Callable[[list[Line]], bytes]:
    """Return what changes every line."""
    return lambda t: as_csv([change(one) for one in t])


def _without(name: str) -> Callable[[Line], Line]:
    return lambda one: {k: v for k, v in one.items() if k != name}


def _quoted(table: bytes) -> bytes:
    cells = [line.split(b",") for line in table.splitlines()]
    return b"\n".join(b",".join(b'"%s"' % one for one in line) for line in cells)


def _head(old: bytes, new: bytes) -> Callable[[list[Line]], bytes]:
    return lambda t: as_csv(t).replace(old, new, 1)


# What is done to the table; whether commands refuse it that need no response; and all commands.
TABLES: dict[str, tuple[Callable[[list[Line]], bytes], bool, bool]] = {
    "nothing": (as_csv, False, False),
    "permuted columns": (column(lambda one: dict(reversed(one.items()))), False, False),
    "an empty cell": (cell("b", None), True, True),
    "nan": (cell("b", "nan"), True, True),
    "inf": (cell("b", "inf"), True, True),
    "NA": (cell("b", "NA"), True, True),
    "a word": (cell("b", "high"), True, True),
    "a date": (column(lambda one: {**one, "b": "2020-01-01"}), True, True),
    "an empty covariate": (cell("dose", None), True, True),
    "a word as covariate": (cell("sex", "f"), True, True),
    "dates as covariate": (column(lambda one: {**one, "dose": "2020-01-01"}), True, True),
    "an unsteady covariate": (cell("dose", 99.5), True, True),
    "an empty sample id": (cell("who", None), True, True),
    "an empty response": (cell("y", None), True, True),
    "dates as response": (column(lambda one: {**one, "y": "2020-01-01"}), True, True),
    "no column b": (column(_without("b")), True, True),
    "no samples": (column(_without("who")), True, True),
    "no covariate": (column(_without("dose")), True, True),
    "no response": (column(_without("y")), False, True),
    "no line": (lambda t: as_csv([]), True, True),
    "one more column": (column(lambda one: {**one, "size": 1.0}), True, True),
    "doubled column": (_head(b"a,b,c", b"a,a,c"), True, True),
    "renamed column": (_head(b"a,b,c", b"a,B,c"), True, True),
    "an empty file": (lambda t: b"", True, True),
    "not a table": (lambda t: bytes(range(256)) * 4, True, True),
    "a sign for a missing response": (cell("y", "NA"), True, True),
    "a decimal comma": (cell("b", "1,5"), True, True),
    "lines counted by pandas": (column(lambda one: {"Unnamed: 0": 1, **one}), True, True),
    "a line too short": (lambda t: as_csv(t) + b"1,2\n", True, True),
    "a blank sample id": (cell("who", " "), True, True),
    "a quoted empty sample id": (lambda t: as_csv(t).replace(b"000", b'""'), True, True),
    "a byte-order mark": (lambda t: b"\xef\xbb\xbf" + as_csv(t), False, False),
    "lines of Unix": (lambda t: as_csv(t).replace(b"\r", b""), False, False),
    "all cells quoted": (lambda t: _quoted(as_csv(t)), False, False),
    "semicolons": (lambda t: as_csv(t).replace(b",", b";"), True, True),
    "a line for spreadsheets": (lambda t: b"sep=,\r\n" + as_csv(t), True, True),
    "a comment first": (lambda t: b"# exported\r\n" + as_csv(t), True, True),
    "no line of names": (lambda t: as_csv(t).split(b"\n", 1)[1], True, True),
    "spaces behind commas": (lambda t: as_csv(t).replace(b",", b", "), True, True),
    "UTF-16": (lambda t: as_csv(t).decode().encode("utf-16"), True, True),
    "Latin-1": (lambda t: as_csv(t).replace(b"000", b"p\xe9"), True, True),
    "a page of HTML": (lambda t: b"<!DOCTYPE html><p>404</p>", True, True),
    "an old workbook": (lambda t: b"\xd0\xcf\x11\xe0\xa1\xb1", True, True),
    "names alone": (lambda t: as_csv(t).split(b"\r")[0], True, True),
    "an infinite response": (cell("y", "1e400"), True, True),
    "a percent sign": (cell("b", "50%"), True, True),
    "a currency": (cell("b", "$5"), True, True),
    "trailing commas": (lambda t: as_csv(t).replace(b"\r\n", b",\r\n"), True, True),
    "empty lines": (lambda t: as_csv(t).replace(b"\r\n", b"\r\n\r\n"), False, False),
}


@cache
def folder(target: str) -> Path:
    """Return a folder with the table and a model that was fitted to it."""
    path = Path(tempfile.mkdtemp(prefix="battery"))
    (path / "data.csv").write_bytes(as_csv(lines(target)))
    done = call("fit", path / "data.csv", *ROLES, "--target", "y", "-o", path / "m")
    call("predict", path / "m", path / "data.csv", "-o", path / "expected.jsonl")
    return done and path


def call(*arguments: Any) -> str:
    """Run a command; its error is raised here."""
    try:
        done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    except TypeError as error:
        if isinstance(error, ValueError):
            raise
        raise RuntimeError(f"a traceback for the user: {error}") from error
    if done.exit_code:
        raise ValueError(done.output)
    return done.output


def _fresh(command: str, target: str, table: str) -> str:
    """Run a command on a changed table; return what it wrote, or said."""
    data = folder(target) / f"{table}.csv"
    data.write_bytes(TABLES[table][0](lines(target)))
    out = folder(target) / f"{table}.{'html' if command == 'explain' else 'jsonl'}"
    if command == "fit":
        return call("fit", data, *ROLES, "--target", "y", "-o", out, "--overwrite")
    if command == "store write":
        roles = ["--sample", "who", "--covariates", "sex,dose", "--target", "y"]
        drop = [] if b"cell" not in data.read_bytes() else ["--drop", "cell"]
        place = folder(target) / f"{table} store"
        return call("store", "write", place, data, *roles, *drop, "--overwrite")
    said = call(command, folder(target) / "m", data, "-o", out, "--overwrite")
    return out.read_text() if command == "predict" else said


def _same(target: str, answer: str) -> bool:
    expected = (folder(target) / "expected.jsonl").read_text()
    pairs = zip(answer.splitlines(), expected.splitlines(), strict=True)
    return all(_equal(json.loads(a), json.loads(b)) for a, b in pairs)


def _equal(a: Line, b: Line) -> bool:
    if a.keys() != b.keys():
        return False
    numbers = [k for k in a if isinstance(a[k], float)]
    return all(np.isclose(a[k], b[k]) if k in numbers else a[k] == b[k] for k in a)


# A fit takes what columns there are as features, and knows no names to compare them with.
FITS = ("one more column", "no column b", "renamed column")
WORDS = r"\.csv|column|sample|covariate|--|y\b|class|response"


def cases() -> Iterator[Case]:
    """Yield the cases of the commands."""
    for target in TARGETS:
        for table, (_, without, with_response) in TABLES.items():
            for command in ("predict", "evaluate", "explain", "fit", "store write"):
                needs = command in ("evaluate", "fit", "store write")
                refuses = with_response if needs else without
                if command in ("fit", "store write") and table in FITS:
                    refuses = False
                yield Case(
                    "commands",
                    f"{command} · {target} · {table}",
                    lambda command=command, target=target, table=table: _fresh(
                        command, target, table
                    ),
                    refuses,
                    (lambda answer, target=target: _same(target, answer))
                    if command == "predict"
                    else (lambda answer: True),
                    WORDS,
                )
    yield from _options()


def _options() -> Iterator[Case]:
    wrong: dict[str, list[Any]] = {
        "target = sample": ["--target", "who"],
        "covariate = target": ["--target", "y", "--covariates", "y"],
        "covariate = sample": ["--target", "y", "--covariates", "who"],
        "feature = target": ["--target", "y", "--features", "a,y"],
        "feature twice": ["--target", "y", "--features", "a,a"],
        "no target": [],
        "unknown target": ["--target", "z"],
        "unknown covariate": ["--target", "y", "--covariates", "z"],
        "unknown feature": ["--target", "y", "--features", "z"],
        "no heads": ["--target", "y", "--heads", "0"],
        "heads in words": ["--target", "y", "--heads", "many"],
        "more heads than rows": ["--target", "y", "--heads", "99"],
        "unknown family": ["--target", "y", "--family", "cauchy"],
        "family of others": ["--target", "y", "--family", "bernoulli"],
        "unknown solver": ["--target", "y", "--solver", "magic"],
        "split beyond 1": ["--target", "y", "--split", "2"],
        "negative seed": ["--target", "y", "--seed", "-1"],
        "huge seed": ["--target", "y", "--seed", str(10**30)],
        "two kinds": ["--target", "y", "--text", "a"],
        "texts that are numbers": ["--target", "y", "--patch", "4"],
    }
    for name, given in wrong.items():
        yield Case(
            "commands",
            f"fit · option · {name}",
            lambda given=given: call(
                *("fit", folder("numbers") / "data.csv", "--sample", "who", "--drop"),
                *("cell,sex,dose", "-o", folder("numbers") / "other", "--overwrite", *given),
            ),
            True,
            words=".",
        )
    for command in ("predict", "evaluate", "explain", "info"):
        for name in ("nowhere", "data.csv", "", "empty"):

            def act(command: str = command, name: str = name) -> str:
                place = folder("numbers")
                (place / "empty").write_bytes(b"")
                ending = "html" if command == "explain" else "csv"
                more = (
                    [] if command == "info" else [place / "data.csv", "-o", place / f"o.{ending}"]
                )
                return call(command, place / name, *more)

            yield Case("commands", f"{command} · the model is {name or 'a folder'}", act, True)
    for command in ("predict", "explain"):
        for out in ("data.csv", "m", "nowhere/o.csv", "", "data.csv/o.csv"):
            yield Case(
                "commands",
                f"{command} · the output is {out or 'the folder'}",
                lambda command=command, out=out: call(
                    *(command, folder("numbers") / "m", folder("numbers") / "data.csv"),
                    *("--overwrite", "-o", folder("numbers") / out),
                ),
                True,
            )
