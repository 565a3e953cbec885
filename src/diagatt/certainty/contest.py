"""The table of a contest: who competed, how well out of fold, and with which weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diagatt.tables import html_table

_SCORES = {"auc": "AUC", "accuracy": "accuracy", "r2": "R²", "concordance": "concordance"}
# How many contestants are printed; those with weight are always among them.
_PRINTED = 10


class ContestReport(Sequence[dict[str, Any]]):
    """Contestants with their mean log score out of fold, best first.

    Each line is a dictionary of solver, what (rows, ridges, features), log_score, se (standard
    error of the gap to the best), AUC, accuracy, R² or concordance, weight, vote and seconds.
    Contestants that were dropped after the first folds have no scores. Printing shows the best
    contestants and all that have weight; iterating yields every line.
    """

    def __init__(self, lines: Sequence[dict[str, Any]]) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index):
        return self._lines[index]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        scores = [name for name in _SCORES if self._lines and name in self._lines[0]]
        names = (_SCORES[score] for score in scores)
        head = ["solver", "what", "log score", "± gap", *names, "weight", "seconds"]
        lines = []
        for place, line in enumerate(self._judged()):
            if place < _PRINTED or line["weight"] > 0:
                numbers = [line["log_score"], line["se"], *(line[score] for score in scores)]
                cells = [f"{number:.4f}" for number in numbers]
                last = [f"{line['weight']:.2f}", f"{line['seconds']:.1f}"]
                lines.append([line["solver"], line["what"], *cells, *last])
        return head, lines

    def _judged(self) -> list[dict[str, Any]]:
        """Return the lines of contestants that were fitted in all folds."""
        return [line for line in self._lines if line["log_score"] is not None]

    def _rest(self, shown: int) -> str:
        """Say how many contestants a table of so many lines leaves out, and why."""
        judged = len(self._judged())
        worse, dropped = judged - shown, len(self) - judged
        left_out = [f"{worse} more had lower scores"] if worse else []
        left_out += [f"{dropped} were dropped after the first folds"] if dropped else []
        return "; ".join(left_out) + "." if left_out else ""

    def __str__(self) -> str:
        head, lines = self._table()
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        text = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            for cells in (head, *lines)
        ]
        return "\n".join([*text, *filter(None, [self._rest(len(lines))])])

    def _repr_html_(self) -> str:
        head, lines = self._table()
        return html_table("Contest out of fold", head, lines, len(self) - len(lines))
