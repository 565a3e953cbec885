r"""Standard errors that hold whatever rows and responses look like: the sandwich.

A fit that minimizes :math:`\sum_i w_i ℓ_i(θ) + P(θ)` over all its parameters θ (scores, values,
intercept, effects of covariates, dispersion) has approximately the covariance

.. math:: J^{-1} \Bigl(\sum_i \frac{s_i s_i^⊤}{1 - h_i}\Bigr) J^{-⊤}, \qquad
          s_i = w_i ∇ℓ_i, \quad J = \sum_i w_i ∇²ℓ_i + ∇²P, \quad
          h_i = q \frac{s_i^⊤ J^{-1} s_i}{\sum_l s_l^⊤ J^{-1} s_l} .

A sample that pulls the fit towards itself has a smaller score there than at the truth. If all pull
alike, h = q/n, and the correction is the usual n/(n − q); rows with heavy tails have samples that
pull much harder, and it is shared out by how much they do. To the sum is added what the penalty
pulls, :math:`J^{-1}∇P` times its transpose: intervals of estimates that are shrunk would miss the
truth more often than they say.

q counts parameters as far as the penalty leaves them free, tr J⁻¹(J − ∇²P). Scores and effects of
rows are linear in θ but for factors of W, so that derivatives are those of the loss in a few
numbers per row, by autograd: a new family needs nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from diagatt.attention.coupling import n_candidates
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.nonerow import known_with_none
from diagatt.attention.query_key import FullQueryKey, PSDQueryKey
from diagatt.families import Family
from diagatt.segments import one_longer, segment_sum, spread, with_last
from diagatt.solvers.problem import Samples

# Rows times parameters, and rows times squared parameters, up to which errors are computed in fit.
MOST_ENTRIES, MOST_WORK = 30_000_000, 20_000_000_000
# Assignments of rows to several heads, over all samples, up to which they are.
MOST_ASSIGNMENTS = 150_000
# Samples per parameter below which no error is trusted.
SAMPLES_PER_PARAMETER = 2.0
# Parameters per sample from which it is not worth finding out how many the penalty leaves free.
HOPELESS = 2.0
# Curvature, relative to the largest of a scaled matrix, below which a direction is not identified.
FLAT = 1e-9
# Leverage of a sample, at most: one that decides a parameter alone leaves no residual to judge by.
MOST_LEVERAGE = 0.9
# Newton step to the minimum, in standard errors, above which a fit is not at it.
MOST_STEP = 0.5

# Why Cox's model has no errors if rows are latent.
BASELINE = (
    "no standard errors: where rows are latent, the baseline hazard is estimated in turns with the "
    "fit; solver='gradient' has them, and a weibull fit."
)

#: Penalty of a module and φ beside the summed loss.
Penalty = Callable[[DiagonalAttention, Tensor], Tensor]


class Errors(NamedTuple):
    """Covariance of (V, b, γ), output by output, or None; and a sentence about it."""

    covariance: Tensor | None
    note: str


@dataclass(frozen=True)
class Objective:
    """What a fit minimizes beside the loss that its module's readout implies.

    Attributes
    ----------
    penalty : callable
        Of the module and φ, on the scale of the summed loss.
    scores : {"all", "linear", "none"}
        Which parameters of scores were fitted.
    """

    penalty: Penalty
    scores: str = "all"


class Block(NamedTuple):
    """Parameters that enter one kind of number per row or sample, linearly."""

    enters: str  # "scores", "effects", "shared" or "log_phi"
    place: tuple[int, ...]  # which head and output; all heads alike if it is empty
    columns: Tensor  # (N, m) of rows or (n, m) of samples


@dataclass
class Pieces:
    """Per-sample scores s_i (n, q) and J (q, q) without the penalty."""

    scores: Tensor
    hessian: Tensor


def sandwich_errors(
    module: DiagonalAttention, samples: Samples, phi: float | None, objective: Objective
) -> Errors:
    """Return the covariance of a fit's values, intercept and covariate effects.

    Parameters
    ----------
    module : DiagonalAttention
        The fit, as a function of the samples' rows.
    samples : Samples
        With `groups`, samples of one group may depend on each other.
    phi : float, optional
        φ̂ of a mixture.
    objective : Objective
    """
    if module.groups > 1:
        return Errors(None, "averaged restarts have no standard errors: set n_restarts=1.")
    module, samples = deepcopy(module).double(), samples.to(torch.float64)
    count = _n_parameters(module, samples, phi, objective.scores)
    if reason := too_many(count, samples, module.n_heads):
        return Errors(None, reason)
    blocks, names = _blocks(module, samples, phi, objective.scores)
    log_phi = samples.y.new_tensor(1.0 if phi is None else phi).log()
    if samples.family.couples_samples:
        if module.readout != "pooled" or module.has_none:
            return Errors(None, BASELINE)
        pieces, of_scores = _coupled_pieces(module, _at(module, samples, log_phi), blocks, samples)
    else:
        candidates = with_none_rows(samples) if module.has_none else samples
        losses = _losses(module, candidates, phi is not None)
        pieces, of_scores = pieces_of(losses, _at(module, samples, log_phi), blocks, candidates)
    pieces.hessian += _curved_scores(module, samples, of_scores, names, count)
    slope, curvature = _penalty(module, log_phi, objective, names, count)
    free = _identified(module, names, count, samples.family)
    found = covariance_of(pieces, slope, curvature, samples, _order(module, names), free)
    if found.covariance is not None and samples.family.couples_samples:
        place = module.n_heads * samples.n_features  # of the intercept, which is not estimated
        found.covariance[place] = found.covariance[:, place] = torch.nan
    return found


def too_many(count: int, samples: Samples, n_heads: int) -> str:
    """Say why so many parameters get no errors, before any of them is computed; "" if they do."""
    n, work = samples.n_samples, samples.n_rows * count
    rows = samples.offsets.diff().clamp(max=n_candidates(n_heads))
    if n_heads > 1 and float((rows.double() ** n_heads).sum()) > MOST_ASSIGNMENTS:
        return f"no standard errors: rows of {n} samples can be assigned to heads in too many ways."
    if count > HOPELESS * n:
        return f"no standard errors: {n} samples are too few for {count} parameters."
    if work > MOST_ENTRIES or work * count > MOST_WORK:
        return f"{count} parameters of {samples.n_rows} rows: too many to give errors."
    return ""


# ---------------------------------------------------------------------- parameters


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


def _lengthened(module: DiagonalAttention, samples: Samples) -> Tensor:
    """Return lengthened rows x̃ divided by d^¼, (N, D): ψ is their quadratic form in W.

    None-rows have a score of their own: their entries are 0.
    """
    context = module.score_form.context(samples.values, samples.offsets)
    rows = torch.cat([samples.values, spread(context, samples.offsets)], dim=1)
    rows = rows / module.n_features**0.25
    return with_zeros(rows, samples.offsets) if module.has_none else rows


def _pairs(module: DiagonalAttention, kind: str) -> tuple[Tensor, Tensor]:
    """Return which entries of a symmetric W the softmax sees: one feature of the row at least."""
    d, D = module.n_features, module.score_form.side(module.n_features)
    a, b = torch.triu_indices(D, D)
    seen = (a < d) & (b >= d if kind == "linear" else b >= a)
    return a[seen], b[seen]


def _n_parameters(module: DiagonalAttention, samples: Samples, phi: float | None, kind: str) -> int:
    """Return q, counted before columns of all rows are made."""
    if isinstance(module.query_key, FullQueryKey):
        count = module.n_heads * len(_pairs(module, kind)[0])
    else:
        count = sum(factor.numel() for factor in module.query_key.parameters())
    effects = (module.n_heads * samples.n_features + 1 + samples.n_covariates) * module.n_outputs
    of_none = 1 + module.n_outputs if module.has_none else 0
    return (count if kind != "none" else 0) + of_none + effects + (phi is not None)


def _blocks(
    module: DiagonalAttention, samples: Samples, phi: float | None, kind: str
) -> tuple[list[Block], list[tuple]]:
    """Return blocks of parameters, and of which tensor and entries each consists."""
    blocks: list[Block] = []
    names: list[tuple] = []
    R, K = module.n_heads, module.n_outputs
    if kind != "none":
        rows = _lengthened(module, samples)
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
        a, b = _pairs(module, kind)
        return [("weight", torch.where(a == b, 1.0, 2.0).to(rows) * rows[:, a] * rows[:, b])]

    def products(factor: Tensor) -> Tensor:  # (N, D·rank)
        return (rows[:, :, None] * (rows @ factor[r].detach())[:, None, :]).flatten(1)

    if isinstance(form, PSDQueryKey):
        return [("factor", 2 * products(form.factor))]
    return [("query", products(form.key)), ("key", products(form.query))]


def _places(names: list[tuple]) -> list[slice]:
    ends, start = [], 0
    for _, _, size, *_ in names:
        ends.append(slice(start, start + size))
        start += size
    return ends


def _order(module: DiagonalAttention, names: list[tuple]) -> Tensor:
    """Return where (V, b, γ) of the outputs, one after the other, stand among all parameters."""
    found: list[Tensor] = []
    for k in range(module.n_outputs):
        for (name, index, *_), place in zip(names, _places(names), strict=True):
            own = index[1] if name == "value" else index
            if name in ("value", "intercept", "covariate") and own == k:
                found.append(torch.arange(place.start, place.stop))
    return torch.cat(found)


def _identified(
    module: DiagonalAttention, names: list[tuple], count: int, family: Family
) -> Tensor | None:
    """Return a basis of directions that change the model, (q, q − g).

    Factors of W can be turned, L Kᵀ = (LA)(KA⁻ᵀ)ᵀ for any A, and what all classes share cancels.
    """
    turns = common_directions(_order(module, names), module.n_outputs, count, family)
    state = {name: tensor.detach() for name, tensor in module.query_key.named_parameters()}
    places = dict(zip([(n[0], n[1]) for n in names], _places(names), strict=True))
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
    if not turns:
        return None
    return torch.linalg.qr(torch.stack(turns, dim=1), mode="complete").Q[:, len(turns) :]


def common_directions(order: Tensor, n_outputs: int, count: int, family: Family) -> list[Tensor]:
    """Return changes of (V, b, γ) that all outputs share, which a softmax does not see."""
    if not family.has_several_outputs:
        return []
    found = []
    for same in order.reshape(n_outputs, -1).T:
        direction = torch.zeros(count, dtype=torch.float64, device=order.device)
        direction[same] = 1.0
        found.append(direction)
    return found


# ---------------------------------------------------------------------- derivatives of the loss


class At(NamedTuple):
    """What the loss of samples depends on."""

    scores: Tensor  # (N, R)
    effects: Tensor  # (N, R, K)
    shared: Tensor  # (n, K)
    log_phi: Tensor  # (n,)


Losses = Callable[[At], Tensor]


@torch.no_grad()
def _at(module: DiagonalAttention, samples: Samples, log_phi: Tensor) -> At:
    rows = (samples.values, samples.offsets, samples.log_prior)
    scores, effects, _ = module.candidates(*rows)
    shared = module.shared(samples.offsets, samples.covariates, samples.offset)
    return At(scores, effects, shared, log_phi.expand(samples.n_samples))


def _losses(module: DiagonalAttention, samples: Samples, has_phi: bool) -> Losses:
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


def _coupled_pieces(
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


def _curved_scores(
    module: DiagonalAttention, samples: Samples, slopes: Tensor, names: list[tuple], count: int
) -> Tensor:
    """Return what factors of W add to the Hessian: ψ is a product of two of them."""
    added = slopes.new_zeros(count, count)
    places = dict(zip([(n[0], n[1]) for n in names], _places(names), strict=True))
    factors = [n for n in names if n[0] in ("query", "factor")]
    if not factors:
        return added
    rows = _lengthened(module, samples)
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


# ---------------------------------------------------------------------- penalty


class _Penalized(nn.Module):
    """Calls the penalty as `functional_call` wants it."""

    def __init__(self, attention: DiagonalAttention, penalty: Penalty) -> None:
        super().__init__()
        self.attention, self.penalty = attention, penalty

    def forward(self, phi: Tensor) -> Tensor:
        return self.penalty(self.attention, phi)


def _penalty(
    module: DiagonalAttention, log_phi: Tensor, objective: Objective, names: list[tuple], q: int
) -> tuple[Tensor, Tensor]:
    """Return gradient and Hessian of the penalty, (q,) and (q, q)."""
    called = _Penalized(module, objective.penalty)
    state = {name: tensor.detach() for name, tensor in called.named_parameters()}
    places = _places(names)

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
                a, b = _pairs(module, kind[0])
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
    slope = torch.autograd.grad(value, zero)[0]
    return slope, torch.autograd.functional.hessian(total, zero.detach(), vectorize=True)


# ---------------------------------------------------------------------- the sandwich itself


def covariance_of(
    pieces: Pieces,
    slope: Tensor,
    curvature: Tensor,
    samples: Samples,
    wanted: Tensor,
    basis: Tensor | None = None,
    check_minimum: bool = True,
) -> Errors:
    """Return the covariance of the wanted parameters, or why there is none.

    Parameters
    ----------
    pieces : Pieces
    slope, curvature : tensors of shapes (q,) and (q, q)
        Of the penalty.
    samples : Samples
    wanted : tensor of int
        Places of the parameters.
    basis : tensor of shape (q, m), optional
        Directions that are identified; all by default.
    check_minimum : bool
        Refuse fits that ended far from their minimum.
    """
    n, units = samples.n_samples, pieces.scores
    B = torch.eye(len(slope)).to(slope) if basis is None else basis
    J = B.T @ (pieces.hessian + curvature) @ B
    J = (J + J.T) / 2
    scale = J.diagonal().abs().clamp(min=1e-300).rsqrt()
    values, vectors = torch.linalg.eigh(scale[:, None] * J * scale)
    largest = float(values[-1])
    if not largest > 0 or float(values[0]) < -1e-6 * largest:
        return Errors(None, "no standard errors: the fit is not at a minimum in every direction.")
    kept = values > FLAT * largest
    half = B @ (scale[:, None] * vectors[:, kept])
    inverse = half / values[kept] @ half.T  # (q, q)
    free = float(kept.sum()) - float((inverse * curvature).sum())  # parameters
    if n <= SAMPLES_PER_PARAMETER * free:
        return Errors(
            None,
            f"no standard errors: {n} samples are too few for {free:.0f} free parameters; raise "
            "ridges, lower the count of features, or use more samples.",
        )
    correction = 1.0
    if samples.groups is not None:
        codes = torch.unique(samples.groups, return_inverse=True)[1]
        count = int(codes.max()) + 1
        units = units.new_zeros(count, units.shape[1]).index_add(0, codes, units)
        correction = count / max(count - 1, 1)
    influence = units @ inverse  # (n, q)
    pulls = (influence * units).sum(dim=1)
    leverage = free * pulls / pulls.sum().clamp(min=1e-300)
    root = influence[:, wanted] / (1 - leverage.clamp(max=MOST_LEVERAGE)).sqrt()[:, None]  # (n, P)
    covariance = correction * root.T @ root
    step = (inverse @ (pieces.scores.sum(dim=0) + slope))[wanted].abs()
    errors = covariance.diagonal().sqrt()
    pull = (inverse @ slope)[wanted]
    covariance = covariance + torch.outer(pull, pull)
    if check_minimum and bool((step > MOST_STEP * errors).any()):
        far = float((step / errors).nan_to_num().max())
        return Errors(
            None,
            f"no standard errors: the fit ended {far:.1g} of them before its minimum; use "
            "optimizer='lbfgs' or more epochs.",
        )
    clusters = "" if samples.groups is None else f", {len(units)} clusters"
    return Errors(covariance, f"sandwich over {free:.0f} free parameters{clusters}")
