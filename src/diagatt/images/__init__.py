"""Images: patches as rows of interest, and attention back onto pixels (the paper's Example 2)."""

from diagatt.images.folders import ImageFiles, read_folder, read_table
from diagatt.images.kronecker import (
    coefficient_matrices,
    kronecker_sum,
    rearrange,
    restore,
    unvec,
    vec,
)
from diagatt.images.patches import PatchRows, columns_as_rows
from diagatt.images.pipelines import ImageClassifier, ImageRegressor
from diagatt.images.reading import read_image
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
    "unvec",
    "vec",
]
