"""Ragged samples, modules with drawn parameters, and rows lengthened by hand."""

import itertools

import numpy as np
import pytest
import torch

from diagatt import DiagonalAttention

LENGTHS = [3, 1, 5, 2]
D, R, K = 3, 2, 2
PARAMETERIZATIONS = [
    ("full", None),
    ("full", 2),
    ("factored", None),
    ("factored", 1),
    ("factored", 3),
    ("psd", None),
    ("psd", 1),
]
FORMS = ["quadratic", "affine", "contextual"]
every_form = pytest.mark.parametrize("form", FORMS)
every_matrix = pytest.mark.parametrize(("parameterization", "rank"), PARAMETERIZATIONS)


def offsets_of(lengths):
    return torch.tensor([0, *np.cumsum(lengths)])


def samples(lengths=LENGTHS, d=D, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(sum(lengths), d, generator=generator, dtype=torch.float64)
    return values, offsets_of(lengths)


def module(n_heads=R, n_outputs=K, n_covariates=0, seed=0, **options):
    """A module in float64 with all parameters drawn."""
    result = DiagonalAttention(D, n_heads, n_outputs, n_covariates, **options).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in result.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    return result


def parts(x, offsets):
    return [x[a:b] for a, b in itertools.pairwise(offsets.tolist())]


def lengthened(X, form):
    """X, (X, 1) or (X, 1, mean row)."""
    pieces = [X]
    if form != "quadratic":
        pieces.append(X.new_ones(len(X), 1))
    if form == "contextual":
        pieces.append(X.mean(dim=0).expand(len(X), -1))
    return torch.cat(pieces, dim=1)
