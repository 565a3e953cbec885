"""Single cells: a sample is a patient or a donor, and its rows are cells of an ``.h5ad`` file."""

from __future__ import annotations

from pathlib import Path

from diagatt.kinds.base import KINDS, Columns, Inputs, Kind, Option
from diagatt.kinds.memory import IN_MEMORY, temporary_store


class Cells(Kind):
    """Cells that AnnData wrote; ``--sample`` names the column of obs that groups them."""

    name = "cell"
    reading = (
        Option("layer", "Layer of an .h5ad file that holds the features; default: X."),
        Option("obsm", "Entry of obsm of an .h5ad file that holds the features, such as X_scVI."),
    )
    takes = ("sample", "target", "covariates", "groups", "features", "layer", "obsm")
    bounded = True

    def opens(self, path: Path) -> bool:
        """Return whether the path is an AnnData file."""
        return path.suffix == ".h5ad"

    def open(self, path: Path, columns: Columns, memory: float) -> Inputs:
        """Read the cells; rows of more than a quarter of `memory` go through a temporary store."""
        from diagatt.kinds.cells.samples import CellSamples
        from diagatt.kinds.cells.table import CellTable

        sample = columns.asked.get("sample")
        if sample is None:
            raise ValueError(f"{path}: say which cells belong together, with --sample COLUMN.")
        how = {name: columns.asked.get(name) for name in ("layer", "obsm")}
        with CellTable.opened(path, **how) as table:
            target = columns.target if columns.target in table.obs else None
            if columns.target is not None and target is None and not columns.of_a_model:
                names = ", ".join(sorted(map(str, table.obs)))
                raise ValueError(f"{path}: obs has no column {columns.target!r}; it has {names}.")
            groups = columns.groups if columns.groups in table.obs else None
            if columns.groups is not None and groups is None and not columns.of_a_model:
                raise ValueError(f"{path}: obs has no column {columns.groups!r} for --groups.")
            samples = CellSamples.of(
                table, sample, target=target, covariates=columns.covariates, groups=groups
            )
            if table.nbytes > memory * 2**20 * IN_MEMORY:
                given = [option for option in ("features", "groups") if option in columns.given]
                if given:
                    least = table.nbytes / IN_MEMORY / 2**20
                    raise ValueError(
                        f"--{given[0]} needs samples in memory: give --memory {least:,.0f} (MiB) "
                        "or more."
                    )
                store = temporary_store(samples, memory)
                return Inputs(KINDS["store"], store, samples.y, None, samples.ids, columns)
            X = samples.rows()
        if not columns.of_a_model and columns.features:
            X = X.with_features(columns.features)
        Z = samples.covariates
        Z = None if Z is None else Z.to_pandas().to_numpy()
        return Inputs(self, X, samples.y, Z, samples.ids, columns, samples.groups)
