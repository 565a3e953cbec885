"""Help texts that read well in a terminal of 80 columns."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

__all__ = ["Helped", "joined_lines"]


class Helped(TyperCommand):
    """A command whose paragraphs fill the lines, and whose flags have no value.

    Typer keeps the line breaks of docstrings, so that every second line is a short one, and writes
    ``<bool>`` after flags and ``{data}`` for an argument.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.help = joined_lines(self.help or "")
        for parameter in self.params:
            _name_value(parameter)

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``, which has no value."""
        option = super().get_help_option(ctx)
        if option is not None:
            _name_value(option)
        return option


def _name_value(parameter: Any) -> None:
    """Write arguments in capitals, as DATA, and flags without a value."""
    if parameter.metavar is None and parameter.param_type_name == "argument":
        parameter.metavar = parameter.name.upper()
    elif getattr(parameter, "is_flag", False):
        parameter.metavar = ""


def joined_lines(text: str) -> str:
    r"""Return paragraphs of one line each.

    Examples
    --------
    >>> joined_lines("One\ntwo.\n\nThree.")
    'One two.\n\nThree.'
    """
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", part) for part in text.split("\n\n"))
