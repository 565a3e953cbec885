"""The parameters of a fit, in blocks that enter the same numbers of rows or samples."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.none_row import known_with_none
from diagatt.attention.query_key import FullQueryKey, PSDQueryKey
from diagatt.families import Family
from diagatt.segments import one_longer, spread, with_last
from diagatt.solvers.problem import Samples

BLOCK = 8192  # rows whose products are made in one go


class Block(NamedTuple):
    """Parameters that enter one kind of number per row or sample, linearly."""

    enters: str  # "scores", "effects", "shared" or "log_phi"
    place: tuple[int, ...]  # which head and output; all heads alike if it is empty
    columns: Tensor  # (N, m) of rows or (n, m) of samples


def with_none_rows(samples: Samples) -> Samples:
    """Return samples with a none-row each, whose features are 0."""
    offsets, known = samples.offsets, samples.log_known
    return replace(
        samples,
        values=with_zeros(samples.values, offsets),
        offsets=one_longer(offsets),
        log_known=None if known is None else known_with_none(known, offsets),
    )


def with_zeros(rows: Tensor, offsets: Tensor) -> Tensor:
    """Return rows and none-rows, whose entries are 0, (N + n, m)."""
    return with_last(rows, rows.new_zeros(len(offsets) - 1, rows.shape[1]), offsets)


def is_none_row(offsets: Tensor) -> Tensor:
    """Return 1 for none-rows and 0 for rows, (N + n, 1)."""
    rows = torch.zeros(int(offsets[-1]), 1, dtype=torch.float64, device=offsets.device)
    return with_last(rows, rows.new_ones(len(offsets) - 1, 1), offsets)


def lengthened(module: DiagonalAttention, samples: Samples) -> Tensor:
    """Return lengthened rows x̃ divided by d^¼, (N, D): ψ is their quadratic form in W.

    None-rows have a score of their own: their entries are 0.
    """
    context = module.score_form.context(samples.values, samples.offsets)
    rows = torch.cat([samples.values, spread(context, samples.offsets)], dim=1)
    rows = rows / module.n_features**0.25
    return with_zeros(rows, samples.offsets) if module.has_none else rows


def pairs(module: DiagonalAttention, kind: str) -> tuple[Tensor, Tensor]:
    """Return the entries of a symmetric W that affect the softmax: those of the row's features."""
    d, D = module.n_features, module.score_form.side(module.n_features)
    a, b = torch.triu_indices(D, D)
    seen = (a < d) & (b >= d if kind == "linear" else b >= a)
    return a[seen], b[seen]


def n_parameters(module: DiagonalAttention, samples: Samples, phi: float | None, kind: str) -> int:
    """Return q, counted before columns of all rows are made."""
    if isinstance(module.query_key, FullQueryKey):
        count = module.n_heads * len(pairs(module, kind)[0])
    else:
        count = sum(factor.numel() for factor in module.query_key.parameters())
    effects = (module.n_heads * samples.n_features + 1 + samples.n_covariates) * module.n_outputs
    of_none = 1 + module.n_outputs if module.has_none else 0
    return (count if kind != "none" else 0) + of_none + effects + (phi is not None)


def blocks_of(
    module: DiagonalAttention, samples: Samples, phi: float | None, kind: str
) -> tuple[list[Block], list[tuple]]:
    """Return blocks of parameters, and the tensor and entries of each block."""
    blocks: list[Block] = []
    names: list[tuple] = []
    R, K = module.n_heads, module.n_outputs
    if kind != "none":
        rows = lengthened(module, samples)
        for r in range(R):
            for name, columns in _score_columns(module, rows, r, kind):
                blocks.append(Block("scores", (r,), columns))
                names.append((name, r, columns.shape[1], kind))
    values = with_zeros(samples.values, samples.offsets) if module.has_none else samples.values
    for r in range(R):
        for k in range(K):
            blocks.append(Block("effects", (r, k), values))
            names.append(("value", (r, k), samples.n_features))
    if module.has_none:
        own = is_none_row(samples.offsets)
        blocks += [Block("scores", (0,), own), *(Block("effects", (0, k), own) for k in range(K))]
        names += [("none_score", 0, 1), *(("none_value", k, 1) for k in range(K))]
    ones = samples.weights.new_ones(samples.n_samples, 1)
    for name, columns in (("intercept", ones), ("covariate", samples.covariates)):
        for k in range(K):
            blocks.append(Block("shared", (k,), columns))
            names.append((name, k, columns.shape[1]))
    if phi is not None:
        blocks.append(Block("log_phi", (), ones))
        names.append(("log_phi", 0, 1))
    return blocks, names


