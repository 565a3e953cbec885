"""Derivatives of the loss and the penalty in all parameters.

The loss depends on parameters through a few numbers per row only (`At`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import segment_logsumexp, segment_sum
from diagatt.solvers.problem import Samples
from diagatt.solvers.sandwich.parameters import Block, lengthened, pairs, places_of

#: Penalty of a module and φ, added to the summed loss.
Penalty = Callable[[DiagonalAttention, Tensor], Tensor]


@dataclass
class Pieces:
    """Per-sample scores s_i (n, q) and J (q, q) without the penalty."""

    scores: Tensor
    hessian: Tensor


class At(NamedTuple):
    """The numbers on which the loss of samples depends."""

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
        given = (samples.y, *rows, offsets, phi, samples.log_known)
        terms, _, places = module.joint_density_of(*given)
        return -segment_logsumexp(terms, places)

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
    """Return `pieces_of` a partial likelihood, whose scores are Lin and Wei's residuals.

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
    """Return the part of the Hessian that arises because ψ is a product of two factors of W."""
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


@dataclass(frozen=True)
class Objective:
    """The objective of a fit, besides the loss that follows from its module's readout.

    Attributes
    ----------
    penalty : callable
        Of the module and φ, on the scale of the summed loss.
    scores : {"all", "linear", "none"}
        Which parameters of scores were fitted.
    """

    penalty: Penalty
    scores: str = "all"


class _Penalized(nn.Module):
    """A module whose call is the penalty, as `functional_call` needs it."""

    def __init__(self, attention: DiagonalAttention, penalty: Penalty) -> None:
        super().__init__()
        self.attention, self.penalty = attention, penalty

    def forward(self, phi: Tensor) -> Tensor:
        return self.penalty(self.attention, phi)


def penalty_of(
    module: DiagonalAttention, log_phi: Tensor, objective: Objective, names: list[tuple], q: int
) -> tuple[Tensor, Tensor]:
    """Return gradient and Hessian of the penalty, (q,) and (q, q)."""
    called = _Penalized(module, objective.penalty)
    state = {name: tensor.detach() for name, tensor in called.named_parameters()}
    places = places_of(names)

    def total(change: Tensor) -> Tensor:
        tensors = {name: tensor.clone() for name, tensor in state.items()}
        phi = log_phi
        for (name, index, _, *kind), place in zip(names, places, strict=True):
            part = change[place]
            if name == "log_phi":
                phi = log_phi + part[0]
            elif name == "value":
                r, k = index
                tensors["attention.value"][r, :, k] = tensors["attention.value"][r, :, k] + part
            elif name == "none_value":
                own = torch.zeros_like(tensors["attention.none_value"])
                own[0, index] = 1.0
                tensors["attention.none_value"] = tensors["attention.none_value"] + part * own
            elif name == "weight":
                a, b = pairs(module, kind[0])
                W = tensors["attention.query_key.weight"]
                flat = torch.zeros_like(W[index]).index_put((a, b), part)
                both = flat + flat.T - torch.diag(flat.diagonal())
                tensors["attention.query_key.weight"] = torch.cat(
                    [W[:index], (W[index] + both)[None], W[index + 1 :]]
                )
            elif name in ("query", "key", "factor"):
                key = f"attention.query_key.{name}"
                W = tensors[key]
                moved = W[index] + part.reshape(W[index].shape)
                tensors[key] = torch.cat([W[:index], moved[None], W[index + 1 :]])
        return functional_call(called, tensors, (phi.exp(),))

    zero = torch.zeros(q, dtype=torch.float64, device=log_phi.device, requires_grad=True)
    value = total(zero)
    if not value.requires_grad:
        return zero.detach(), torch.zeros(q, q).to(zero.detach())
    slope = torch.autograd.grad(value, zero, create_graph=True)[0]
    if not slope.requires_grad:
        return slope, torch.zeros(q, q).to(slope)
    # One line after the other: a batch of them makes torch import for a second.
    lines = [torch.autograd.grad(slope[k], zero, retain_graph=True)[0] for k in range(q)]
    return slope.detach(), torch.stack(lines)
