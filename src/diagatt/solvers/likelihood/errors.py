r"""Standard errors of the latent-row model: the sandwich over rows' distributions and response.

Gaussian distributions of rows are an exponential family, :math:`\log f_k(x) = η_k·T(x) - a(η_k)`
with T(x) the products and entries of x. Scores of rows, :math:`\log f_k - \log f_0`, have the
slopes T − E_k T and −(T − E_0 T), and a curves by the covariance of T. Standard errors of values do
not depend on how other parameters are written, so natural ones serve. Where samples may have no
active row, the log odds of having none and the value of the none-row are parameters, too.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from diagatt.attention.coupling import weighted_assignments
from diagatt.attention.none_row import with_none
from diagatt.scores import ScoreForm
from diagatt.segments import places_before_last, segment_logsumexp, segment_sum, spread
from diagatt.solvers.likelihood.latent_rows import LatentRows, NoneModel, RowModel
from diagatt.solvers.problem import Samples
from diagatt.solvers.sandwich import Errors, covariance_of, too_many
from diagatt.solvers.sandwich.derivatives import At, Losses, pieces_of
from diagatt.solvers.sandwich.parameters import (
    Block,
    common_directions,
    constant_values,
    is_none_row,
    with_none_rows,
    with_zeros,
)


def latent_errors(
    latent: LatentRows, samples: Samples, form: ScoreForm, distinct: bool, ridge: float
) -> Errors:
    """Return the covariance of (V, b, γ) of a fit with free covariances and without context."""
    samples = samples.to(torch.float64)
    R, d, K = latent.response.value.shape
    q = d * (d + 1) // 2 + d * form.has_constant
    count = (R + 1) * q + (R * d + 1 + samples.n_covariates) * K + samples.family.has_dispersion
    none = latent.response.none
    count += 0 if none is None else 1 + K
    if reason := too_many(count, samples, R):
        return Errors(None, reason)
    rows = _scaled(latent.rows, samples.values, form)
    blocks, covariances = _row_blocks(*rows, form)
    blocks += _response_blocks(samples, R, K)
    background = blocks[R].columns  # −(T − E_0 T)
    if samples.log_prior is not None:
        background = samples.log_prior.exp()[:, None] * background
    at, candidates = _at(latent, samples), samples
    if none is not None:
        blocks, at, candidates = _with_none(blocks, at, samples, none)
    losses = _losses(candidates, distinct, none is not None)
    pieces, slopes = pieces_of(losses, at, blocks, candidates)
    pieces.scores[:, R * q : (R + 1) * q] += samples.weights[:, None] * segment_sum(
        background, samples.offsets
    )
    total = float(samples.weights.sum())  # Σ w P(some row is active)
    if none is not None:
        total = -float(slopes[places_before_last(samples.offsets)].sum())
    of_rows = float((samples.weights * samples.row_mass).sum())
    for k in range(R + 1):
        own = slice(k * q, (k + 1) * q)
        times = total if k < R else of_rows - R * total
        pieces.hessian[own, own] += times * covariances[k]
    values = torch.arange((R + 1) * q, (R + 1) * q + R * d * K)
    slope, curvature = pieces.scores.new_zeros(count), pieces.scores.new_zeros(count, count)
    phi = latent.response.phi
    slope[values] = ridge / phi * latent.response.value.permute(0, 2, 1).flatten().to(slope)
    curvature[values, values] = ridge / phi
    if none is not None:
        slope[-K:], curvature[range(-K, 0), range(-K, 0)] = ridge / phi * none.value, ridge / phi
    wanted = _order(R, d, K, samples.n_covariates) + (R + 1) * q
    flat = common_directions(wanted, K, count, samples.family)
    known = (samples, wanted, constant_values(samples, R), flat)
    return covariance_of(pieces, slope, curvature, *known, check_minimum=False)


def _with_none(
    blocks: list[Block], at: At, samples: Samples, none: NoneModel
) -> tuple[list[Block], At, Samples]:
    """Return blocks, numbers and samples with none-rows; their parameters come last."""
    offsets, own = samples.offsets, is_none_row(samples.offsets)
    longer = [
        block._replace(columns=with_zeros(block.columns, offsets))
        if block.enters in ("scores", "effects")
        else block
        for block in blocks
    ]
    longer.append(Block("scores", (0,), own))
    longer += [Block("effects", (0, k), own) for k in range(len(none.value))]
    odds = own.new_tensor([none.prevalence]).logit().neg()
    rows = with_none(at.scores, at.effects, offsets, odds, none.value[None].to(own))
    at = at._replace(scores=rows.scores, effects=rows.effects)
    return longer, at, with_none_rows(samples)


def _scaled(rows: RowModel, values: Tensor, form: ScoreForm) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows of unit scale with the means (R + 1, d) and covariances they then have."""
    shift = values.mean(dim=0) if form.has_constant else torch.zeros_like(values[0])
    scale = (values - shift).square().mean(dim=0).sqrt()
    scale = torch.where(scale > 0, scale, 1.0)  # of constant features
    means = rows.A[:, :, 0] if form.has_constant else torch.zeros_like(rows.C[:, 0])
    return (values - shift) / scale, (means - shift) / scale, rows.C / scale / scale[:, None]


