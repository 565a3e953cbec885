"""Derivatives of the loss in all parameters, through the few numbers per row that it sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import segment_sum
from diagatt.solvers.problem import Samples
from diagatt.solvers.sandwich.covariance import Pieces
from diagatt.solvers.sandwich.parameters import Block, lengthened, places_of


class At(NamedTuple):
    """What the loss of samples depends on."""

    scores: Tensor  # (N, R)
    effects: Tensor  # (N, R, K)
    shared: Tensor  # (n, K)
    log_phi: Tensor  # (n,)


Losses = Callable[[At], Tensor]


@torch.no_grad()
def at_fit(module: DiagonalAttention, samples: Samples, log_phi: Tensor) -> At:
    """Return the numbers of all rows and samples at the fitted parameters."""
    rows = (samples.values, samples.offsets, samples.log_prior)
    scores, effects, _ = module.candidates(*rows)
    shared = module.shared(samples.offsets, samples.covariates, samples.offset)
    return At(scores, effects, shared, log_phi.expand(samples.n_samples))


def losses_of(module: DiagonalAttention, samples: Samples, has_phi: bool) -> Losses:
    """Return the function of `At` that gives ℓ_i, (n,)."""

    def losses(at: At) -> Tensor:
        rows, offsets = (at.scores, at.effects, at.shared), samples.offsets
        if module.readout == "pooled":
            return samples.family.loss(samples.y, module.predictors_of(*rows, offsets))
        phi = at.log_phi.exp() if has_phi else 1.0
        return -module.log_density_of(samples.y, *rows, offsets, phi, samples.log_known)

    return losses


def pieces_of(
    losses: Losses, at: At, blocks: list[Block], samples: Samples
) -> tuple[Pieces, Tensor]:
    """Return scores of samples, the Hessian, and ∂Σwℓ/∂ψ, (N, R)."""
    point = At(*(number.detach().clone().requires_grad_() for number in at))
    total = (samples.weights * losses(point)).sum()
    slopes = _grad(total, point, create_graph=True)
    own = dict(zip(At._fields, slopes, strict=True))
    scores = []
    for enters, index, columns in blocks:
        terms = _part(own[enters].detach(), index)[:, None] * columns
        by_row = enters in ("scores", "effects")
        scores.append(segment_sum(terms, samples.offsets) if by_row else terms)
    lines = []
    for enters, index, columns in blocks:
        slope = _part(own[enters], index)
        for k in range(columns.shape[1]):
            if not slope.requires_grad:
                lines.append(columns.new_zeros(sum(b.columns.shape[1] for b in blocks)))
                continue
            bent = _grad((slope * columns[:, k]).sum(), point)
            lines.append(_back(At(*bent), blocks))
    return Pieces(torch.cat(scores, dim=1), torch.stack(lines)), own["scores"].detach()


def coupled_pieces(
    module: DiagonalAttention, at: At, blocks: list[Block], samples: Samples
) -> tuple[Pieces, Tensor]:
    """Return the same of a partial likelihood, whose scores are Lin and Wei's residuals.

    With the slopes J of predictors in parameters and g of the loss in predictors, the Hessian is
    Jᵀ(∂²ℓ/∂z²)J + Σ_i g_i ∂²z_i.
    """
    plain = replace(samples, weights=torch.ones_like(samples.weights))

    def predictor(at: At) -> Tensor:
        return module.predictors_of(at.scores, at.effects, at.shared, samples.offsets)[:, 0]

    z = predictor(at)
    slope = samples.risk_sets.gradient(z).detach()
    of_predictors, _ = pieces_of(predictor, at, blocks, plain)
    bent, of_scores = pieces_of(lambda at: slope * predictor(at), at, blocks, plain)
    J = of_predictors.scores
    hessian = samples.risk_sets.hessian(z, J) + bent.hessian
    return Pieces(samples.risk_sets.scores(z, J), hessian), of_scores


def _grad(value: Tensor, point: At, create_graph: bool = False) -> list[Tensor]:
    found = torch.autograd.grad(
        value, tuple(point), retain_graph=True, create_graph=create_graph, allow_unused=True
    )
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, point, strict=True)]


def _back(slopes: At, blocks: list[Block]) -> Tensor:
    """Chain slopes in numbers of rows to parameters, (q,)."""
    parts = []
    for enters, index, columns in blocks:
        parts.append(columns.T @ _part(getattr(slopes, enters), index))
    return torch.cat(parts)


def _part(numbers: Tensor, index: tuple[int, ...]) -> Tensor:
    """Return the numbers of one head and output, (N,), or their sum over heads."""
    part = numbers
    for place in index:
        part = part[:, place]
    return part.sum(dim=1) if part.ndim > 1 else part


def curved_scores(
    module: DiagonalAttention, samples: Samples, slopes: Tensor, names: list[tuple], count: int
) -> Tensor:
    """Return what factors of W add to the Hessian: ψ is a product of two of them."""
    added = slopes.new_zeros(count, count)
    places = dict(zip([(n[0], n[1]) for n in names], places_of(names), strict=True))
    factors = [n for n in names if n[0] in ("query", "factor")]
    if not factors:
        return added
    rows = lengthened(module, samples)
    for name, r, size, *_ in factors:
        gram = rows.T @ (slopes[:, r : r + 1] * rows)  # (D, D)
        rank = size // len(gram)
        cross = torch.kron(gram, torch.eye(rank).to(gram))  # entry (a, s) with (b, s)
        own = places[(name, r)]
        if name == "factor":
            added[own, own] = 2 * cross
        else:
            other = places[("key", r)]
            added[own, other], added[other, own] = cross, cross.T
    return added
