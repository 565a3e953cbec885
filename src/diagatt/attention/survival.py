"""Survival functions of fitted attentions, of mixtures over rows and of blends."""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.attention.blend import Blend, with_mapped
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.families import Times
from diagatt.segments import segment_sum


def survival(
    module: DiagonalAttention | Blend,
    family: Times,
    times: Tensor,
    values: Tensor,
    offsets: Tensor,
    covariates: Tensor | None = None,
    offset: Tensor | None = None,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Return P(T > t) at all times, (n, T): means over rows and members where there are several.

    Parameters
    ----------
    times : tensor of shape (T,)
    values, offsets, covariates, offset
        Packed samples, as the module takes them.
    """
    if isinstance(module, Blend):
        parts = []
        chosen = [member for member in module.members_list if member.weight > 0]
        for member, mapped in with_mapped(chosen, values):
            beside = member.beside(mapped, offsets, covariates, log_prior)
            given = (mapped, offsets, beside, offset, log_prior)
            parts.append(member.weight * survival(member.attention, family, times, *given))
        return torch.stack(parts).sum(dim=0)
    if module.readout == "pooled" or module.groups > 1:
        z = module(values, offsets, covariates, offset=offset, log_prior=log_prior)
        return family.log_survival(times[None], z).exp()
    log_p, z, places = module.assignments(values, offsets, covariates, offset, log_prior)
    each = family.log_survival(times[None], z).exp()  # (M, T)
    return segment_sum(log_p.double().exp()[:, None] * each, places)
