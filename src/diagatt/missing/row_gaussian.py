"""One Gaussian for all rows, fitted by EM to their observed entries, and rows completed by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diagatt.missing.patterns import Conditional, Patterns, active_rows
from diagatt.ragged import RaggedRows

MAX_ITERATIONS, TOLERANCE = 100, 1e-5  # EM, and the change in standard deviations that ends it
BLOCK = 16384  # rows that are completed in one go
MOST_ROWS = 50_000  # rows that a Gaussian is fitted to: more rows would hardly change it
LEAST_VARIANCE = 1e-12  # smallest variance of a feature, relative to its mean square


@dataclass(frozen=True)
class RowGaussian:
    """N(mean, covariance) of rows, float64."""

    mean: Tensor  # (d,)
    covariance: Tensor  # (d, d)

    def conditional(self, patterns: Patterns) -> Conditional:
        """Return what it says about missing entries."""
        return Conditional(patterns, self.mean, inverted(self.covariance))


def inverted(covariance: Tensor) -> Tensor:
    """Return the precision matrix, or matrices."""
    return torch.cholesky_inverse(torch.linalg.cholesky(covariance))


def fit_row_gaussian(values: np.ndarray) -> RowGaussian:
    r"""Fit a Gaussian to rows with missing entries (NaN) by EM.

    The E-step takes the expectation of :math:`x` and :math:`xx^⊤` given what is observed, the
    M-step their means. As many rows as there are features are added that have the variances of the
    features and no correlation, so that few rows have an invertible covariance, too.

    Parameters
    ----------
    values : array of shape (N, d)
        Every feature must be observed in some row. If there are more than 50,000 rows, or more than
        ten times the count of features if that is larger, this many are drawn at random.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1)) @ [[1.0, 1.0]] + 0.1 * rng.normal(size=(2000, 2))
    >>> x[rng.random(x.shape) < 0.2] = np.nan
    >>> fit_row_gaussian(x).covariance.round(decimals=1)
    tensor([[1., 1.],
            [1., 1.]], dtype=torch.float64)
    """
    most = max(MOST_ROWS, 10 * values.shape[1])
    if len(values) > most:
        some = values[np.sort(np.random.default_rng(0).choice(len(values), most, replace=False))]
        values = values if np.isnan(some).all(axis=0).any() else some
    blocks = [
        torch.from_numpy(values[start : start + BLOCK].astype(np.float64))
        for start in range(0, len(values), BLOCK)
    ]
    hidden = [block.isnan() for block in blocks]
    mean, variance = _observed_moments(blocks, hidden)
    if not any(bool(missing.any()) for missing in hidden):
        return _complete(blocks, mean, variance)
    patterns = [Patterns(missing) for missing in hidden]
    now = RowGaussian(mean, torch.diag(variance))
    for _ in range(MAX_ITERATIONS):
        before, now = now, _step(now, blocks, patterns)
        scale = before.covariance.diagonal().sqrt()
        change = torch.maximum(
            ((now.mean - before.mean) / scale).abs().max(),
            ((now.covariance - before.covariance) / scale / scale[:, None]).abs().max(),
        )
        if float(change) < TOLERANCE:
            break
    return now


def _observed_moments(blocks: list[Tensor], hidden: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return means and variances of observed entries, (d,) each."""
    count = torch.stack([(~missing).sum(dim=0) for missing in hidden]).sum(dim=0).double()
    mean = torch.stack([block.nansum(dim=0) for block in blocks]).sum(dim=0) / count
    square = sum((block - mean).nan_to_num(0.0).square().sum(dim=0) for block in blocks) / count
    floor = LEAST_VARIANCE * (mean.square() + square)
    return mean, torch.where(square > floor, square, floor.clamp(min=1e-300) + (floor == 0))


def _step(now: RowGaussian, blocks: list[Tensor], patterns: list[Patterns]) -> RowGaussian:
    """Make one E-step and one M-step."""
    N, d = sum(len(block) for block in blocks), len(now.mean)
    precision = inverted(now.covariance)
    total = now.mean.new_zeros(d)
    moments = torch.zeros_like(now.covariance)  # about the present mean
    for block, own in zip(blocks, patterns, strict=True):
        conditional = Conditional(own, now.mean, precision)
        residual = conditional.means(block) - now.mean
        total += residual.sum(dim=0)
        moments += residual.T @ residual
        moments += conditional.total(own.summed(residual.new_ones(len(residual))))
    shift = total / N
    covariance = moments / N - torch.outer(shift, shift)
    return RowGaussian(now.mean + shift, _shrunk(covariance, now.covariance.diagonal(), N))


