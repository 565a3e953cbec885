"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path, typer.Argument(help="Samples: CSV, TSV, JSONL, Parquet, Feather, NPZ, or a store.")
]
Memory = Annotated[
    float, typer.Option(min=1, help="MiB that the rows of a store may take in memory.")
]
Model = Annotated[Path, typer.Argument(help="A model that `diagatt fit` wrote.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.")]
Text = Annotated[str | None, typer.Option(help="Column of texts.", metavar="COLUMN")]
Image = Annotated[str | None, typer.Option(help="Column of image paths.", metavar="COLUMN")]
Rows = Annotated[
    str | None, typer.Option(help="Column that holds a list of rows.", metavar="COLUMN")
]
Sample = Annotated[
    str | None,
    typer.Option(help="Column of sample ids in a table with one line a row.", metavar="COLUMN"),
]
Target = Annotated[str | None, typer.Option(help="Column of responses.", metavar="COLUMN")]
Covariates = Annotated[
    str, typer.Option(help="Columns of covariates, separated by commas.", metavar="A,B")
]


def names(listed: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(name.strip() for name in listed.split(",") if name.strip())
