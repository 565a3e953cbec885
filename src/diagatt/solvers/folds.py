"""Folds, and the fits that leave out one fold each.

Folds depend on the content of samples alone: the order of samples, rows and features and the units
of features do not change which samples are held out together. Copies of a sample share a fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.blend import Blend
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.rowmaps import least_spread, row_blocks
from diagatt.segments import map_blocks, segment_sum, spread
from diagatt.solvers.existence import Existence
from diagatt.solvers.problem import Samples

# Decimals of a sum over scaled rows that do not depend on their order.
DIGITS = 9


def content_folds(
    samples: Samples, n_folds: int, seed: int, groups: np.ndarray | None = None
) -> Tensor:
    """Return the fold of every sample, (n,), balanced over classes or along the response.

    Parameters
    ----------
    samples : Samples
    n_folds : int
        Fewer are made if there are fewer different samples or groups.
    seed : int
    groups : array of shape (n,), optional
        Codes; samples of one group share a fold.
    """
    content = _content(samples)
    responses = samples.y.double().cpu().numpy().reshape(samples.n_samples, -1)
    observed = samples.family.observed(samples.y).double().cpu().numpy()
    y = observed.reshape(samples.n_samples, -1).mean(axis=1)  # of several outcomes, their mean
    if groups is None:
        lines = np.column_stack([responses, content])
        _, unit = np.unique(lines, axis=0, return_inverse=True)
    else:
        _, unit = np.unique(groups, return_inverse=True)
    unit = unit.reshape(-1)
    counts = np.bincount(unit)
    of_units = [np.bincount(unit, weights=values) / counts for values in (content, y)]
    order = np.lexsort(of_units)  # by response, then by content
    n_folds = min(n_folds, len(order))
    generator = np.random.default_rng(seed)
    fold = np.empty(len(order), dtype=np.int64)
    for start in range(0, len(order), n_folds):  # neighbours go to different folds
        block = order[start : start + n_folds]
        fold[block] = generator.permutation(n_folds)[: len(block)]
    return torch.from_numpy(fold[unit]).to(samples.device)


def _content(samples: Samples) -> np.ndarray:
    """Return a number per sample, (n,), which differs between samples of different content."""
    values, blocks = samples.values, row_blocks(samples.values)
    weights = spread(samples.weights.double(), samples.offsets)
    counted = None if samples.log_prior is None else samples.log_prior.double().exp()
    weights = weights if counted is None else weights * counted
    weights = weights / weights.sum()
    mean = reduce(add, (weights[rows] @ values[rows].double() for rows in blocks))
    squares = (weights[rows] @ (values[rows] - mean).square_() for rows in blocks)
    scale = reduce(add, squares).sqrt()
    varies = scale > least_spread(values)  # rounding is no content
    scaled = (torch.where(varies, (values[rows] - mean) / scale, 0.0) for rows in blocks)
    sizes = torch.cat([part.abs_().sum(dim=1, keepdim=True) for part in scaled])
    sizes = sizes if counted is None else sizes * counted[:, None]
    sums = segment_sum(sizes, samples.offsets)[:, 0]
    return sums.cpu().numpy().round(DIGITS)


@dataclass(frozen=True)
class OutOfFold:
    """One model per fold, fitted to the samples of all other folds.

    Attributes
    ----------
    samples : Samples
    folds : tensor of shape (n,)
    predictors : list
        The model of each fold.
    existence : Existence, optional
        Test of any row of interest by these fits; None if all samples have one row.
    """

    samples: Samples
    folds: Tensor
    predictors: list[DiagonalAttention | Blend]
    existence: Existence | None

    def tested(self) -> Existence:
        """Return the test of any row of interest, or refuse samples of one row."""
        if self.existence is None:
            raise ValueError("all samples have one row, so there is no row to look for.")
        return self.existence

    def predictions(self) -> Tensor:
        """Return predictors z of all samples, (n, K), each by the model fitted without it."""
        found = []
        for place, part, model in self.parts():
            known = [part.covariates] + ([] if part.offset is None else [part.offset])
            z = map_blocks(model, part.values, part.offsets, *known, log_prior=part.log_prior)
            found.append((place, z.detach()))
        back = torch.cat([place for place, _ in found]).argsort()
        return torch.cat([z for _, z in found]).double()[back]

    def losses(self) -> Tensor:
        """Return the weighted loss of every sample, (n,)."""
        y, w = self.samples.y.double(), self.samples.weights.double()
        return w * self.samples.family.loss(y, self.predictions())

    def parts(self) -> Iterator[tuple[Tensor, Samples, DiagonalAttention | Blend]]:
        """Yield places of held-out samples, these samples, and the model fitted without them."""
        for fold, predictor in enumerate(self.predictors):
            held_out = torch.nonzero(self.folds == fold)[:, 0]
            yield held_out, self.samples.take(held_out), predictor
