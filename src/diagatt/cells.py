"""Single cells as samples: AnnData to rows, and attention back onto the cells."""

from diagatt.kinds.cells.annotate import annotate
from diagatt.kinds.cells.samples import CellSamples
from diagatt.kinds.cells.source import read_cells, write_store
from diagatt.kinds.cells.table import CellTable

__all__ = ["CellSamples", "CellTable", "annotate", "read_cells", "write_store"]