def _row_blocks(
    values: Tensor, means: Tensor, C: Tensor, form: ScoreForm
) -> tuple[list[Block], list[Tensor]]:
    """Return blocks of η_1, …, η_R, η_0, and the covariances of T under each."""
    d = values.shape[1]
    a, b = torch.triu_indices(d, d)
    T = values[:, a] * values[:, b]
    if form.has_constant:
        T = torch.cat([T, values], dim=1)
    blocks, covariances = [], []
    for k in [*range(1, len(C)), 0]:
        expected, covariance = gaussian_moments(means[k], C[k], form.has_constant)
        index, columns = ((k - 1,), T - expected) if k else ((), expected - T)
        blocks.append(Block("scores", index, columns))
        covariances.append(covariance)
    return blocks, covariances


def gaussian_moments(mean: Tensor, C: Tensor, with_entries: bool = True) -> tuple[Tensor, Tensor]:
    """Return mean and covariance of T(x) = (x_a x_b for a ≤ b, then x_a) for x ∼ N(mean, C).

    Examples
    --------
    >>> gaussian_moments(torch.zeros(1), torch.eye(1))
    (tensor([1., 0.]), tensor([[2., 0.],
            [0., 1.]]))
    """
    a, b = torch.triu_indices(len(mean), len(mean))
    expected = C[a, b] + mean[a] * mean[b]

    def cross(i: Tensor, j: Tensor) -> Tensor:
        return C[i][:, j]

    def outer(i: Tensor, j: Tensor) -> Tensor:
        return mean[i][:, None] * mean[j]

    products = cross(a, a) * cross(b, b) + cross(a, b) * cross(b, a)
    for i, j in ((a, a), (a, b), (b, a), (b, b)):
        rest_i, rest_j = (b if i is a else a), (b if j is a else a)
        products = products + outer(i, j) * cross(rest_i, rest_j)
    if not with_entries:
        return expected, products
    mixed = mean[a][:, None] * C[b] + mean[b][:, None] * C[a]  # (q, d)
    both = torch.cat([torch.cat([products, mixed], dim=1), torch.cat([mixed.T, C], dim=1)])
    return torch.cat([expected, mean]), both


def _response_blocks(samples: Samples, R: int, K: int) -> list[Block]:
    blocks = [Block("effects", (r, k), samples.values) for r in range(R) for k in range(K)]
    ones = samples.weights.new_ones(samples.n_samples, 1)
    blocks += [Block("shared", (k,), ones) for k in range(K)]
    blocks += [Block("shared", (k,), samples.covariates) for k in range(K)]
    return blocks + ([Block("log_phi", (), ones)] if samples.family.has_dispersion else [])


def _order(R: int, d: int, K: int, q: int) -> Tensor:
    """Return the places of (V, b, γ), output by output, among response blocks."""
    found = []
    for k in range(K):
        found += [torch.arange(d) + (r * K + k) * d for r in range(R)]
        found += [torch.tensor([R * K * d + k])]
        found += [torch.arange(q) + R * K * d + K + k * q]
    return torch.cat(found)


def _at(latent: LatentRows, samples: Samples) -> At:
    """Return log density ratios of rows, effects and shared terms at the fit."""
    W, T = latent.rows.score_terms()
    context = samples.values.new_ones(samples.n_samples, T.shape[2])
    scores = torch.einsum("nd,rde,ne->nr", samples.values, W, samples.values)
    scores = scores + samples.values @ T.sum(dim=2).T
    if samples.log_prior is not None:
        scores = scores + samples.log_prior[:, None]
    scores = scores + spread(latent.rows.score_constants(context), samples.offsets)
    effects = torch.einsum("nd,rdk->nrk", samples.values, latent.response.value)
    F = torch.cat([samples.weights.new_ones(samples.n_samples, 1), samples.covariates], dim=1)
    log_phi = samples.y.new_tensor(latent.response.phi).log().expand(samples.n_samples)
    shared = F @ latent.response.shared
    if samples.offset is not None:
        shared = shared + samples.offset
    return At(scores, effects, shared, log_phi)


def _losses(samples: Samples, distinct: bool, has_none: bool) -> Losses:
    """Return the function of `At` that gives −log Σ exp(scores) p(y | z) of samples, (n,).

    With none-rows, log π is added to it.
    """
    last = samples.offsets[1:] - 1
    log_count = (samples.offsets.diff() - 1).to(samples.y).log()

    def losses(at: At) -> Tensor:
        given = (at.scores, at.effects, at.shared, samples.offsets, distinct)
        log_weights, z, places = weighted_assignments(*given)
        phi = spread(at.log_phi.exp(), places) if samples.family.has_dispersion else 1.0
        terms = log_weights + samples.family.log_density(spread(samples.y, places), z, phi)
        if samples.log_known is not None:
            terms = terms + samples.log_known
        found = -segment_logsumexp(terms, places)
        return found + softplus(at.scores[last, 0] - log_count) if has_none else found

    return losses
