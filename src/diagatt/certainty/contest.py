"""The table of a contest: who competed, how well out of fold, and with which weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diagatt.tables import html_table

_SCORES = {"auc": "AUC", "accuracy": "accuracy", "r2": "R²"}


class ContestReport(Sequence[dict[str, Any]]):
    """Contestants with their mean log score out of fold, best first; print it.

    Each line is a dictionary of solver, what (rows, ridges, features), log_score, se (standard
    error of the gap to the best), AUC, accuracy or R², weight, vote and seconds. Contestants
    that were dropped after the first folds have no scores.
    """

    def __init__(self, lines: Sequence[dict[str, Any]]) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index):
        return self._lines[index]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        scores = [name for name in _SCORES if self._lines and name in self._lines[0]]
        head = ["solver", "what", "log score", "± gap", *(_SCORES[s] for s in scores), "weight"]
        lines = []
        for line in self._lines:
            if line["log_score"] is not None:
                numbers = [line["log_score"], line["se"], *(line[s] for s in scores)]
                cells = [f"{number:.4f}" for number in numbers]
                lines.append([line["solver"], line["what"], *cells, f"{line['weight']:.2f}"])
        return head, lines

    def __str__(self) -> str:
        head, lines = self._table()
        dropped = len(self) - len(lines)
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        text = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            for cells in (head, *lines)
        ]
        return "\n".join([*text, f"{dropped} more were dropped after the first folds."])

    def _repr_html_(self) -> str:
        head, lines = self._table()
        return html_table("Contest out of fold", head, lines)