def _score_columns(
    module: DiagonalAttention, rows: Tensor, r: int, kind: str
) -> list[tuple[str, Tensor]]:
    """Return ∂ψ_r/∂θ, (N, m), by parameter."""
    form = module.query_key
    if isinstance(form, FullQueryKey):
        a, b = pairs(module, kind)
        columns = rows[:, a].mul_(torch.where(a == b, 1.0, 2.0).to(rows))
        for own, block in zip(columns.split(BLOCK), rows.split(BLOCK), strict=True):
            own.mul_(block[:, b])  # no second array of this size
        return [("weight", columns)]

    def products(factor: Tensor) -> Tensor:  # (N, D·rank)
        return (rows[:, :, None] * (rows @ factor[r].detach())[:, None, :]).flatten(1)

    if isinstance(form, PSDQueryKey):
        return [("factor", 2 * products(form.factor))]
    return [("query", products(form.key)), ("key", products(form.query))]


def places_of(names: list[tuple]) -> list[slice]:
    """Return the places of each block among all parameters."""
    ends, start = [], 0
    for _, _, size, *_ in names:
        ends.append(slice(start, start + size))
        start += size
    return ends


def order_of(module: DiagonalAttention, names: list[tuple]) -> Tensor:
    """Return the places of (V, b, γ), output by output, among all parameters."""
    found: list[Tensor] = []
    for k in range(module.n_outputs):
        for (name, index, *_), place in zip(names, places_of(names), strict=True):
            own = index[1] if name == "value" else index
            if name in ("value", "intercept", "covariate") and own == k:
                found.append(torch.arange(place.start, place.stop))
    return torch.cat(found)


def unidentified(
    module: DiagonalAttention, names: list[tuple], count: int, family: Family
) -> list[Tensor]:
    """Return directions that do not change the model, (q,) each.

    Factors of W can be transformed, L Kᵀ = (LA)(KA⁻ᵀ)ᵀ for any A, and changes that all classes
    share cancel.
    """
    turns = common_directions(order_of(module, names), module.n_outputs, count, family)
    state = {name: tensor.detach() for name, tensor in module.query_key.named_parameters()}
    places = dict(zip([(n[0], n[1]) for n in names], places_of(names), strict=True))
    if family.couples_samples:  # the baseline hazard takes the intercept in
        turns.append(torch.eye(count, dtype=torch.float64)[places["intercept", 0].start])
    for name, r, *_ in names:
        if name not in ("query", "factor"):
            continue
        left = state[name][r]  # (D, rank)
        rank = left.shape[1]
        for a in range(rank):
            for b in range(a + 1, rank) if name == "factor" else range(rank):
                turn, direction = left.new_zeros(rank, rank), left.new_zeros(count)
                turn[a, b] = 1.0
                if name == "factor":
                    direction[places[(name, r)]] = (left @ (turn - turn.T)).flatten()
                else:
                    key = state["key"][r]
                    direction[places[(name, r)]] = (left @ turn).flatten()
                    direction[places[("key", r)]] = -(key @ turn.T).flatten()
                turns.append(direction)
    return turns


def basis_without(directions: list[Tensor], count: int) -> Tensor:
    """Return a basis of what is orthogonal to these directions, (q, q − g).

    Examples
    --------
    >>> basis_without([torch.tensor([1.0, 0.0]), torch.tensor([2.0, 0.0])], 2).abs()
    tensor([[0.],
            [1.]])
    """
    if not directions:
        return torch.eye(count, dtype=torch.float64)
    U, size, _ = torch.linalg.svd(torch.stack(directions, dim=1))  # some may be sums of others
    return U[:, int((size > 1e-10 * size[0]).sum()) :]


def constant_values(samples: Samples, n_heads: int) -> Tensor:
    """Return which of (V, b, γ) are values of features that are the same in all rows, (P,).

    The intercept has the same effect.
    """
    constant = samples.values.amax(dim=0) == samples.values.amin(dim=0)  # (d,)
    others = constant.new_zeros(1 + samples.n_covariates)
    return torch.cat([constant.repeat(n_heads), others]).repeat(samples.n_outputs)


def common_directions(order: Tensor, n_outputs: int, count: int, family: Family) -> list[Tensor]:
    """Return changes of (V, b, γ) that all outputs share, which do not affect a softmax."""
    if not family.has_several_outputs:
        return []
    found = []
    for same in order.reshape(n_outputs, -1).T:
        direction = torch.zeros(count, dtype=torch.float64, device=order.device)
        direction[same] = 1.0
        found.append(direction)
    return found
