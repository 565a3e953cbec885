"""A small table as escaped HTML, for what results show of themselves in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(
    caption: str, head: Sequence[Any], lines: Iterable[Sequence[Any]], left_out: int = 0
) -> str:
    """A caption, a line of column names (or none) and lines of cells; everything is escaped.

    Examples
    --------
    >>> html_table("a < b", [], [["x", 1]])
    '<table><caption>a &lt; b</caption><tbody><tr><td>x</td><td>1</td></tr></tbody></table>'
    """
    top = f"<thead>{_line(head, 'th')}</thead>" if head else ""
    body = "".join(_line(line, "td") for line in lines)
    if left_out > 0:
        body += _line([f"… and {left_out:,} more"], "td")
    return f"<table><caption>{escape(caption)}</caption>{top}<tbody>{body}</tbody></table>"


def _line(cells: Sequence[Any], tag: str) -> str:
    inner = "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
