"""Errors of the library in the words of the command line: options, and samples by their ids."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# What the library says, and what someone at the command line can do.
OPTIONS = (
    (r"\boverwrite=True\b", "--overwrite"),
    (r"\bshard_mib\b", "--shard-mib"),
    (r"\bmemory=(\S+) MiB", r"--memory \1"),
    (r"\bn_heads=(\d+) heads need", r"--heads \1 needs"),
    (r"\blower n_heads\b", "lower --heads"),
    (r",? or (?:set|fit with) coupling='independent'", " or give fewer --heads"),
    (r"lower --heads, drop short samples or give fewer --heads", "lower it, or drop short samples"),
    (
        r"solver must be the name of a solver or a solver object, got '(.*)'",
        r"--solver must be auto, likelihood, mixture or gradient, got \1",
    ),
    (
        r"^unknown family '(\w+)': choose one of \[(.*)\]",
        r"there is no --family \1: choose one of \2",
    ),
    (r"\bchoose another family\b", "choose another --family"),
    (r"\bpass offset=… in", "pass --offset COLUMN, in"),
    (r"\b(?:set )?missing='marginalize'", "--missing marginalize"),
    (r" In cross_val_score and other tools of scikit-learn.*$", ""),
    (r"a row store is a folder that RowStore\.write made", "`diagatt store write` makes a store"),
    (
        r" For a folder of shards call RowStore\.index\(folder\)\.",
        " `diagatt store write` makes one.",
    ),
    (r"; use optimizer='lbfgs' or more epochs", ""),
    (r"; raise ridges, lower the count of features", "; give fewer --features"),
    (
        r"; solver='gradient' has them, and a weibull fit",
        "; --solver gradient or --family weibull has them",
    ),
    (
        r"or choose solver='auto' of DiagAttRegressor and DiagAttClassifier, which scales",
        "or leave --solver out: the default scales",
    ),
    (r" Select the others: \S+\.$", ""),
    (r"choose fewer features(, or encode them, for example with .*)?\.$", "give fewer --features."),
)

NO_ROW = "No row of interest was found: do not read located rows as an answer."
NOT_TESTED = "not tested; --solver auto, the default, tests it"

# Numbers that come with the rows of a sample.
BESIDE = "time|start|stop|event|exposure|offset"


def said(message: str, ids: Sequence[Any] | None = None) -> str:
    """Return a message with options for parameters and, if ids are given, ids for positions.

    Examples
    --------
    >>> said("y exists: pass overwrite=True to replace it.")
    'y exists: pass --overwrite to replace it.'
    >>> said("sample 1, row 3 contains NaN: drop it.", ["007", "012"])
    'sample 012, row 3 contains NaN: drop it.'
    >>> said("time[1] = -3 is not positive.", ["007", "012"])
    'the time -3 of sample 012 is not positive.'
    >>> said("y[1] is infinity: drop the sample.", ["007", "012"])
    'the response of sample 012 is infinity: drop the sample.'
    """
    for pattern, words in OPTIONS:
        message = re.sub(pattern, words, message)
    if ids is None:
        return message

    def name(found: re.Match) -> str:
        place = int(found[1])
        return found[0].replace(found[1], str(ids[place])) if place < len(ids) else found[0]

    message = re.sub(r"\by\[(\d+)\] = (\S+)", r"the response \2 of sample \1", message)
    message = re.sub(r"\by\[(\d+)\]", r"the response of sample \1", message)
    message = re.sub(rf"\b({BESIDE})\[(\d+)\] = ([^\s:]+)", r"the \1 \3 of sample \2", message)
    message = re.sub(rf"\b({BESIDE})\[(\d+)\]", r"the \1 of sample \2", message)
    return re.sub(r"\bsample (\d+)\b", name, message)


def fitted(message: str, width: int | None = None, stream: Any = None) -> str:
    """Return a message whose lines break between words, at the width of the terminal.

    Parameters
    ----------
    message : str
    width : int, optional
        By default that of the terminal; a message that goes to a file is left as it is.
    stream : text stream, optional
        Where the message goes; by default stderr.

    Examples
    --------
    >>> print(fitted("error: cells.csv has no column 'site'.", 24))
    error: cells.csv has no
    column 'site'.
    """
    if width is None:
        if not (stream or sys.stderr).isatty():
            return message
        width = shutil.get_terminal_size().columns
    how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.fill(line, width, **how) for line in message.splitlines())


def counted(count: int) -> str:
    """Return a count of samples in words.

    Examples
    --------
    >>> counted(1), counted(1200)
    ('1 sample', '1,200 samples')
    """
    return "1 sample" if count == 1 else f"{count:,} samples"


def caution(model: Any) -> list[str]:
    """Return what must be said wherever rows are located by a fit that found none, as lines."""
    found = getattr(getattr(model, "estimator_", model), "has_row_of_interest_", None)
    return [NO_ROW] if found is False else []


@contextmanager
def about(ids: Sequence[Any]) -> Iterator[None]:
    """Name samples by their ids in what goes wrong in the block."""
    try:
        yield
    except ValueError as error:
        message = said(str(error), ids)
        if message == str(error):
            raise
        raise ValueError(message) from error
