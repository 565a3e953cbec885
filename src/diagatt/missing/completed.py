"""Samples whose missing entries are filled in, and which remember the missing ones."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from diagatt.missing.patterns import Conditional, Patterns, active_rows
from diagatt.missing.row_gaussian import BLOCK, inverted
from diagatt.ragged import RaggedRows


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
