"""Bags of blood cells, a row of gene expressions each; positive bags hold a rare cell."""

from __future__ import annotations

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.drawn import draw_from_pools
from diagatt.datasets.packaged import imported, packaged_file

_RARE = {"cells_cd34": "CD34+", "cells_nk": "CD56+ NK"}


@provides(*_RARE)
def cell_bags(name: str, n: int = 200, seed: int = 0) -> Bags:
    """Draw bags of 10 to 20 cells; one in five holds one cell of the rare type.

    Rows are log-normalized expressions of 765 genes. The principal components in the file are not
    used, because they were fitted to all cells: a projection must be fitted to the training part.
    """
    h5py = imported("h5py", "h5py", name)
    path = packaged_file("scanpy==1.11.5", "scanpy/datasets/10x_pbmc68k_reduced.h5ad", name)
    with h5py.File(path) as file:
        rows = _dense(file["raw.X"])
        categories = [word.decode() for word in file["uns/bulk_labels_categories"][:]]
        kinds = np.array(categories)[file["obs"]["bulk_labels"]]
    rng = np.random.default_rng((seed, 1))
    y = rng.permutation((np.arange(n) < round(0.2 * n)).astype(np.int64))
    length = rng.integers(10, 20, n, endpoint=True)
    roles = [lambda kinds: kinds == _RARE[name], lambda kinds: kinds != _RARE[name]]
    counts = np.column_stack([y, length - y])
    X, role, pools = draw_from_pools(rows, kinds, roles, counts, seed)
    return Bags(
        name,
        X,
        y,
        "binary",
        groups=pools,
        row_labels=role == 0,
        description=f"Blood cells, 765 genes as a row; positive bags hold one {_RARE[name]} cell.",
        licence="BSD-3-Clause (package); 10x Genomics, CC BY 4.0",
        source="scanpy on PyPI, pbmc68k_reduced",
    )


def _dense(group: object) -> np.ndarray:
    """Return a matrix that is stored by compressed rows."""
    from scipy.sparse import csr_matrix

    parts = (group["data"][:], group["indices"][:], group["indptr"][:])  # type: ignore[index]
    shape = tuple(group.attrs["h5sparse_shape"])  # type: ignore[attr-defined]
    return csr_matrix(parts, shape=shape).toarray().astype(np.float64)
