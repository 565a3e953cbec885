"""Patterns of missing entries, and the conditional Gaussian of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Group(NamedTuple):
    """Patterns that miss the same count of entries, m, and the n rows that have one of them."""

    patterns: Tensor  # (p,)
    columns: Tensor  # (p, m) which entries are missing
    rows: Tensor  # (n,)
    of_row: Tensor  # (n,) which of the p patterns the row has


class Patterns:
    """Which entries of rows are missing; rows with the same missing entries share a pattern.

    Parameters
    ----------
    missing : bool tensor of shape (N, d)

    Attributes
    ----------
    missing : bool tensor of shape (P, d)
        The different patterns.
    of_row : tensor of shape (N,)
        The pattern of each row.
    count : tensor of shape (P,)
        How many entries each pattern misses.
    groups : list of Group
        Patterns by that count, without the pattern of complete rows.

    Examples
    --------
    >>> Patterns(torch.tensor([[True, False], [False, False], [True, False]])).count.tolist()
    [0, 1]
    """

    def __init__(self, missing: Tensor) -> None:
        packed = np.packbits(missing.cpu().numpy(), axis=1)
        _, first, code = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        device = missing.device
        self.missing = missing[torch.from_numpy(first).to(device)]
        self.of_row = torch.from_numpy(code.reshape(-1)).to(device)
        self.count = self.missing.sum(dim=1)
        self.groups = [self._group(m) for m in self.count.unique().tolist() if m > 0]

    def _group(self, m: int) -> Group:
        patterns = torch.nonzero(self.count == m)[:, 0]
        columns = torch.nonzero(self.missing[patterns])[:, 1].reshape(len(patterns), m)
        place = torch.full_like(self.count, -1)
        place[patterns] = torch.arange(len(patterns), device=place.device)
        slot = place[self.of_row]  # (N,), −1 for rows of other groups
        rows = torch.nonzero(slot >= 0)[:, 0]
        return Group(patterns, columns, rows, slot[rows])

    def is_incomplete(self) -> Tensor:
        """Return which rows miss an entry, (N,)."""
        return self.count[self.of_row] > 0

    def summed(self, weights: Tensor) -> Tensor:
        """Return the sums of weights of rows, (N,), by pattern, (P,)."""
        return weights.new_zeros(len(self.count)).index_add_(0, self.of_row, weights)


class Conditional:
    r"""What N(μ, C) says about the missing entries of rows, pattern by pattern, in float64.

    Parameters
    ----------
    patterns : Patterns
    mean : tensor of shape (d,)
    precision : tensor of shape (d, d)
        K = C⁻¹.

    Attributes
    ----------
    log_det : tensor of shape (P,)
        :math:`\log|K_{mm}|`; 0 if nothing is missing.
    """

    def __init__(self, patterns: Patterns, mean: Tensor, precision: Tensor) -> None:
        self.patterns, self.mean, self.precision = patterns, mean, precision
        self.log_det = mean.new_zeros(len(patterns.count))
        self._covariances = []  # K_mm⁻¹, (p, m, m), by group
        for group in patterns.groups:
            columns = group.columns
            block = precision[columns[:, :, None], columns[:, None, :]]
            factor = torch.linalg.cholesky(block)
            self._covariances.append(torch.cholesky_inverse(factor))
            logs = factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
            self.log_det[group.patterns] = 2 * logs

    def means(self, values: Tensor) -> Tensor:
        """Return rows, (N, d), with the conditional means of their missing entries.

        The values in the place of missing entries are ignored.
        """
        missing = self.patterns.missing[self.patterns.of_row]
        residual = (values - self.mean).masked_fill(missing, 0.0)
        pull, found = residual @ self.precision, residual + self.mean
        for group, covariance in zip(self.patterns.groups, self._covariances, strict=True):
            at = (group.rows[:, None], group.columns[group.of_row])  # (n, m)
            found[at] -= (covariance[group.of_row] @ pull[at][:, :, None])[:, :, 0]
        return found

    def times(self, vector: Tensor) -> Tensor:
        """Return M v of every pattern, (P, d); M is K_mm⁻¹ for missing entries and 0 elsewhere."""
        found = vector.new_zeros(self.patterns.missing.shape)
        for group, covariance in zip(self.patterns.groups, self._covariances, strict=True):
            own = (covariance @ vector[group.columns][:, :, None])[:, :, 0]
            found[group.patterns[:, None], group.columns] = own
        return found

    def total(self, weights: Tensor) -> Tensor:
        """Return Σ w_P M_P, (d, d), for weights of patterns, (P,)."""
        d = len(self.mean)
        found = torch.zeros(d * d, dtype=torch.float64, device=weights.device)
        for group, covariance in zip(self.patterns.groups, self._covariances, strict=True):
            own = weights[group.patterns]
            used = torch.nonzero(own)[:, 0]
            if not len(used):
                continue
            columns = group.columns[used]
            place = columns[:, :, None] * d + columns[:, None, :]
            terms = own[used, None, None] * covariance[used]
            found += torch.bincount(place.flatten(), terms.flatten(), minlength=d * d)
        return found.reshape(d, d)


def active_rows(values: Tensor, background: Conditional, active: Conditional) -> tuple[Tensor, ...]:
    r"""Return rows as they are expected if they are active, and what that does to their score.

    The score of the completed row :math:`\hat x` is :math:`\log f_1(\hat x)/f_0(\hat x)`. That of
    the observed entries, :math:`\log f_1(x_o)/f_0(x_o)`, is larger by

    .. math:: \tfrac12 \log\frac{|K_{0,mm}|}{|K_{1,mm}|} - \tfrac12 δ^⊤ K_0 δ,

    where δ is the difference between the means of missing entries of active and background rows.

    Parameters
    ----------
    values : tensor of shape (N, d), float64
    background, active : Conditional

    Returns
    -------
    active : tensor of shape (N, d)
        Rows with the conditional means of missing entries of active rows.
    background : tensor of shape (N, d)
        The same for background rows.
    shift : tensor of shape (N,)
        What is added to scores of `active`: a log prior.
    """
    means, others = active.means(values), background.means(values)
    gap = means - others
    pattern = active.patterns.of_row
    shift = 0.5 * (background.log_det - active.log_det)[pattern]
    return means, others, shift - 0.5 * torch.sum((gap @ background.precision) * gap, dim=1)
