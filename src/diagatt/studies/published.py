"""Every number in the paper's tables of results, as printed.

The numbers stand in ``published.csv`` beside this file, digit for digit. CRLR and accuracy are in
per cent, as in the paper; `diagatt.metrics` returns fractions.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["Published", "published"]


@dataclass(frozen=True)
class Published:
    """One printed cell.

    Attributes
    ----------
    table : str
        ``"table1"``, ``"table2"``, ``"tableS1"`` (spectral overlap), ``"tableS2"`` to
        ``"tableS4"`` or ``"tableS5"`` (keywords).
    setting : str
        Name in `diagatt.simulate.PAPER_SETTINGS`; ``"keywords"`` in Table S5; ``"tableS1-s3"``,
        ``"tableS1-s5"`` and ``"tableS1-s10"`` in Table S1.
    method : str
        ``"grouplasso"``, ``"mdsp"``, ``"two-step"``, ``"stdatt-1"``, ``"stdatt-r"``,
        ``"diagatt-1"`` or ``"diagatt-r"``, where r heads are chosen by validation. In Table S1 the
        column: ``"analytic"``, ``"numerical"``, ``"shared"`` or ``"class-specific"``.
    metric : str
        ``"rmse"``, ``"crlr"`` or ``"accuracy"``, the last two in per cent. In Table S1
        ``"cutoff"``, ``"bracket_low"``, ``"bracket_high"``, ``"median"``, ``"q05"``, ``"q95"`` and
        ``"satisfied"`` out of ``"realizations"``.
    mean : float
        The printed value, in Tables 1, 2 and S2 to S4 a mean over 100 replications.
    sd : float or None
        Standard deviation over these replications; None where none is printed.
    """

    table: str
    setting: str
    method: str
    metric: str
    mean: float
    sd: float | None


def published(table: str | None = None) -> list[Published]:
    """Published numbers of one table, in the paper's order; of all tables by default.

    Parameters
    ----------
    table : {"table1", "table2", "tableS1", "tableS2", "tableS3", "tableS4", "tableS5"}, optional

    Examples
    --------
    >>> cells = published("table1")
    >>> len(cells)
    56
    >>> [c.mean for c in cells if (c.setting, c.method) == ("table1-p100-d70", "diagatt-1")]
    [7.294, 79.13]
    >>> published("tableS5")[0]
    Published(table='tableS5', setting='keywords', method='grouplasso', metric='accuracy',
              mean=85.72, sd=None)
    """
    cells = _read()
    tables = list(dict.fromkeys(cell.table for cell in cells))
    if table is not None and table not in tables:
        raise ValueError(f"unknown table {table!r}: choose one of {tables}.")
    return [cell for cell in cells if table in (None, cell.table)]


@cache
def _read() -> tuple[Published, ...]:
    text = files("diagatt.studies").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            row["table"],
            row["setting"],
            row["method"],
            row["metric"],
            float(row["mean"]),
            float(row["sd"]) if row["sd"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    )
