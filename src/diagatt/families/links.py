"""Links that several families share, with the predictor of a mixture's mean under each."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from diagatt.families.base import Family
from diagatt.segments import segment_logsumexp


class IdentityLink(Family):
    """A family whose predictor is the mean."""

    has_identity_link = True

    def inverse_link(self, z):
        return z

    def link(self, mean):
        return mean


class LogLink(Family):
    """A family whose predictor is the logarithm of the mean."""

    has_log_link = True

    def inverse_link(self, z):
        return torch.exp(z)

    def link(self, mean):
        return torch.log(mean)

    def mixed_predictor(self, log_probability, z, offsets):
        return segment_logsumexp(log_probability[:, None] + z, offsets)


class LogitLink(Family):
    """A family whose predictor is the log odds of a probability."""

    def inverse_link(self, z):
        return torch.sigmoid(z)

    def link(self, mean):
        return torch.logit(mean)

    def mixed_predictor(self, log_probability, z, offsets):
        both = F.logsigmoid(torch.cat([z, -z], dim=1))  # log P(y = 1), log P(y = 0)
        mixed = segment_logsumexp(log_probability[:, None] + both, offsets)
        return mixed[:, :1] - mixed[:, 1:]
