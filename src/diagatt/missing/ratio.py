"""Incomplete rows under two Gaussians: active rows against the background."""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.missing.patterns import Conditional


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
