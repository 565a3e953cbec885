"""Help texts that read well in a terminal of 80 columns."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

__all__ = ["Helped", "HelpedGroup", "joined_lines"]


class Helped(TyperCommand):
    """A command whose paragraphs fill the lines, and whose flags have no value.

    Typer keeps the line breaks of docstrings, so that every second line is a short one, and writes
    ``<bool>`` after flags and ``{data}`` for an argument.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.help = joined_lines(self.help or "")

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, ``--help`` among them."""
        return [_name_value(parameter) for parameter in super().get_params(ctx)]


class HelpedGroup(TyperGroup):
    """A group of commands whose flags have no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, ``--help`` among them."""
        return [_name_value(parameter) for parameter in super().get_params(ctx)]


def _name_value(parameter: Any) -> Any:
    """Return a parameter, written in capitals if it is an argument, without a value if a flag."""
    if parameter.metavar is None and parameter.param_type_name == "argument":
        parameter.metavar = parameter.name.upper()
    elif getattr(parameter, "is_flag", False):
        parameter.metavar = ""
    return parameter


def joined_lines(text: str) -> str:
    r"""Return paragraphs of one line each.

    Examples
    --------
    >>> joined_lines("One\ntwo.\n\nThree.")
    'One two.\n\nThree.'
    """
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", part) for part in text.split("\n\n"))
