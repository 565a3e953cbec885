"""Every number in the paper's tables of results, as printed.

The numbers stand in ``published.csv`` beside this file, digit for digit. CRLR and accuracy are in
per cent, as in the paper; `diagatt.metrics` returns fractions.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

#: Replications behind the means and SDs of Tables 1, 2 and S2 to S4.
PAPER_REPS = 100


@dataclass(frozen=True)
class Published:
    """One printed cell.

    Methods are "grouplasso", "mdsp", "two-step", "stdatt-1", "stdatt-r", "diagatt-1" and
    "diagatt-r", where r heads are chosen by validation; metrics are "rmse", "crlr" and "accuracy".
    In Table S1 (spectral overlap) the method is the column, "analytic", "numerical", "shared" or
    "class-specific", and the metric "cutoff", "bracket_low", "bracket_high", "median", "q05",
    "q95", or "satisfied" out of "realizations".
    """

    table: str  #: "table1", "table2", or "tableS1" to "tableS5" (keywords).
    setting: str  #: Name in `diagatt.simulate.PAPER_SETTINGS`; "keywords"; "tableS1-s3" and so on.
    method: str
    metric: str
    mean: float  #: The printed value, in Tables 1, 2 and S2 to S4 a mean over 100 replications.
    sd: float | None  #: Standard deviation over the replications; None where none is printed.


def published(table: str | None = None) -> list[Published]:
    """Return the published numbers of one table, or by default of all, in the paper's order.

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
        Published(table, setting, method, metric, float(mean), float(sd) if sd else None)
        for table, setting, method, metric, mean, sd in list(csv.reader(text.splitlines()))[1:]
    )
