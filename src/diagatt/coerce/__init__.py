"""The one place that decides what X, y, sample weights and covariates may be.

Whatever users have (lists, NumPy arrays, torch tensors, pandas and polars frames, Arrow columns)
becomes contiguous arrays of floats here, or is refused by an error that names the sample.
"""

from diagatt.coerce.alignment import refuse_other_order
from diagatt.coerce.beside import (
    covariates,
    groups,
    known_rows,
    n_outcomes,
    offset,
    response,
    responses,
    times,
    weights,
    whole_labels,
)
from diagatt.coerce.class_labels import class_weights, classes, labels
from diagatt.coerce.rows import (
    Packed,
    is_flat,
    offsets_from,
    pack_arrow,
    pack_dense,
    pack_frame,
    pack_nested,
    pack_padded,
    pack_samples,
    samples,
    stacked,
    unmasked,
)
from diagatt.coerce.usable import refuse_overflow, refuse_unusable, row_name, row_weights

__all__ = [
    "Packed",
    "class_weights",
    "classes",
    "covariates",
    "groups",
    "is_flat",
    "known_rows",
    "labels",
    "n_outcomes",
    "offset",
    "offsets_from",
    "pack_arrow",
    "pack_dense",
    "pack_frame",
    "pack_nested",
    "pack_padded",
    "pack_samples",
    "refuse_other_order",
    "refuse_overflow",
    "refuse_unusable",
    "response",
    "responses",
    "row_name",
    "row_weights",
    "samples",
    "stacked",
    "times",
    "unmasked",
    "weights",
    "whole_labels",
]
