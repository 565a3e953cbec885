"""Samples whose stores of format 1 are kept in ``golden/``, with every kind of column.

``python -m tests.stores.golden_samples`` writes the stores; do that only for a new format.
"""

from pathlib import Path

import numpy as np

from diagatt import RaggedRows
from diagatt.stores import RowStore

GOLDEN = Path(__file__).with_name("golden")
N = 12
RESPONSES = {
    "float64": [i / 7 for i in range(N)],
    "int64": [(-3) ** i for i in range(N)],
    "bool": [i % 3 == 0 for i in range(N)],
    "string": [f"№ {i % 4}" for i in range(N)],
}


def golden_samples(kind):
    """Rows and columns of the store with responses of this kind."""
    dtype = "float64" if kind == "int64" else "float32"
    rows = [np.sin(np.arange(3.0 * p) + p).reshape(p, 3).astype(dtype) for p in range(1, N + 1)]
    return {
        "rows": RaggedRows.from_samples(rows),
        "y": RESPONSES[kind],
        "weights": [0.5 + i for i in range(N)],
        "covariates": np.cos(np.arange(2.0 * N)).reshape(N, 2),
        "text": [f"text ü{i}" for i in range(N)],
        "number": list(range(N)),
        "score": [float("nan"), *np.arange(1.0, N)],
        "flag": [i % 2 == 0 for i in range(N)],
    }


def write(folder=GOLDEN):
    """Write one store per kind of response."""
    for kind in RESPONSES:
        samples = golden_samples(kind)
        dtype = samples["rows"].dtype
        RowStore.from_rows(folder / kind, **samples, dtype=dtype, shard_mib=0.0007)


if __name__ == "__main__":
    write()
