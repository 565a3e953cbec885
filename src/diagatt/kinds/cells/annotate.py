"""Attention back onto the cells: columns of ``adata.obs``, and a table of samples in ``uns``."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.kinds.answers import answer
from diagatt.kinds.cells.source import read_cells


def annotate(
    model: Any,
    adata: Any,
    sample_key: str,
    *,
    layer: str | None = None,
    obsm: str | None = None,
    covariates: Any = (),
    key: str = "diagatt",
) -> None:
    """Write attention weights, rows of interest and predictions into an AnnData object.

    Parameters
    ----------
    model : fitted estimator
    adata : AnnData
        Its ``obs`` and ``uns`` are written to, nothing else.
    sample_key, layer, obsm, covariates
        As in `fit`.
    key : str
        What the names of the columns begin with.

    Notes
    -----
    =============================  ================================================================
    ``obs["diagatt_attention"]``   weight κ of the cell in its sample; of several heads, the largest
    ``obs["diagatt_head0"]``, …    weight of each head, if there are several
    ``obs["diagatt_relative"]``    attention times the count of cells of the sample: 1 is uniform
    ``obs["diagatt_located"]``     whether the cell is its sample's row of interest
    ``uns["diagatt"]``             ``samples``, ``prediction``, ``probability`` with ``classes``,
                                   ``located`` (names of cells), ``sample_key``, ``features``
    =============================  ================================================================

    All of it can be written by ``adata.write_h5ad``.
    """
    samples = read_cells(adata, sample_key, layer=layer, obsm=obsm, covariates=covariates)
    answers = answer(model, samples.rows(), samples.covariates)
    if answers.weights is None:
        raise TypeError(f"{type(model).__name__} gives its rows no attention weights.")
    weights = np.concatenate(answers.weights)  # (N, R), sample after sample
    located = samples.offsets[:-1, None] + answers.located  # (n, R) places among packed rows
    chosen = np.zeros(len(weights), dtype=bool)
    chosen[located[answers.located >= 0]] = True
    place = np.argsort(samples.cells)  # of each cell among packed rows
    lengths = np.repeat(np.diff(samples.offsets), np.diff(samples.offsets))
    columns = {"attention": weights.max(axis=1)}
    if weights.shape[1] > 1:
        columns |= {f"head{r}": weights[:, r] for r in range(weights.shape[1])}
    columns |= {"relative": columns["attention"] * lengths, "located": chosen}
    for name, values in columns.items():
        adata.obs[f"{key}_{name}"] = values[place]
    names = np.asarray(adata.obs_names, dtype=str)[samples.cells]
    found: dict[str, Any] = {
        "sample_key": sample_key,
        "features": layer or obsm or "X",
        "samples": np.array(samples.ids, dtype=str),
        "prediction": np.asarray(answers.prediction),
        "located": np.where(answers.located < 0, "", names[np.maximum(located, 0)]).astype(str),
    }
    if answers.probability is not None:
        classes = np.asarray(answers.estimator.classes_)
        found |= {"probability": answers.probability, "classes": classes.astype(str)}
        found["prediction"] = found["prediction"].astype(str)
    adata.uns[key] = found
