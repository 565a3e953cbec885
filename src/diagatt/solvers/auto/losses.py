"""Losses of many fits, and their slopes in all parameters, written out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.segments import segment_max, segment_sum
from diagatt.solvers.auto.shared_rows import SharedRows
from diagatt.solvers.problem import Samples

# Lower bound of φ of a mixture, as a share of the variance of y.
LEAST_DISPERSION = 0.01


@dataclass(frozen=True)
class Layout:
    """What the parameters of a fit are: scores, values, intercepts, covariates, log φ.

    Scores and values are those of all heads, one after the other.
    """

    shared: SharedRows
    n_scores: int  # Q, per head
    is_quadratic: bool
    has_dispersion: bool  # whether there is a column of log φ, which only mixtures use
    n_heads: int = 1  # R

    @property
    def samples(self) -> Samples:
        """The samples of all fits."""
        return self.shared.samples


class Loss(NamedTuple):
    """Values of the losses of M fits, and their slopes."""

    total: Tensor  # (M,)
    slope: Tensor  # (M, P)


@dataclass(frozen=True)
class Parts:
    """Parameters of M fits as matrices, in the type of the rows."""

    layout: Layout
    scores: Tensor  # (Q, M·R)
    value: Tensor  # (d, M·R·K)
    shared: Tensor  # (n, M, K): intercepts, covariates' effects and offsets
    log_phi: Tensor  # (M,)

    @classmethod
    def of(cls, layout: Layout, theta: Tensor) -> Parts:
        """Take the parameters of M fits apart, (M, P)."""
        samples, M = layout.samples, len(theta)
        d, K, q = samples.n_features, samples.n_outputs, samples.n_covariates
        Q, R = layout.n_scores, layout.n_heads
        line = theta.to(samples.dtype)
        sizes = [R * Q, R * d * K, K, q * K] + [1] * layout.has_dispersion
        scores, value, intercept, covariate, *rest = line.split(sizes, dim=1)
        gamma = covariate.reshape(M, q, K).permute(1, 0, 2).reshape(q, M * K)
        shared = intercept.reshape(1, M * K) + samples.covariates @ gamma
        log_phi = rest[0][:, 0] if rest else line.new_zeros(M)
        shared = shared.reshape(samples.n_samples, M, K)
        return cls(
            layout,
            scores.reshape(M * R, Q).T,
            value.reshape(M * R, d, K).permute(1, 0, 2).reshape(d, M * R * K),
            shared if samples.offset is None else shared + samples.offset[:, None],
            log_phi.clamp(min=math.log(LEAST_DISPERSION)),
        )

    def attention_and_effects(self) -> tuple[Tensor, Tensor]:  # (N, M·R), (N, M·R, K)
        """Return the attention of rows, and x·v."""
        scores, effects = self.layout.shared.forms(self.scores, self.value)
        sample, offsets = self.layout.shared.sample, self.layout.samples.offsets
        if self.layout.samples.log_prior is not None:
            scores = scores + self.layout.samples.log_prior[:, None]
        weights = torch.exp((scores - segment_max(scores, offsets)[sample]).clamp(min=-80.0))
        kappa = weights / segment_sum(weights, offsets)[sample]
        return kappa, effects.reshape(*scores.shape, self.layout.samples.n_outputs)

    def slope(self, of_scores: Tensor, of_rows: Tensor, of_shared: Tensor) -> Tensor:
        """Chain slopes in ψ (N, M·R), effects (N, M·R, K) and shared (n, M, K) to θ, (M, P)."""
        layout = self.layout
        of_theta, of_value = layout.shared.slopes(
            of_scores, of_rows.flatten(1), layout.is_quadratic
        )  # (M·R, Q), (M·R·K, d)
        of_theta = of_theta.reshape(of_shared.shape[1], -1)  # (M, R·Q)
        return torch.cat([of_theta, self.effect_slopes(of_value, of_shared)], dim=1)

    def effect_slopes(self, of_value: Tensor, of_shared: Tensor) -> Tensor:
        """Return slopes in values, intercepts and covariates, (M, …), of (M·R·K, d), (n, M, K)."""
        n, M, K = of_shared.shape
        covariates = self.layout.samples.covariates
        gamma = (covariates.T @ of_shared.reshape(n, M * K)).reshape(-1, M, K)
        d = of_value.shape[1]
        lines = [of_value.reshape(-1, K, d).transpose(1, 2), of_shared.sum(dim=0)]
        return torch.cat([line.reshape(M, -1) for line in [*lines, gamma.transpose(0, 1)]], dim=1)


def _family_terms(layout: Layout, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return losses (…, M) and their slopes (…, M, K) for responses (…,) and z (…, M, K)."""
    count, M, K = z.shape
    flat, repeated = z.reshape(count * M, K), y.repeat_interleave(M, dim=0)
    family = layout.samples.family
    return family.loss(repeated, flat).reshape(count, M), family.gradient(repeated, flat).reshape(
        count, M, K
    )