def _complete(blocks: list[Tensor], mean: Tensor, variance: Tensor) -> RowGaussian:
    """Return the Gaussian of rows of which nothing is missing: there is nothing to iterate."""
    residuals = (block - mean for block in blocks)
    moments = torch.stack([x.T @ x for x in residuals]).sum(dim=0)
    N = sum(len(block) for block in blocks)
    return RowGaussian(mean, _shrunk(moments / N, variance, N))


def _shrunk(covariance: Tensor, variance: Tensor, N: int) -> Tensor:
    """Add d rows without correlation to N; a feature without variance gets the given one."""
    d = len(covariance)
    own = covariance.diagonal()
    own = torch.where(own > 0, own, variance)
    covariance = (N * covariance + d * torch.diag(own)) / (N + d)
    return (covariance + covariance.T) / 2


class CompletedRows(RaggedRows):
    """Samples without missing entries that remember which were missing.

    Parameters
    ----------
    rows : RaggedRows
        Rows with NaN where an entry is missing.
    values : array of shape (N, d)
        The same rows with these entries filled in.
    shift : array of shape (N,), optional
        What is added to the scores of rows because entries were filled in.

    Attributes
    ----------
    missing : bool array of shape (N, d)
    """

    __slots__ = ("_shift", "missing")

    def __init__(
        self, rows: RaggedRows, values: np.ndarray, shift: np.ndarray | None = None
    ) -> None:
        super().__init__(values, rows.offsets, rows.feature_names, rows.sample_ids, rows.row_ids)
        self._weighted(rows.row_weight)
        self.missing, self._shift = np.isnan(rows.values), shift

    @property
    def log_prior(self) -> np.ndarray | None:
        """What is added to scores: logarithms of weights, and what missing entries do to them."""
        own = super().log_prior
        if self._shift is None or own is None:
            return own if self._shift is None else self._shift
        return own + self._shift


def completed(rows: RaggedRows, means: np.ndarray, covariances: np.ndarray) -> CompletedRows:
    """Fill in the missing entries of samples by their conditional means; see `filled_in`.

    Examples
    --------
    >>> rows = RaggedRows.from_samples([[[0.0, np.nan], [1.0, 2.0]]])
    >>> found = completed(rows, np.array([[0.0, 3.0]]), np.array([[[1.0, 0.5], [0.5, 1.0]]]))
    >>> found.values.tolist()
    [[0.0, 3.0], [1.0, 2.0]]
    """
    given = torch.from_numpy(np.array(rows.values))
    gaussians = (torch.from_numpy(np.asarray(a, dtype=np.float64)) for a in (means, covariances))
    values, shift = filled_in(given, given.isnan(), *gaussians)
    return CompletedRows(rows, values.numpy(), None if shift is None else shift.numpy())


def filled_in(
    values: Tensor, missing: Tensor, means: Tensor, covariances: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Return rows whose missing entries are conditional means, and a shift of scores.

    Parameters
    ----------
    values : tensor of shape (N, d)
    missing : bool tensor of shape (N, d)
    means, covariances : tensors of shapes (k, d) and (k, d, d), float64
        Parameters of one Gaussian for all rows (k = 1), or of two, for background and for active
        rows. With two, entries are filled in as if rows were active, and scores are shifted to the
        log density ratio of the observed entries (`active_rows`).

    Returns
    -------
    values : tensor of shape (N, d)
    shift : tensor of shape (N,), or None for one Gaussian
    """
    found, shift = values.clone(), means.new_zeros(len(values))
    precision = inverted(covariances)
    for at in torch.nonzero(missing.any(dim=1))[:, 0].split(BLOCK):
        patterns = Patterns(missing[at])
        own = [Conditional(patterns, *pair) for pair in zip(means, precision, strict=True)]
        block = values[at].double()
        if len(own) == 1:
            found[at] = own[0].means(block).to(values.dtype)
            continue
        rows, _, shift[at] = active_rows(block, *own)
        found[at] = rows.to(values.dtype)
    return found, None if len(means) == 1 else shift
