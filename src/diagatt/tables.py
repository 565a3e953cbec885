"""Small tables as Markdown, CSV or HTML.

Each function takes column names and lines of cells and returns a string; nothing is printed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def markdown_table(head: Sequence[Any], lines: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown, without a line break at its end.

    Examples
    --------
    >>> print(markdown_table(["method", "rmse"], [["pooled", 1.5]]))
    | method | rmse |
    | --- | --- |
    | pooled | 1.5 |
    """
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def csv_table(head: Sequence[Any], lines: Iterable[Sequence[Any]]) -> str:
    r"""Return a table as CSV; None is an empty cell.

    Examples
    --------
    >>> csv_table(["method", "rmse"], [["pooled", None]])
    'method,rmse\npooled,\n'
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *lines])
    return out.getvalue()


def html_table(
    caption: str,
    head: Sequence[Any],
    lines: Iterable[Sequence[Any]],
    left_out: int = 0,
    classes: Sequence[str] = (),
) -> str:
    """Return a table in HTML, with everything escaped.

    Parameters
    ----------
    caption : str
    head : sequence
        Column names; none if it is empty.
    lines : iterable of sequences
    left_out : int
        How many more lines there are; a last line says so.
    classes : sequence of str
        Class of each line for a style sheet. The table is then written line by line, for a file.

    Examples
    --------
    >>> html_table("a < b", [], [["x", 1]])
    '<table><caption>a &lt; b</caption><tbody><tr><td>x</td><td>1</td></tr></tbody></table>'
    """
    end = "\n" if classes else ""
    top = f"<thead>{_line(head, 'th')}</thead>{end}" if head else ""
    rows = list(lines)
    names: Sequence[str | None] = classes or [None] * len(rows)
    body = "".join(_line(row, "td", name) + end for row, name in zip(rows, names, strict=True))
    if left_out > 0:
        body += _line([f"… and {left_out:,} more"], "td") + end
    start = f"<table><caption>{escape(caption)}</caption>{end}{top}"
    return f"{start}<tbody>{end}{body}</tbody></table>{end}"


def _line(cells: Sequence[Any], tag: str, name: str | None = None) -> str:
    inner = "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>" if name is None else f'<tr class="{escape(name)}">{inner}</tr>'
