"""Rows that many fits share, and the products with their parameters."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from diagatt.segments import row_forms, sample_of_row, segment_mean, weighted_gram
from diagatt.solvers.problem import Samples

# One product with all monomials of rows pays if so many times the count of fits exceeds d, and if
# there are no more monomials than this to keep.
MONOMIALS_PAY, MOST_MONOMIALS = 4, 25_000_000


class SharedRows:
    """Samples, and what all fits to them share."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.sample = sample_of_row(samples.offsets)  # (N,)

    @cached_property
    def mean_rows(self) -> Tensor:  # (n, d)
        """Return the mean row of every sample."""
        return segment_mean(self.samples.values, self.samples.offsets, self.samples.log_prior)

    @cached_property
    def monomials(self) -> Tensor:  # (N, Q)
        """Return what the parameters of a quadratic score multiply: products, then features."""
        x = self.samples.values
        d = x.shape[1]
        rows, columns = torch.triu_indices(d, d, device=x.device)
        products = x[:, rows] * x[:, columns]
        return torch.cat([products.mul_(_parameter_scales(d).to(products)), x], dim=1)

    def multiplies(self, n_fits: int) -> bool:
        """Whether one product with all monomials is quicker than one quadratic form per fit."""
        N, d = self.samples.values.shape
        return n_fits * MONOMIALS_PAY >= d and N * score_width(d) <= MOST_MONOMIALS

    def forms(self, theta: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (N, M) and effects (N, L) of all rows, of θ (Q, M) and V (d, L)."""
        values = self.samples.values
        d, M = values.shape[1], theta.shape[1]
        if len(theta) > d and self.multiplies(M):
            return self.monomials @ theta, values @ value
        both = torch.cat([theta[-d:], value], dim=1)
        if len(theta) == d:  # linear scores
            _, linear = row_forms(values, values.new_empty(0, d, d), both)
            return linear[:, :M].contiguous(), linear[:, M:].contiguous()
        W = torch.stack([symmetric_matrix(line[:-d], d) for line in theta.T]) / math.sqrt(d)
        forms, linear = row_forms(values, W, both)
        return forms + linear[:, :M], linear[:, M:]

    def slopes(self, of_scores: Tensor, of_rows: Tensor, quadratic: bool) -> tuple[Tensor, Tensor]:
        """Return slopes in θ (M, Q) and V (L, d) of slopes in scores (N, M), effects (N, L)."""
        values = self.samples.values
        d, M = values.shape[1], of_scores.shape[1]
        if quadratic and self.multiplies(M):
            return of_scores.T @ self.monomials, of_rows.T @ values
        linear = torch.cat([of_scores, of_rows], dim=1).T @ values  # (M + L, d)
        if not quadratic:
            return linear[:M], linear[M:]
        gram = weighted_gram(values, of_scores)  # (M, d, d)
        rows, columns = torch.triu_indices(d, d, device=values.device)
        of_W = gram[:, rows, columns] * _parameter_scales(d).to(gram)
        return torch.cat([of_W, linear[:M]], dim=1), linear[M:]


def _parameter_scales(d: int) -> Tensor:
    """Return ∂ψ/∂θ per product x_a x_b, for a ≤ b: 1/√d, and √2 times it off the diagonal."""
    rows, columns = torch.triu_indices(d, d)
    diagonal = torch.full((len(rows),), 1 / math.sqrt(d), dtype=torch.float64)
    return torch.where(rows == columns, diagonal, math.sqrt(2.0) * diagonal)


def score_width(d: int) -> int:
    """Return the count of parameters of a quadratic score, d(d + 1)/2 + d."""
    return d * (d + 3) // 2


def symmetric_matrix(theta: Tensor, d: int) -> Tensor:
    """Return W of its parameters, (d(d + 1)/2,) → (d, d); zero if there are none.

    Examples
    --------
    >>> symmetric_matrix(torch.tensor([1.0, 0.0, 3.0]), 2)
    tensor([[1., 0.],
            [0., 3.]])
    """
    W = theta.new_zeros(d, d)
    if len(theta):
        rows, columns = torch.triu_indices(d, d, device=theta.device)
        half = theta.new_ones(len(rows)).masked_fill(rows != columns, 1 / math.sqrt(2.0))
        W[rows, columns] = W[columns, rows] = theta * half
    return W
