"""Images: patches as rows of interest, and attention back onto pixels (the paper's Example 2)."""

from diagatt.kinds.image.estimator import ImageClassifier, ImageRegressor
from diagatt.kinds.image.folders import ImageFiles, read_folder, read_table
from diagatt.kinds.image.kronecker import (
    coefficient_matrices,
    kronecker_sum,
    rearrange,
    restore,
)
from diagatt.kinds.image.patches import PatchRows, columns_as_rows
from diagatt.kinds.image.reading import read_image
from diagatt.plots.patches import draw_attention, draw_coefficients

__all__ = [
    "ImageClassifier",
    "ImageFiles",
    "ImageRegressor",
    "PatchRows",
    "coefficient_matrices",
    "columns_as_rows",
    "draw_attention",
    "draw_coefficients",
    "kronecker_sum",
    "read_folder",
    "read_image",
    "read_table",
    "rearrange",
    "restore",
]
