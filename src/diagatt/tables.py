"""Small tables as Markdown, CSV, HTML or LaTeX.

Each function takes column names and lines of cells and returns a string; nothing is printed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage; only 1 is 100 %, and only 0 is 0 %.

    Examples
    --------
    >>> percent(0.5), percent(0.9998), percent(1e-5), percent(1.0)
    ('50.0 %', '> 99.9 %', '< 0.1 %', '100.0 %')
    """
    least = 10.0**-digits
    if 0 < 100 * share < least / 2:
        return f"< {least:.{digits}f} %"
    if 100 - least / 2 <= 100 * share < 100:
        return f"> {100 - least:.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


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
    r"""Return a table as CSV; None is an empty cell, and no text is a formula of a spreadsheet.

    Examples
    --------
    >>> csv_table(["method", "rmse"], [["pooled", None]])
    'method,rmse\npooled,\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([no_formula(cell) for cell in line] for line in [head, *lines])
    return out.getvalue()


def no_formula(cell: Any) -> Any:
    """Return a cell for a CSV: text that spreadsheets would calculate gets an apostrophe.

    Spreadsheets calculate text that begins with ``=``, ``+``, ``-`` or ``@``, and a formula may
    send data away or start programs. Numbers are left as they are.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula("-0.5"), no_formula("p01")
    ("'=1+1", '-0.5', 'p01')
    """
    if not isinstance(cell, str) or not cell.startswith(_FORMULAS) or len(cell) == 1:
        return cell
    return cell if _is_number(cell) else f"'{cell}"


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


_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}",
    "–": "--",
    "\n": " ",
}


def latex_table(
    caption: str, head: Sequence[Any], lines: Iterable[Sequence[Any]], notes: str = ""
) -> str:
    r"""Return a table in LaTeX, with everything escaped; it needs the package booktabs.

    Numbers have minus signs, and notes stand below the table.

    Examples
    --------
    >>> print(latex_table("a & b", ["x_1", "y"], [["one", -2]]))
    \begin{table}
    \centering
    \caption{a \& b}
    \begin{tabular}{lr}
    \toprule
    x\_1 & y \\
    \midrule
    one & \ensuremath{-}2 \\
    \bottomrule
    \end{tabular}
    \end{table}
    """

    def escaped(text: Any) -> str:
        whole = "".join(_LATEX.get(character, character) for character in str(text))
        is_negative = whole.startswith("-") and _is_number(text)
        return rf"\ensuremath{{-}}{whole[1:]}" if is_negative else whole

    def line(cells: Sequence[Any]) -> str:
        return " & ".join(map(escaped, cells)) + r" \\"

    rows = [list(row) for row in lines]
    first = rows[0] if rows else head
    kinds = "".join("r" if rows and _is_number(cell) else "l" for cell in first)
    parts = [r"\begin{table}", r"\centering", rf"\caption{{{escaped(caption)}}}"]
    parts += [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", line(head), r"\midrule"]
    parts += [*map(line, rows), r"\bottomrule", r"\end{tabular}"]
    if notes:
        parts += [r"\par\smallskip", rf"{{\footnotesize {escaped(notes)}\par}}"]
    parts += [r"\end{table}"]
    return "\n".join(parts)


def _is_number(cell: Any) -> bool:
    """Whether a cell is a number, or stands for one: a dash, or a bound."""
    try:
        float(str(cell).lstrip("<").replace("–", "0"))
    except ValueError:
        return False
    return True


def _line(cells: Sequence[Any], tag: str, name: str | None = None) -> str:
    inner = "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>" if name is None else f'<tr class="{escape(name)}">{inner}</tr>'
