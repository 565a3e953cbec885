r"""Many fits of one head to the same rows, in one pass per step.

Contestants and folds share their rows: fit m has penalties and sample weights of its own (0 for
held-out samples), and one pass over the rows gives the scores of all fits,

.. math:: ψ_m = x W_m x^⊤/\sqrt d + u_m·x .

W is symmetric; its parameters are its diagonal and √2 times its upper triangle, so that their norm
is that of W. Fit m minimizes

.. math:: \sum_i w_{im}\, ℓ_m(y_i, X_i) + \tfrac12 q_m‖W‖² + \tfrac12 l_m‖u‖² + \tfrac12 r_m‖v‖²

where ℓ is the family's loss of the pooled row (equation obj) or the negative log-likelihood of the
mixture over rows (`diagatt.attention.mixture`). Gradients are written out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.segments import (
    row_forms,
    sample_of_row,
    segment_max,
    segment_mean,
    segment_sum,
    weighted_gram,
)
from diagatt.solvers.auto.lbfgs import minimize_many
from diagatt.solvers.problem import Samples

# Steps at most, and the share of the objective below which a gain ends a fit.
MOST_STEPS, TOLERANCE = 60, 1e-5
GLM_STEPS, GLM_TOLERANCE, START_TOLERANCE = 200, 1e-7, 1e-4
# One product with all monomials of rows pays if so many times the count of fits exceeds d, and if
# there are no more monomials than this to keep.
MONOMIALS_PAY, MOST_MONOMIALS = 4, 25_000_000
# Lower bound of φ of a mixture, as a share of the variance of y.
LEAST_DISPERSION = 0.01
# Ridge of coefficients that are not penalized: it only keeps them finite.
LEAST_RIDGE = 1e-6


class Penalties(NamedTuple):
    """Ridges beside the summed loss, for responses and rows of unit variance."""

    quadratic: float  # of W; infinite if the score is linear
    linear: float  # of u
    value: float  # of v and of pooled features


class SharedRows:
    """Samples, and what all fits to them share."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.sample = sample_of_row(samples.offsets)  # (N,)

    @cached_property
    def mean_rows(self) -> Tensor:  # (n, d)
        """Return the mean row of every sample."""
        return segment_mean(self.samples.values, self.samples.offsets, self.samples.log_prior)

    @cached_property
    def monomials(self) -> Tensor:  # (N, Q)
        """Return what the parameters of a quadratic score multiply: products, then features."""
        x = self.samples.values
        d = x.shape[1]
        rows, columns = torch.triu_indices(d, d, device=x.device)
        products = x[:, rows] * x[:, columns]
        return torch.cat([products.mul_(_parameter_scales(d).to(products)), x], dim=1)

    def _multiplies(self, n_fits: int) -> bool:
        """Whether one product with all monomials is quicker than one quadratic form per fit."""
        N, d = self.samples.values.shape
        return n_fits * MONOMIALS_PAY >= d and N * score_width(d) <= MOST_MONOMIALS

    def forms(self, theta: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (N, M) and effects (N, L) of all rows, of θ (Q, M) and V (d, L)."""
        values = self.samples.values
        d, M = values.shape[1], theta.shape[1]
        if len(theta) > d and self._multiplies(M):
            return self.monomials @ theta, values @ value
        both = torch.cat([theta[-d:], value], dim=1)
        if len(theta) == d:  # linear scores
            scores, effects = (values @ both).split([M, value.shape[1]], dim=1)
            return scores, effects
        W = torch.stack([symmetric_matrix(line[:-d], d) for line in theta.T]) / math.sqrt(d)
        forms, linear = row_forms(values, W, both)
        return forms + linear[:, :M], linear[:, M:]

    def slopes(self, of_scores: Tensor, of_rows: Tensor, quadratic: bool) -> tuple[Tensor, Tensor]:
        """Return slopes in θ (M, Q) and V (L, d) of slopes in scores (N, M), effects (N, L)."""
        values = self.samples.values
        d, M = values.shape[1], of_scores.shape[1]
        if quadratic and self._multiplies(M):
            return of_scores.T @ self.monomials, of_rows.T @ values
        linear = torch.cat([of_scores, of_rows], dim=1).T @ values  # (M + L, d)
        if not quadratic:
            return linear[:M], linear[M:]
        gram = weighted_gram(values, of_scores)  # (M, d, d)
        rows, columns = torch.triu_indices(d, d, device=values.device)
        of_W = gram[:, rows, columns] * _parameter_scales(d).to(gram)
        return torch.cat([of_W, linear[:M]], dim=1), linear[M:]


def _parameter_scales(d: int) -> Tensor:
    """Return ∂ψ/∂θ per product x_a x_b, for a ≤ b: 1/√d, and √2 times it off the diagonal."""
    rows, columns = torch.triu_indices(d, d)
    diagonal = torch.full((len(rows),), 1 / math.sqrt(d), dtype=torch.float64)
    return torch.where(rows == columns, diagonal, math.sqrt(2.0) * diagonal)


@dataclass(frozen=True, eq=False)
class ManyFits:
    """M fits of one head to the same samples.

    Attributes
    ----------
    shared : SharedRows
        Rows as a map made them; covariates are those of the user and, after them, features of
        whole samples.
    penalties : sequence of M Penalties
        All with a quadratic score, or all without.
    weights : tensor of shape (n, M)
    readouts : sequence of M of {"pooled", "mixture", "uniform"}
        "uniform" for all of them, or for none.
    n_free : int
        How many leading covariates are not penalized.
    """

    shared: SharedRows
    penalties: Sequence[Penalties]
    weights: Tensor
    readouts: Sequence[str]
    n_free: int = 0

    @property
    def attends(self) -> bool:
        """Whether the fits have scores."""
        return self.readouts[0] != "uniform"

    @cached_property
    def _mixes(self) -> Tensor:  # (M,)
        """Which fits are mixtures over rows."""
        mixes = [readout == "mixture" for readout in self.readouts]
        return torch.tensor(mixes, device=self.weights.device)

    @property
    def samples(self) -> Samples:
        """The samples of all fits."""
        return self.shared.samples

    @property
    def n_score_parameters(self) -> int:
        """Count of parameters of a score, Q."""
        d = self.samples.n_features
        if not self.attends:
            return 0
        return score_width(d) if self._is_quadratic else d

    @property
    def _is_quadratic(self) -> bool:
        return math.isfinite(self.penalties[0].quadratic)

    @property
    def _has_dispersion(self) -> bool:
        """Whether there is a column of log φ, which only mixtures use."""
        return self.attends and self.samples.family.has_dispersion

    @cached_property
    def _ridges(self) -> Tensor:  # (M, P)
        lines = []
        d, K, q = self.samples.n_features, self.samples.n_outputs, self.samples.n_covariates
        linear_terms = min(d, self.n_score_parameters)
        pairs = self.n_score_parameters - linear_terms
        for quadratic, linear, value in self.penalties:
            line = [quadratic] * pairs + [linear] * linear_terms
            line += [value] * (d * K) + [LEAST_RIDGE] * (K + self.n_free * K)
            line += [value] * ((q - self.n_free) * K) + [0.0] * self._has_dispersion
            lines.append(line)
        return torch.tensor(lines, dtype=torch.float64, device=self.weights.device)

    # ------------------------------------------------------------------ fitting

    def fit(self) -> Tensor:
        """Return the parameters of all fits, (M, P): scores from 0, values from the pooled GLM."""
        effects = self._of_mean_rows() if self.attends else self
        zero = torch.zeros_like(effects._ridges)
        zero[:, self._intercepts(0)] = self._null_predictor()
        tolerance = START_TOLERANCE if self.attends else GLM_TOLERANCE
        glm = minimize_many(effects._objective, zero, GLM_STEPS, tolerance)
        if not self.attends:
            return glm
        start = torch.zeros_like(self._ridges)
        Q = self.n_score_parameters
        start[:, Q : Q + glm.shape[1]] = glm
        if self._has_dispersion:
            start[:, -1] = math.log(self.samples.family.initial_dispersion(1.0))
        return minimize_many(self._objective, start, MOST_STEPS, TOLERANCE)

    def _of_mean_rows(self) -> ManyFits:
        same = (self.shared, self.penalties, self.weights)
        return ManyFits(*same, ["uniform"] * len(self.penalties), self.n_free)

    def _intercepts(self, n_scores: int) -> slice:
        first = n_scores + self.samples.n_features * self.samples.n_outputs
        return slice(first, first + self.samples.n_outputs)

    def _null_predictor(self) -> Tensor:
        """Return the intercepts of fits to the weighted mean response alone, (M, K)."""
        family, K = self.samples.family, self.samples.n_outputs
        y, w = self.samples.y.double(), self.weights.double()
        if K > 1 and family.n_outcomes == 1:
            return w.new_zeros(w.shape[1], K)
        return family.null_predictor(y, w)

    def _objective(self, theta: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        parts = _Parts.of(self, theta)
        weights, ridges = self.weights[:, which], self._ridges[which]
        if self.attends:
            loss = _attention_loss(self, parts, weights, self._mixes[which])
        else:
            loss = _uniform_loss(self, parts, weights)
        penalty = 0.5 * (ridges * theta.square()).sum(dim=1)
        return loss.total.double() + penalty, loss.slope.double() + ridges * theta

    # ------------------------------------------------------------------ reading

    def fitted(self, theta: Tensor) -> list[tuple[DiagonalAttention, float | None]]:
        """Return every fit with its φ, where it is a mixture that has one."""
        found = []
        for line, readout in zip(theta, self.readouts, strict=True):
            phi = None
            if self._has_dispersion and readout == "mixture":
                phi = max(math.exp(float(line[-1])), LEAST_DISPERSION)
            found.append((self._module(line, readout), phi))
        return found

    @torch.no_grad()
    def _module(self, theta: Tensor, readout: str) -> DiagonalAttention:
        """Return one fit, (P,), as diagonalized attention of affine scores."""
        d, K, q = self.samples.n_features, self.samples.n_outputs, self.samples.n_covariates
        Q = self.n_score_parameters
        query_key = theta.new_zeros(1, d + 1, d + 1)
        if Q:
            linear = theta[Q - d : Q] * (d**0.5 / 2)  # enters twice, divided by √d
            query_key[0, :d, d] = query_key[0, d, :d] = linear
            query_key[0, :d, :d] = symmetric_matrix(theta[: Q - d], d)
        rest = theta[Q:].split([d * K, K, q * K] + [1] * self._has_dispersion)
        value, intercept, covariate = rest[0].reshape(1, d, K), rest[1], rest[2].reshape(q, K)
        return DiagonalAttention.with_parameters(
            *(query_key, None, value, intercept, covariate),
            score_form="affine",
            coupling="distinct",
            readout="mixture" if readout == "mixture" else "pooled",
            family=self.samples.family,
        ).to(self.samples.device, self.samples.dtype)


def score_width(d: int) -> int:
    """Return the count of parameters of a quadratic score, d(d + 1)/2 + d."""
    return d * (d + 3) // 2


def symmetric_matrix(theta: Tensor, d: int) -> Tensor:
    """Return W of its parameters, (d(d + 1)/2,) → (d, d); zero if there are none.

    Examples
    --------
    >>> symmetric_matrix(torch.tensor([1.0, 0.0, 3.0]), 2)
    tensor([[1., 0.],
            [0., 3.]])
    """
    W = theta.new_zeros(d, d)
    if len(theta):
        rows, columns = torch.triu_indices(d, d, device=theta.device)
        half = theta.new_ones(len(rows)).masked_fill(rows != columns, 1 / math.sqrt(2.0))
        W[rows, columns] = W[columns, rows] = theta * half
    return W


# ---------------------------------------------------------------------- losses and their slopes


class _Loss(NamedTuple):
    total: Tensor  # (M,)
    slope: Tensor  # (M, P)


@dataclass(frozen=True)
class _Parts:
    """Parameters of M fits as matrices, in the type of the rows."""

    fits: ManyFits
    scores: Tensor  # (Q, M)
    value: Tensor  # (d, M·K)
    shared: Tensor  # (n, M, K): intercepts, covariates' effects and offsets
    log_phi: Tensor  # (M,)

    @classmethod
    def of(cls, fits: ManyFits, theta: Tensor) -> _Parts:
        samples, M = fits.samples, len(theta)
        d, K, q = samples.n_features, samples.n_outputs, samples.n_covariates
        Q = fits.n_score_parameters
        line = theta.to(samples.dtype)
        sizes = [Q, d * K, K, q * K] + [1] * fits._has_dispersion
        scores, value, intercept, covariate, *rest = line.split(sizes, dim=1)
        gamma = covariate.reshape(M, q, K).permute(1, 0, 2).reshape(q, M * K)
        shared = intercept.reshape(1, M * K) + samples.covariates @ gamma
        log_phi = rest[0][:, 0] if rest else line.new_zeros(M)
        shared = shared.reshape(samples.n_samples, M, K)
        return cls(
            fits,
            scores.T,
            value.reshape(M, d, K).permute(1, 0, 2).reshape(d, M * K),
            shared if samples.offset is None else shared + samples.offset[:, None],
            log_phi.clamp(min=math.log(LEAST_DISPERSION)),
        )

    def attention_and_effects(self) -> tuple[Tensor, Tensor]:  # (N, M), (N, M, K)
        scores, effects = self.fits.shared.forms(self.scores, self.value)
        sample, offsets = self.fits.shared.sample, self.fits.samples.offsets
        if self.fits.samples.log_prior is not None:
            scores = scores + self.fits.samples.log_prior[:, None]
        weights = torch.exp((scores - segment_max(scores, offsets)[sample]).clamp(min=-80.0))
        kappa = weights / segment_sum(weights, offsets)[sample]
        return kappa, effects.reshape(*scores.shape, self.fits.samples.n_outputs)

    def slope(self, of_scores: Tensor, of_rows: Tensor, of_shared: Tensor) -> Tensor:
        """Chain slopes in ψ (N, M), effects (N, M, K) and shared (n, M, K) to θ, (M, P)."""
        fits = self.fits
        of_theta, of_value = fits.shared.slopes(
            of_scores, of_rows.flatten(1), fits._is_quadratic
        )  # (M, Q), (M·K, d)
        return torch.cat([of_theta, self.effect_slopes(of_value, of_shared)], dim=1)

    def effect_slopes(self, of_value: Tensor, of_shared: Tensor) -> Tensor:
        """Return slopes in values, intercepts and covariates, (M, …), of (M·K, d), (n, M, K)."""
        n, M, K = of_shared.shape
        covariates = self.fits.samples.covariates
        gamma = (covariates.T @ of_shared.reshape(n, M * K)).reshape(-1, M, K)
        lines = [of_value.reshape(M, K, -1).transpose(1, 2), of_shared.sum(dim=0)]
        return torch.cat([line.reshape(M, -1) for line in [*lines, gamma.transpose(0, 1)]], dim=1)


def _family_terms(fits: ManyFits, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return losses (…, M) and their slopes (…, M, K) for responses (…,) and z (…, M, K)."""
    count, M, K = z.shape
    flat, repeated = z.reshape(count * M, K), y.repeat_interleave(M, dim=0)
    family = fits.samples.family
    return family.loss(repeated, flat).reshape(count, M), family.gradient(repeated, flat).reshape(
        count, M, K
    )


def _uniform_loss(fits: ManyFits, parts: _Parts, weights: Tensor) -> _Loss:
    rows = fits.shared.mean_rows
    z = (rows @ parts.value).reshape(parts.shared.shape) + parts.shared
    losses, slopes = _family_terms(fits, fits.samples.y, z)
    slopes = weights[:, :, None] * slopes
    of_value = slopes.flatten(1).T @ rows  # (M·K, d)
    return _Loss((weights * losses).sum(dim=0), parts.effect_slopes(of_value, slopes))


class _Slopes(NamedTuple):
    """Losses of fits, and their slopes in what parameters enter through."""

    total: Tensor  # (M,)
    of_scores: Tensor  # (N, M)
    of_rows: Tensor  # (N, M, K)
    of_shared: Tensor  # (n, M, K)
    of_log_phi: Tensor  # (M,)


def _attention_loss(fits: ManyFits, parts: _Parts, weights: Tensor, mixes: Tensor) -> _Loss:
    """Score all fits in one product, then let each kind of readout judge its own."""
    given = (*parts.attention_and_effects(), parts.shared, weights, parts.log_phi)
    if not bool(mixes.any()):
        found = _pooled_slopes(fits, *given)
    elif bool(mixes.all()):
        found = _mixture_slopes(fits, *given)
    else:
        own = [tuple(_columns(tensor, which) for tensor in given) for which in (~mixes, mixes)]
        pooled, mixed = _pooled_slopes(fits, *own[0]), _mixture_slopes(fits, *own[1])
        back = torch.cat([torch.nonzero(~mixes), torch.nonzero(mixes)])[:, 0].argsort()
        both = (
            torch.cat(pair, dim=int(pair[0].ndim > 1)) for pair in zip(pooled, mixed, strict=True)
        )
        found = _Slopes(*(_columns(tensor, back) for tensor in both))
    slope = parts.slope(found.of_scores, found.of_rows, found.of_shared)
    if fits._has_dispersion:
        slope = torch.cat([slope, found.of_log_phi[:, None]], dim=1)
    return _Loss(found.total, slope)


def _columns(tensor: Tensor, which: Tensor) -> Tensor:
    """Take some fits: their axis is the second, or the only one."""
    return tensor[:, which] if tensor.ndim > 1 else tensor[which]


def _pooled_slopes(
    fits: ManyFits,
    kappa: Tensor,
    effects: Tensor,
    shared: Tensor,
    weights: Tensor,
    log_phi: Tensor,
) -> _Slopes:
    offsets, sample = fits.samples.offsets, fits.shared.sample
    pooled = segment_sum(kappa[:, :, None] * effects, offsets)  # (n, M, K)
    losses, slopes = _family_terms(fits, fits.samples.y, pooled + shared)
    slopes = weights[:, :, None] * slopes
    of_rows = kappa[:, :, None] * slopes[sample]
    of_scores = (of_rows * (effects - pooled[sample])).sum(dim=2)
    total = (weights * losses).sum(dim=0)
    return _Slopes(total, of_scores, of_rows, slopes, torch.zeros_like(total))


def _mixture_slopes(
    fits: ManyFits,
    kappa: Tensor,
    effects: Tensor,
    shared: Tensor,
    weights: Tensor,
    log_phi: Tensor,
) -> _Slopes:
    offsets, sample = fits.samples.offsets, fits.shared.sample
    losses, slopes = _family_terms(fits, fits.samples.y[sample], effects + shared[sample])
    precision = torch.exp(-log_phi)
    joint = kappa.clamp(min=1e-35).log() - precision * losses  # (N, M)
    peak = segment_max(joint, offsets)
    evidence = peak + segment_sum((joint - peak[sample]).clamp(min=-80.0).exp(), offsets).log()
    responsible = (joint - evidence[sample]).exp()
    rows_weights = weights[sample]
    of_rows = (rows_weights * responsible * precision)[:, :, None] * slopes
    # A density of scale φ has −½ log φ in its logarithm, once per outcome; constants are left out.
    half = 0.5 * fits.samples.family.n_outcomes
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
