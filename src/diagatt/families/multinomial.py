"""The multinomial family: two or more classes."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from diagatt.families.base import Family
from diagatt.segments import segment_logsumexp


class Multinomial(Family):
    """Softmax link, y in {0, …, K − 1}, ℓ = log Σ_k exp(z_k) − z_y."""

    name = "multinomial"
    classifies = True
    has_several_outputs = True
    predicts_classes = True
    response_range = "0, 1, …, n_classes − 1"
    curvature_bound = 0.5  # diag(p) − ppᵀ ⪯ I/2 (Böhning, 1992): one Gram matrix serves all classes
    prefers_bound = True

    def inverse_link(self, z):
        return torch.softmax(z, dim=1)

    def link(self, mean):
        z = torch.log(mean)  # any shift gives the same mean; take the centred one
        return z - z.mean(dim=1, keepdim=True)

    def loss(self, y, z):
        return torch.logsumexp(z, dim=1) - z.gather(1, y.long()[:, None])[:, 0]

    def gradient(self, y, z):
        return torch.softmax(z, dim=1) - F.one_hot(y.long(), z.shape[1]).to(z.dtype)

    def curvature(self, y, z):
        p = torch.softmax(z, dim=1)
        return torch.diag_embed(p) - p[:, :, None] * p[:, None, :]

    def mixed_predictor(self, log_probability, z, offsets):
        each = log_probability[:, None] + torch.log_softmax(z, dim=1)
        mixed = segment_logsumexp(each, offsets)
        return mixed - mixed.mean(dim=1, keepdim=True)

    def is_valid(self, y):
        return torch.isfinite(y) & (y >= 0) & (y == y.round())

    def n_outputs(self, n_classes=None):
        if n_classes is None:
            raise ValueError("the multinomial family needs the count of classes.")
        return n_classes
