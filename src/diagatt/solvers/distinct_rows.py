r"""Whether one row of each sample differs, or rows merely have no Gaussian distribution.

In the latent-row model, exactly one row of each sample is drawn from :math:`f_1` and all others
from :math:`f_0`. Two Gaussians also fit rows that are merely not Gaussian, but then each row has
the same chance π to be drawn from :math:`f_1`, whatever the other rows of its sample are. With the
log ratios :math:`ψ_{ij} = \log f_1(x_{ij})/f_0(x_{ij})` the two log-likelihoods are, up to the
same constant,

.. math:: \sum_i \log \frac1{p_i} \sum_j e^{ψ_{ij}}
          \quad\text{and}\quad
          \max_π \sum_{ij} \log\bigl(1 - π + π e^{ψ_{ij}}\bigr) .

Responses play no part.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import softplus

from diagatt.segments import segment_logsumexp, spread
from diagatt.solvers.likelihood.latent_rows import RowModel
from diagatt.solvers.problem import Samples

# EM steps for π, whose likelihood has one maximum, and what it keeps away from 0 and 1.
STEPS, LEAST_SHARE = 100, 1e-6


def log_ratios(rows: Samples, model: RowModel) -> Tensor:
    """Return ψ of every row, (N,), of a model of one head without context."""
    x, one = rows.values, rows.values.new_ones(1, 1)
    W, T = model.score_terms()
    return ((x @ W[0]) * x + x * T[0].T).sum(dim=1) + model.score_constants(one)[0, 0]


def exclusiveness(rows: Samples, psi: Tensor) -> float:
    """Return by how much the first log-likelihood exceeds the second.

    Weights of samples are brought to a mean of 1.

    Examples
    --------
    >>> import torch
    >>> from diagatt.families import get_family
    >>> values, one = torch.zeros(9, 1).double(), torch.ones(3).double()
    >>> three = torch.tensor([0, 3, 6, 9])
    >>> rows = Samples(get_family("gaussian"), values, three, one, one, torch.zeros(3, 0))
    >>> psi = torch.tensor([9.0, -9, -9] * 3).double()  # one of three rows differs clearly
    >>> round(exclusiveness(rows, psi) / 3, 2)  # -log 3 instead of -log 3 + 2 log(2 / 3)
    0.81
    """
    weights = rows.weights.double() / rows.weights.double().mean()
    mass = rows.values.new_ones(len(psi)) if rows.log_prior is None else rows.log_prior.exp()
    together = segment_logsumexp((psi + mass.log())[:, None], rows.offsets)[:, 0]
    exactly_one = (weights * (together - rows.row_mass.double().log())).sum()
    counted = mass * spread(weights, rows.offsets)
    share = float(weights.sum() / counted.sum())
    for _ in range(STEPS):
        share = min(max(share, LEAST_SHARE), 1 - LEAST_SHARE)
        odds = psi + math.log(share / (1 - share))
        share = float((counted * odds.sigmoid()).sum() / counted.sum())
    each_alone = (counted * (softplus(odds) + math.log1p(-share))).sum()
    return float(exactly_one - each_alone)
