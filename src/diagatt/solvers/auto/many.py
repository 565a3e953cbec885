r"""Many fits to the same rows, in one pass per step.

Contestants and folds share their rows: fit m has penalties and sample weights of its own (0 for
held-out samples), and one pass over the rows gives the scores of all fits,

.. math:: ψ_m = x W_m x^⊤/\sqrt d + u_m·x .

Several heads have such scores each, and their predictors are added. W is symmetric; its parameters
are its diagonal and √2 times its upper triangle, so that their norm is that of W. Fit m minimizes

.. math:: \sum_i w_{im}\, ℓ_m(y_i, X_i) + \tfrac12 q_m‖W‖² + \tfrac12 l_m‖u‖² + \tfrac12 r_m‖v‖²

where ℓ is the family's loss of the pooled row (equation obj) or the negative log-likelihood of the
mixture over rows (`diagatt.attention.coupling`). Gradients are written out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.auto.lbfgs import minimize_many
from diagatt.solvers.auto.losses import (
    LEAST_DISPERSION,
    Layout,
    Parts,
    attention_loss,
    uniform_loss,
)
from diagatt.solvers.auto.shared_rows import SharedRows, score_width, symmetric_matrix
from diagatt.solvers.problem import Samples

# The most steps, fewer where each passes over many wide rows (stopping early also regularizes), and
# the share of the objective below which a gain ends a fit.
MOST_STEPS, STEPS_OF_WIDE_ROWS, TOLERANCE = 60, 30, 1e-5
GLM_STEPS, GLM_TOLERANCE, START_TOLERANCE = 200, 1e-7, 1e-4
# Ridge of coefficients that are not penalized: it only keeps them finite.
LEAST_RIDGE = 1e-6


class Penalties(NamedTuple):
    """Ridges beside the summed loss, for responses and rows of unit variance."""

    quadratic: float  # of W; infinite if the score is linear
    linear: float  # of u
    value: float  # of v and of pooled features


@dataclass(frozen=True, eq=False)
class ManyFits:
    """M fits to the same samples.

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
    rows : tensor of shape (M, n, d), optional
        One row per sample that each fit without scores uses instead of the mean row.
    n_heads : int
        R, of all fits; several heads are for the loss of pooled rows.
    coupling : {"distinct", "independent"}
        How the fitted heads choose rows. While they are fitted, they are independent.
    most_steps : int, optional
        Of fits with scores.
    """

    shared: SharedRows
    penalties: Sequence[Penalties]
    weights: Tensor
    readouts: Sequence[str]
    n_free: int = 0
    rows: Tensor | None = None
    n_heads: int = 1
    coupling: str = "distinct"
    most_steps: int | None = None

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
        """Count of parameters of the score of a head, Q."""
        d = self.samples.n_features
        if not self.attends:
            return 0
        return score_width(d) if self._is_quadratic else d

    @property
    def _is_quadratic(self) -> bool:
        return math.isfinite(self.penalties[0].quadratic)

    @cached_property
    def _layout(self) -> Layout:
        scores = (self.n_score_parameters, self._is_quadratic)
        return Layout(self.shared, *scores, self._has_dispersion, self.n_heads)

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
            line = ([quadratic] * pairs + [linear] * linear_terms) * self.n_heads
            line += [value] * (self.n_heads * d * K) + [LEAST_RIDGE] * (K + self.n_free * K)
            line += [value] * ((q - self.n_free) * K) + [0.0] * self._has_dispersion
            lines.append(line)
        return torch.tensor(lines, dtype=torch.float64, device=self.weights.device)

    # ------------------------------------------------------------------ fitting

    def fit(self) -> Tensor:
        """Return the parameters of all fits, (M, P): scores from 0, values from the pooled GLM.

        Heads are added one by one, each from 0: from a common start they would find the same rows.
        """
        parts = self._by_counted_samples()
        if parts is not None:
            theta = torch.empty_like(self._ridges)
            for which, fits in parts:
                theta[which] = fits.fit()
            return theta
        if self.n_heads > 1:
            fewer = replace(self, n_heads=self.n_heads - 1)
            start = self._with_another_head(fewer.fit(), fewer)
            return self._minimized(start)
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
        return self._minimized(start)

    def _by_counted_samples(self) -> list[tuple[Tensor, ManyFits]] | None:
        """Return parts of these fits with the samples that count in them; None for all in all.

        Fits whose scores take one product with all monomials stay together, as far as samples
        count in any of them; others are parted by the fold that they leave out.
        """
        counted = self.weights > 0  # (n, M)
        if self._is_quadratic and not self.shared.multiplies(counted.shape[1] * self.n_heads):
            lines, part = counted.unique(dim=1, return_inverse=True)
        else:
            lines, part = counted.any(dim=1, keepdim=True), counted.new_zeros(counted.shape[1])
        if not self.attends or bool(lines.all()):
            return None
        found = []
        for k, line in enumerate(lines.T):
            which, samples = torch.nonzero(part == k)[:, 0], torch.nonzero(line)[:, 0]
            fits = replace(
                self,
                shared=SharedRows(self.samples.take(samples)),
                penalties=[self.penalties[m] for m in which],
                weights=self.weights[samples][:, which],
                readouts=[self.readouts[m] for m in which],
            )
            found.append((which, fits))
        return found

    def _minimized(self, start: Tensor) -> Tensor:
        return minimize_many(self._objective, start, self.most_steps or MOST_STEPS, TOLERANCE)

    def _with_another_head(self, theta: Tensor, fewer: ManyFits) -> Tensor:
        """Return the parameters of fits with one head less, and zeros for the last head, (M, P)."""
        d, K, Q = self.samples.n_features, self.samples.n_outputs, self.n_score_parameters
        scores, values = fewer.n_heads * Q, fewer.n_heads * d * K
        parts = theta.split([scores, values, theta.shape[1] - scores - values], dim=1)
        none = theta.new_zeros(len(theta), Q + d * K)
        return torch.cat([parts[0], none[:, :Q], parts[1], none[:, Q:], parts[2]], dim=1)

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
        parts = Parts.of(self._layout, theta)
        weights, ridges = self.weights[:, which], self._ridges[which]
        if self.attends:
            loss = attention_loss(self._layout, parts, weights, self._mixes[which])
        else:
            rows = self.shared.mean_rows if self.rows is None else self.rows[which]
            loss = uniform_loss(self._layout, parts, weights, rows)
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
        Q, R = self.n_score_parameters, self.n_heads
        query_key = theta.new_zeros(R, d + 1, d + 1)
        for r, scores in enumerate(theta[: R * Q].reshape(R, Q) if Q else ()):
            linear = scores[Q - d :] * (d**0.5 / 2)  # enters twice, divided by √d
            query_key[r, :d, d] = query_key[r, d, :d] = linear
            query_key[r, :d, :d] = symmetric_matrix(scores[: Q - d], d)
        rest = theta[R * Q :].split([R * d * K, K, q * K] + [1] * self._has_dispersion)
        value, intercept, covariate = rest[0].reshape(R, d, K), rest[1], rest[2].reshape(q, K)
        return DiagonalAttention.with_parameters(
            *(query_key, None, value, intercept, covariate),
            score_form="affine",
            coupling=self.coupling,
            readout="mixture" if readout == "mixture" else "pooled",
            family=self.samples.family,
        ).to(self.samples.device, self.samples.dtype)