def uniform_loss(layout: Layout, parts: Parts, weights: Tensor, rows: Tensor) -> Loss:
    """Return the losses of fits to one row per sample: (n, d) for all fits, or (M, n, d)."""
    n, M, K = parts.shared.shape
    if rows.ndim == 2:
        z = (rows @ parts.value).reshape(n, M, K)
    else:
        z = (rows @ parts.value.reshape(-1, M, K).transpose(0, 1)).transpose(0, 1)
    losses, slopes = _family_terms(layout, layout.samples.y, z + parts.shared)
    slopes = weights[:, :, None] * slopes
    of_value = slopes.permute(1, 2, 0) @ rows  # (M, K, d)
    total = (weights * losses).sum(dim=0)
    return Loss(total, parts.effect_slopes(of_value.flatten(0, 1), slopes))


class _Slopes(NamedTuple):
    """Losses of fits, and their slopes in what parameters enter through."""

    total: Tensor  # (M,)
    of_scores: Tensor  # (N, M·R)
    of_rows: Tensor  # (N, M·R, K)
    of_shared: Tensor  # (n, M, K)
    of_log_phi: Tensor  # (M,)


def attention_loss(layout: Layout, parts: Parts, weights: Tensor, mixes: Tensor) -> Loss:
    """Return the losses of fits with attention, whose scores come from one product."""
    given = (*parts.attention_and_effects(), parts.shared, weights, parts.log_phi)
    if not bool(mixes.any()):
        found = _pooled_slopes(layout, *given)
    elif bool(mixes.all()):
        found = _mixture_slopes(layout, *given)
    else:
        own = [tuple(_columns(tensor, which) for tensor in given) for which in (~mixes, mixes)]
        pooled, mixed = _pooled_slopes(layout, *own[0]), _mixture_slopes(layout, *own[1])
        back = torch.cat([torch.nonzero(~mixes), torch.nonzero(mixes)])[:, 0].argsort()
        both = (
            torch.cat(pair, dim=int(pair[0].ndim > 1)) for pair in zip(pooled, mixed, strict=True)
        )
        found = _Slopes(*(_columns(tensor, back) for tensor in both))
    slope = parts.slope(found.of_scores, found.of_rows, found.of_shared)
    if layout.has_dispersion:
        slope = torch.cat([slope, found.of_log_phi[:, None]], dim=1)
    return Loss(found.total, slope)


def _columns(tensor: Tensor, which: Tensor) -> Tensor:
    """Take some fits: their axis is the second, or the only one."""
    return tensor[:, which] if tensor.ndim > 1 else tensor[which]


def _pooled_slopes(
    layout: Layout,
    kappa: Tensor,
    effects: Tensor,
    shared: Tensor,
    weights: Tensor,
    log_phi: Tensor,
) -> _Slopes:
    offsets, sample, (n, M, K) = layout.samples.offsets, layout.shared.sample, shared.shape
    pooled = segment_sum(kappa[:, :, None] * effects, offsets)  # (n, M·R, K)
    z = pooled.reshape(n, M, layout.n_heads, K).sum(dim=2) + shared
    losses, slopes = _family_terms(layout, layout.samples.y, z)
    slopes = weights[:, :, None] * slopes
    of_heads = slopes.repeat_interleave(layout.n_heads, dim=1)  # (n, M·R, K)
    of_rows = kappa[:, :, None] * of_heads[sample]
    of_scores = (of_rows * (effects - pooled[sample])).sum(dim=2)
    total = (weights * losses).sum(dim=0)
    return _Slopes(total, of_scores, of_rows, slopes, torch.zeros_like(total))


def _mixture_slopes(
    layout: Layout,
    kappa: Tensor,
    effects: Tensor,
    shared: Tensor,
    weights: Tensor,
    log_phi: Tensor,
) -> _Slopes:
    offsets, sample = layout.samples.offsets, layout.shared.sample
    losses, slopes = _family_terms(layout, layout.samples.y[sample], effects + shared[sample])
    precision = torch.exp(-log_phi)
    joint = kappa.clamp(min=1e-35).log() - precision * losses  # (N, M)
    peak = segment_max(joint, offsets)
    evidence = peak + segment_sum((joint - peak[sample]).clamp(min=-80.0).exp(), offsets).log()
    responsible = (joint - evidence[sample]).exp()
    rows_weights = weights[sample]
    of_rows = (rows_weights * responsible * precision)[:, :, None] * slopes
    # A density of scale φ has −½ log φ in its logarithm, once per outcome; constants are left out.
    half = 0.5 * layout.samples.family.n_outcomes
    total = (weights * (half * log_phi - evidence)).sum(dim=0)
    misfit = (rows_weights * responsible * precision * losses).sum(dim=0)
    of_log_phi = half * weights.sum(dim=0) - misfit
    floor = log_phi <= math.log(LEAST_DISPERSION)
    return _Slopes(
        total,
        rows_weights * (kappa - responsible),
        of_rows,
        segment_sum(of_rows, offsets),
        torch.where(floor, of_log_phi.clamp(max=0.0), of_log_phi),
    )
