"""Joint assignments of rows to several heads, in a block of samples, and sums over them."""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.attention.coupling import (
    along,
    head_marginal,
    joint_log_weights,
    n_candidates,
    top_candidates,
)


class JointRows:
    """The best K rows of each of R heads, and functions of all K^R ways to choose one per head.

    A tensor of shape (b, K, …, K) has one entry per sample and assignment, one axis per head.

    Parameters
    ----------
    x : tensor of shape (B, d)
        Packed rows of b samples.
    scores : tensor of shape (B, R)
    offsets : tensor of shape (b + 1,)
    """

    def __init__(self, x: Tensor, scores: Tensor, offsets: Tensor) -> None:
        self.n, self.R = len(offsets) - 1, scores.shape[1]
        self.best, self.rows = top_candidates(scores, offsets, n_candidates(self.R))  # (b, R, K)
        self.chosen = x[self.rows]  # (b, R, K, d)

    def like(self, of_samples: Tensor) -> Tensor:
        """Return a number per sample, (b,), in the shape (b, 1, …, 1)."""
        return along(of_samples[:, None], 0, self.R)

    def log_weights(self, distinct: bool) -> Tensor:
        """Return summed scores of assignments, (b, K, …, K); −∞ where a row is chosen twice."""
        return joint_log_weights(self.best, self.rows, distinct)

    def predictors(self, base: Tensor, value: Tensor) -> Tensor:
        """Return ``base`` plus Σ x v of every assignment, (b·K^R, outputs)."""
        z = base.reshape(self.n, *(1,) * self.R, -1)  # (b, 1, …, outputs)
        for k in range(self.R):
            effect = self.chosen[:, k] @ value[k]  # (b, K, outputs)
            places = (-1 if axis == k else 1 for axis in range(self.R))
            z = z + effect.reshape(self.n, *places, z.shape[-1])
        return z.reshape(-1, z.shape[-1])

    def marginals(self, h: Tensor) -> Tensor:
        """Return sums of h, (b, K, …, K), over all heads but one, (b, R, K)."""
        return torch.stack([head_marginal(h, k) for k in range(self.R)], dim=1)

    def squares(self, marginals: Tensor) -> Tensor:
        """Return weighted second moments of the rows of each head, float64, (R, d, d)."""
        flat = [self.chosen[:, k].flatten(0, 1) for k in range(self.R)]  # (b·K, d)
        weights = [marginals[:, k].reshape(-1, 1) for k in range(self.R)]
        pairs = zip(flat, weights, strict=True)
        return torch.stack([(x.T @ (x * weight)).double() for x, weight in pairs])

    def products(self, marginals: Tensor, context: Tensor) -> Tensor:
        """Return weighted products of the rows of each head with the context, (R, d, q)."""
        pooled = torch.einsum("nrk,nrkd->nrd", marginals, self.chosen)
        return torch.stack([(pooled[:, k].T @ context).double() for k in range(self.R)])

    def features(self, h: Tensor, D: Tensor) -> Tensor:
        """Return Σ h (x_1, …, x_R, D) of each sample, (b, R·d + m)."""
        of_heads = [
            torch.einsum("nk,nkd->nd", head_marginal(h, k), self.chosen[:, k])
            for k in range(self.R)
        ]
        return torch.cat([*of_heads, D * h.flatten(1).sum(dim=1, keepdim=True)], dim=1)

    def gradient(self, slope: Tensor, D: Tensor) -> Tensor:
        """Return Σ slope (x_1, …, x_R, D), (R·d + m, outputs), of slopes (b, K, …, K, outputs)."""
        parts = []
        for k in range(self.R):
            others = [axis + 1 for axis in range(self.R) if axis != k]
            weight = slope.sum(dim=others)  # (b, K, outputs)
            parts.append(torch.einsum("nko,nkd->do", weight, self.chosen[:, k]))
        parts.append(D.T @ slope.reshape(self.n, -1, slope.shape[-1]).sum(dim=1))
        return torch.cat(parts)

    def moments(self, h: Tensor, D: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return second moments of (x_1, …, x_R), theirs with D, and those of D, weighted by h."""
        blocks: list[list[Tensor]] = [[] for _ in range(self.R)]
        pooled = []
        for k in range(self.R):
            weight, own = head_marginal(h, k), self.chosen[:, k]  # (b, K), (b, K, d)
            pooled.append(torch.einsum("nk,nkd->nd", weight, own))
            for other in range(self.R):
                if other < k:
                    blocks[k].append(blocks[other][k].T)
                    continue
                if other == k:
                    mixed = weight[..., None] * own
                else:
                    rest = [axis + 1 for axis in range(self.R) if axis not in (k, other)]
                    pair = h.sum(dim=rest) if rest else h  # (b, K_k, K_other)
                    mixed = pair @ self.chosen[:, other]  # (b, K_k, d)
                blocks[k].append(own.flatten(0, 1).T @ mixed.flatten(0, 1))
        left = torch.cat([torch.cat(line, dim=1) for line in blocks])  # (R·d, R·d)
        cross = torch.cat([P.T @ D for P in pooled])  # (R·d, m)
        mass = h.flatten(1).sum(dim=1)[:, None]
        return left, cross, D.T @ (mass * D)

    def of_rows(self, marginals: Tensor, count: int) -> Tensor:
        """Return marginals as weights of all rows of the block, (count, R)."""
        empty = marginals.new_zeros(count)
        filled = [
            empty.index_add(0, self.rows[:, k].flatten(), marginals[:, k].flatten())
            for k in range(self.R)
        ]
        return torch.stack(filled, dim=1)


def log_assignments(p: Tensor, R: int, distinct: bool) -> Tensor:
    """Return the log count of ways to choose rows, which are equally likely beforehand."""
    if not distinct:
        return R * p.log()
    return torch.lgamma(p + 1) - torch.lgamma(p - R + 1)
