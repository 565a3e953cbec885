"""The ordinal family: ordered classes, by proportional odds."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from diagatt.families.base import Family


class Ordinal(Family):
    r"""Cumulative logit (proportional odds), y in {0, …, K − 1} in their order.

    .. math:: \operatorname{logit} P(y > k) = z - θ_k, \qquad 0 = θ_0 < θ_1 < … < θ_{K-2}

    One predictor z moves all classes; its intercept stands for the first threshold. The shape is
    the gaps between the thresholds, which are estimated. Class probabilities that are no such model
    (those of several models together) have K − 1 predictors, the logits of P(y > k).
    """

    name = "ordinal"
    classifies = True
    orders_classes = True
    predicts_classes = True
    needs_mixture = True  # pooling a low and a high row gives a class in the middle
    response_range = "0, 1, …, n_classes − 1"
    estimates_shape = True
    curvature_bound = 0.5  # f(a) + f(b) with f = σ(1 − σ) ≤ 1/4

    def of_classes(self, n_classes):
        """Return the family with n_classes − 2 gaps between thresholds."""
        return self.with_shape(torch.ones(n_classes - 2, dtype=torch.float64))

    def thresholds(self, like: Tensor) -> Tensor:
        """Return θ_0, …, θ_{K−2}, (K − 1,)."""
        gaps = self.shape.to(like)
        return torch.cat([gaps.new_zeros(1), gaps.cumsum(dim=0)])

    def widened(self, z):
        """Return the logits of P(y > k), (n, K − 1); predictors (n, 1) have the thresholds."""
        steps = self.thresholds(z)
        return z - steps if z.shape[1] == 1 and len(steps) > 1 else z

    def inverse_link(self, z):
        """Return class probabilities, (n, K)."""
        above = torch.sigmoid(self.widened(z))
        one, zero = torch.ones_like(above[:, :1]), torch.zeros_like(above[:, :1])
        return (torch.cat([one, above], dim=1) - torch.cat([above, zero], dim=1)).clamp(min=0)

    def link(self, mean):
        """Return the logits of P(y > k), (n, K − 1), of class probabilities (n, K)."""
        above = mean.flip(1).cumsum(dim=1).flip(1)[:, 1:]
        below = mean.cumsum(dim=1)[:, :-1]
        return torch.log(above) - torch.log(below)

    def _bounds(self, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the logits on both sides of the class, and whether it has these sides, (n,)."""
        eta = self.widened(z)  # (n, K − 1)
        k, last = y.long()[:, None], eta.shape[1]
        low = eta.gather(1, (k - 1).clamp(min=0))[:, 0]  # of P(y > k − 1)
        high = eta.gather(1, k.clamp(max=last - 1))[:, 0]  # of P(y > k)
        return low, high, k[:, 0] > 0, k[:, 0] < last

    def loss(self, y, z):
        """Return −log P(y), stable where the probability is tiny."""
        low, high, has_low, has_high = self._bounds(y, z)
        # P = σ(low) − σ(high) = σ(low) σ(−high) (1 − e^{high − low})
        gap = torch.where(has_low & has_high, low - high, 1.0)
        between = torch.where(has_low & has_high, torch.log(-torch.expm1(-gap)), 0.0)
        outside = torch.where(has_low, F.softplus(-low), 0.0)
        return outside + torch.where(has_high, F.softplus(high), 0.0) - between

    def gradient(self, y, z):
        low, high, has_low, has_high = self._bounds(y, z)
        upper = torch.where(has_high, torch.sigmoid(high), 0.0)
        lower = torch.where(has_low, torch.sigmoid(-low), 0.0)
        if z.shape[1] == 1:
            return (upper - lower)[:, None]
        gap = torch.where(has_low & has_high, low - high, 1.0)
        between = torch.where(
            has_low & has_high, 1 / torch.expm1(gap), 0.0
        )  # of −log(1 − e^{−gap})
        slope, k = torch.zeros_like(z), y.long()[:, None]
        of_low = torch.where(has_low, -lower - between, 0.0)[:, None]
        of_high = torch.where(has_high, upper + between, 0.0)[:, None]
        slope.scatter_add_(1, (k - 1).clamp(min=0), of_low)
        return slope.scatter_add_(1, k.clamp(max=z.shape[1] - 1), of_high)

    def curvature(self, y, z):
        """Return ∂²ℓ/∂z², (n, 1, 1), of predictors (n, 1)."""
        low, high, has_low, has_high = self._bounds(y, z)
        upper, lower = torch.sigmoid(high), torch.sigmoid(low)
        both = torch.where(has_high, upper * (1 - upper), 0.0)
        return (both + torch.where(has_low, lower * (1 - lower), 0.0))[:, None, None]

    def null_predictor(self, y, weights):
        above = (weights * (y > 0).to(weights)[:, None]).sum(dim=0) / weights.sum(dim=0)
        return torch.logit(above.clamp(1e-3, 1 - 1e-3))[:, None]

    def started(self, y, weights):
        """Return the family with the thresholds of the classes' shares."""
        w = weights.double() / weights.double().sum()
        shares = torch.bincount(y.long(), w, minlength=len(self.shape) + 2).clamp(min=1e-6)
        above = shares.flip(0).cumsum(dim=0).flip(0)[1:]
        logits = torch.log(above) - torch.log((1 - above).clamp(min=1e-6))
        return self.with_shape((logits[:-1] - logits[1:]).clamp(min=1e-3))

    def is_valid(self, y):
        return torch.isfinite(y) & (y >= 0) & (y == y.round())
