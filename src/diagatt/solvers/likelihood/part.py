r"""E-step of the latent-row model on samples in memory, block by block.

The posterior of the chosen rows given a sample and its response is

.. math:: P(j_1, …, j_R \mid X, y) ∝ \prod_k \frac{f_k(x_{j_k})}{f_0(x_{j_k})}\;
          p\Bigl(y \Bigm| \sum_k x_{j_k} v_k + b\Bigr)^λ.

Where samples may have none, a sample has an active row with probability π, and

.. math:: P(\text{none} \mid X, y) ∝ (1 - π)\, p(y \mid a + b)^λ, \qquad
          P(j \mid X, y) ∝ \frac{π}{p} \frac{f_1(x_j)}{f_0(x_j)}\, p(y \mid x_j v + b)^λ.

The supervision λ ∈ [0, 1] is 1 in the end; predictions for new samples use λ = 0. A block is
scored, normalized and summed while it is in the cache; nothing of size (N, d) is made.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import threshold

from diagatt.attention.none_row import known_with_none
from diagatt.segments import (
    LEAST_EXPONENT,
    one_longer,
    places_before_last,
    row_forms,
    sample_blocks,
    sample_of_row,
    segment_max,
    segment_sum,
    spread,
    weighted_gram,
    with_last,
)
from diagatt.solvers.likelihood.joint_rows import JointRows, log_assignments
from diagatt.solvers.likelihood.latent_rows import (
    Expected,
    ResponseModel,
    RowModel,
    RowMoments,
    bordered,
)
from diagatt.solvers.problem import Samples

# Posterior probabilities below this are taken as zero.
LEAST_WEIGHT = 1e-12
# Rows of a block: scored, normalized and summed while they are in the cache.
PASS_ROWS = 16384


class PartExpectation:
    """The E-step for samples in memory.

    Parameters
    ----------
    problem : Samples
    context : tensor of shape (n, q)
        c̃, see `latent_rows`.
    distinct : bool
        Whether the rows of different heads must differ.
    mass : tensor of shape (n,), optional
        How many rows each sample stands for; by default, those that it has.
    """

    def __init__(
        self, problem: Samples, context: Tensor, distinct: bool = True, mass: Tensor | None = None
    ) -> None:
        self.problem, self.context, self.distinct = problem, context, distinct
        ones = problem.values.new_ones(problem.n_samples, 1)
        self.design = torch.cat([ones, problem.covariates], dim=1)  # (n, m)
        self.blocks = list(sample_blocks(problem.offsets, PASS_ROWS))
        longest = max(rows.stop - rows.start for _, rows in self.blocks)
        self.buffer = problem.values.new_empty(max(longest, 1), problem.n_features)
        self.bounded = problem.family.prefers_bound
        self._mass = problem.row_mass if mass is None else mass  # (n,)

    def context_moments(self) -> Tensor:
        """Return Σ w c̃ c̃ᵀ, (q, q)."""
        return (self.context.T @ (self.problem.weights[:, None] * self.context)).double()

    def totals(self) -> RowMoments:
        """Return moments of all rows, weighted by sample weight and by how free each row is."""
        problem, d, log_free = self.problem, self.problem.n_features, self.problem.log_free
        c = self.context.double()
        xx = torch.zeros(d, d, dtype=torch.float64, device=c.device)
        pooled, masses = [], []
        for samples, rows in self.blocks:
            x, offsets = problem.values[rows], self._offsets(samples, rows)
            weight = spread(problem.weights[samples, None], offsets)
            if log_free is not None:
                weight = weight * log_free[rows, None].exp()
            if problem.log_prior is not None:
                weight = weight * problem.log_prior[rows, None].exp()
            scaled = torch.mul(x, weight, out=self.buffer[: len(x)])
            xx += x.T @ scaled
            pooled.append(segment_sum(scaled, offsets).double())
            masses.append(segment_sum(weight, offsets).double())
        mass = torch.cat(masses)  # (n, 1)
        return RowMoments(xx, torch.cat(pooled).T @ c, c.T @ (mass * c), float(mass.sum()))

    def run(
        self,
        rows: RowModel,
        response: ResponseModel,
        supervision: float = 1.0,
        keep: bool = False,
        score_variance: bool = False,
    ) -> Expected:
        """Make one pass.

        Parameters
        ----------
        supervision : float
            λ.
        keep : bool
            Whether to keep the responsibilities.
        score_variance : bool
            Also compute the variance of the score, which is the information lost because the rows
            are unknown (Louis, 1982). One output only.
        """
        self._score_variance = score_variance
        problem, dtype = self.problem, self.problem.values.dtype
        W, T = (t.to(dtype) for t in rows.score_terms())
        is_common = self.context.shape[1] <= 1  # T c̃ is the same in all samples
        pull = torch.einsum("nq,rdq->nrd", self.context[:1] if is_common else self.context, T)
        shared = self.design @ response.shared.to(dtype)  # (n, K)
        self._base = shared if problem.offset is None else shared + problem.offset
        self._value, self._phi = response.value.to(dtype), response.phi
        self._supervision = supervision
        self._none_scores, self._none_z = self._none_of(rows, response)
        R, d, K = self._value.shape
        size, q = R * d + self.design.shape[1], self.context.shape[1]
        size += response.none is not None
        zeros = lambda *shape: torch.zeros(*shape, dtype=torch.float64, device=W.device)  # noqa: E731
        self._sums = Expected(
            0.0,
            zeros(R, d, d),
            zeros(R, d, q),
            0.0,
            0.0,
            zeros(size, K),
            zeros(size, size),
            zeros(size if score_variance else 0, size if score_variance else 0),
        )
        for samples, block in self.blocks:
            self._rows = block
            offsets = self._offsets(samples, block)
            x = problem.values[block]
            own = pull if is_common else pull[samples]  # (b, R, d): T c̃
            scores, effects = self._scores(x, W, own, offsets)  # (B, R), (B, K)
            if problem.log_prior is not None:
                scores += problem.log_prior[block, None]
            if R == 1:
                log_free = None if problem.log_free is None else problem.log_free[block]
                r = self._single(samples, x, scores[:, 0], effects, offsets, log_free)
            else:
                r = self._joint(samples, x, scores, offsets, keep)
            if keep:
                self._sums.responsibilities.append(r)
        self._add_constants(rows, supervision)
        if response.none is not None:
            self._sums.log_likelihood += problem.total_weight * math.log(response.none.prevalence)
        return self._sums

    def _none_of(self, rows: RowModel, response: ResponseModel) -> tuple[Tensor, Tensor]:
        """Return scores, (n,), and predictors, (n, K), of none-rows; empty if there are none."""
        if response.none is None:
            return self._base[:0, 0], self._base[:0]
        odds = math.log1p(-response.none.prevalence) - math.log(response.none.prevalence)
        scores = odds + self._mass.log() - rows.score_constants(self.context)[:, 0]
        return scores.to(self._base), self._base + response.none.value.to(self._base)

    def _offsets(self, samples: slice, rows: slice) -> Tensor:
        return self.problem.offsets[samples.start : samples.stop + 1] - rows.start

    def _scores(self, x: Tensor, W: Tensor, pull: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Return x W_r xᵀ + x T_r c̃, (B, R), and, of a single head, x v, (B, K), from one pass."""
        R = len(W)
        value = self._value[0] if R == 1 else x.new_empty(x.shape[1], 0)
        if self.context.shape[1] <= 1:
            scores, products = row_forms(x, W, torch.cat([pull[0].T, value], dim=1))
            return scores.add_(products[:, :R]), products[:, R:]
        scores, effects = row_forms(x, W, value)
        for r in range(R):
            linear = torch.mul(x, spread(pull[:, r], offsets), out=self.buffer[: len(x)])
            scores[:, r] += linear.sum(dim=1)
        return scores, effects

    def _log_response(self, y: Tensor, z: Tensor) -> Tensor:
        return self._supervision / self._phi * self.problem.family.loss(y, z).neg()

    # ------------------------------------------------------------------ one head: all rows

    def _single(self, samples, x, scores, effects, offsets, log_free) -> Tensor:
        problem, sums = self.problem, self._sums
        sample = sample_of_row(offsets)  # (B,)
        at = torch.index_select  # quicker than indexing, which asks more of each entry
        y = at(problem.y[samples], 0, sample)
        z = effects + at(self._base[samples], 0, sample)
        total = scores if log_free is None else scores + log_free
        if problem.log_known is not None:
            total = total + problem.log_known[self._rows]
        if self._supervision:
            total = total + self._log_response(y, z)
        places, own = offsets, None
        if len(self._none_z):
            total, x, y, z, own = self._with_none(samples, total, x, y, z, offsets)
            places = one_longer(offsets)
            sample = sample_of_row(places)
        peak = segment_max(total[:, None], places)[:, 0]  # (b,)
        weight = torch.exp((total - at(peak, 0, sample)).clamp_(min=LEAST_EXPONENT))
        mass = segment_sum(weight[:, None], places)[:, 0]
        w = problem.weights[samples]
        evidence = peak + mass.log() - self._mass[samples].to(mass.dtype).log()
        sums.log_likelihood += float((w * evidence).sum())
        r = weight / at(mass, 0, sample)
        if own is not None:
            sums.without += float((w * r[places[1:] - 1]).sum(dtype=torch.float64))
        # Only rows that carry weight go on: most do not, and as denormal numbers they are slow.
        active = torch.nonzero(r > LEAST_WEIGHT)[:, 0]
        x, r_active, sample = (at(t, 0, active) for t in (x, r, sample))
        given = (at(y, 0, active), at(z, 0, active), samples)
        self._add_chosen(x, r_active, sample, *given, None if own is None else own[active])
        if log_free is not None:
            self._add_taken(x, r_active * log_free[active].exp(), sample, samples)
        return r[:, None] if own is None else r[places_before_last(offsets), None]

    def _with_none(self, samples, total, x, y, z, offsets) -> tuple[Tensor, ...]:
        """Return the terms of rows with those of none-rows, and which are none-rows, (B + b, 1).

        None-rows have no features: they add nothing to moments of rows.
        """
        y_none, z_none = self.problem.y[samples], self._none_z[samples]
        scores = self._none_scores[samples]
        if self.problem.log_known is not None:  # where the active row is known, it is not "none"
            known = self.problem.log_known[self._rows]
            scores = scores + known_with_none(known, offsets)[one_longer(offsets)[1:] - 1]
        if self._supervision:
            scores = scores + self._log_response(y_none, z_none)
        pairs = (
            (total, scores),
            (x, x.new_zeros(len(scores), x.shape[1])),
            (y, y_none),
            (z, z_none),
            (x.new_zeros(len(x), 1), x.new_ones(len(scores), 1)),
        )
        return tuple(with_last(row, none, offsets) for row, none in pairs)

    def _add_taken(self, x, r, sample, samples) -> None:
        """Add moments of chosen rows as far as they were free, which the background loses."""
        w = (r * self.problem.weights[samples][sample])[:, None].double()
        x, c = x.double(), self.context[samples][sample].double()
        part = RowMoments(x.T @ (w * x), x.T @ (w * c), c.T @ (w * c), float(w.sum()))
        self._sums.taken = part if self._sums.taken is None else self._sums.taken + part

    def _add_chosen(self, x, r, sample, y, z, samples, own=None) -> None:
        """Add sums over rows x that are chosen with probability r; `own` marks none-rows."""
        sums, family, w = self._sums, self.problem.family, self.problem.weights[samples]
        rw = (r * w[sample])[:, None]  # (B, 1)
        context_design = torch.cat([self.context[samples], self.design[samples]], dim=1)[sample]
        if own is not None:
            context_design = torch.cat([context_design, own], dim=1)
        q = self.context.shape[1]
        h = rw if self.bounded else rw * family.curvature(y, z)[:, 0]
        xx, *xhx = weighted_gram(x, rw if self.bounded else torch.cat([rw, h], dim=1))  # (d, d)
        xb = ((context_design * rw).T @ x).T  # (d, q + m): few long lines make a fast product
        sums.xx[0] += xx
        sums.xc[0] += xb[:, :q]
        sums.loss += float((rw[:, 0] * family.loss(y, z)).sum(dtype=torch.float64))
        sums.dispersion += float((rw[:, 0] * family.unit_dispersion(y, z)).sum(dtype=torch.float64))
        gradient, D = family.gradient(y, z), context_design[:, q:]
        slope = rw * gradient  # (B, K)
        # In float64: at the optimum large terms cancel, and the intercept may be small.
        sums.gradient += torch.cat([t.double().T @ slope.double() for t in (x, D)])
        if self.bounded:
            sums.moments += bordered(xx, xb[:, q:], (D * rw).T @ D)
        else:
            sums.moments += bordered(xhx[0], x.T @ (D * h), (D * h).T @ D)
        if self._score_variance:
            h = slope * gradient
            sums.score_square += bordered(x.T @ (x * h), x.T @ (D * h), (D * h).T @ D)
            mean = x.new_zeros(len(w), x.shape[1] + D.shape[1])
            mean.index_add_(0, sample, torch.cat([x, D], dim=1) * slope)
            self._subtract_mean_scores(mean, w)

    # ------------------------------------------------------------------ several heads: candidates

    def _joint(self, samples, x, scores, offsets, keep) -> Tensor:
        problem, sums, family = self.problem, self._sums, self.problem.family
        w, D = problem.weights[samples], self.design[samples]
        heads = JointRows(x, scores, offsets)
        z = heads.predictors(self._base[samples], self._value)  # (b·K^R, outputs)
        y = problem.y[samples].repeat_interleave(len(z) // len(w), dim=0)
        total = heads.log_weights(self.distinct)  # (b, K, …, K)
        if self._supervision:
            total = total + self._log_response(y, z).reshape(total.shape)
        evidence = torch.logsumexp(total.flatten(1), dim=1)
        log_count = log_assignments(self._mass[samples], scores.shape[1], self.distinct)
        sums.log_likelihood += float((w * (evidence - log_count)).sum())
        joint = torch.exp(total - heads.like(evidence))
        joint = threshold(joint, LEAST_WEIGHT, 0.0) * heads.like(w)
        marginals = heads.marginals(joint)  # (b, R, K)
        sums.xx += heads.squares(marginals)
        sums.xc += heads.products(marginals, self.context[samples])
        flat = joint.flatten()
        sums.loss += float((flat * family.loss(y, z)).sum())
        sums.dispersion += float((flat * family.unit_dispersion(y, z)).sum())
        slope = family.gradient(y, z) * flat[:, None]
        sums.gradient += heads.gradient(slope.reshape(*total.shape, -1), D).double()
        h = joint
        if not self.bounded:
            h = (flat * family.curvature(y, z)[:, 0, 0]).reshape(total.shape)
        sums.moments += bordered(*heads.moments(h, D))
        if self._score_variance:
            g = family.gradient(y, z)[:, 0]
            sums.score_square += bordered(*heads.moments((flat * g * g).reshape(total.shape), D))
            self._subtract_mean_scores(heads.features((flat * g).reshape(total.shape), D), w)
        if not keep:
            return marginals
        return heads.of_rows(marginals, len(x)) / spread(w[:, None], offsets)

    def _subtract_mean_scores(self, mean: Tensor, w: Tensor) -> None:
        """Subtract Σ w s̄ s̄ᵀ; the means come weighted by w already."""
        self._sums.score_square -= (mean.T @ (mean / w[:, None])).double()

    def _add_constants(self, rows: RowModel, supervision: float) -> None:
        """Add the terms of the log-likelihood that do not depend on which rows are chosen."""
        problem = self.problem
        w = problem.weights.double()
        constants = rows.score_constants(self.context).sum(dim=1)
        normalizer = problem.family.log_normalizer(problem.y.double(), self._phi)
        self._sums.log_likelihood += float((w * (constants + supervision * normalizer)).sum())
