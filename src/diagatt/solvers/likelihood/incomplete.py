r"""E-step where entries of rows are missing: they are integrated out.

An incomplete row has the log density ratio of its observed entries. If it is active, its missing
entries are Gaussian given the observed ones, and so is what it contributes to the predictor:
:math:`z ∼ N(m, s²)` with :math:`s² = v_m^⊤ K_{mm}^{-1} v_m`. The response then has the density

.. math:: \int p(y \mid z)\, N(z; m, s²)\, dz,

an integral over one number, which Gauss–Hermite nodes around its peak give: exactly for the
gaussian family, whose response has the variance φ + s², and closely for others. Each node is a row
:math:`\hat x + c\,(z - m)`, :math:`c = K_{mm}^{-1} v_m / s²`, of the ordinary E-step; what is left
of the row's covariance, :math:`K_{mm}^{-1} - s² c c^⊤`, has nothing to do with z and is added to
second moments.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from diagatt.missing import Conditional, Patterns, active_rows
from diagatt.segments import sample_blocks, sample_of_row, segment_max, spread
from diagatt.solvers.likelihood.latent_rows import Expected, ResponseModel, RowModel, RowMoments
from diagatt.solvers.likelihood.part import LEAST_WEIGHT, PASS_ROWS, PartExpectation
from diagatt.solvers.problem import Samples

# Nodes of the integral over z: polynomials of degree 5 are exact with three.
QUADRATIC_NODES, NODES = 3, 9
PEAK_STEPS, LONGEST_STEP = 8, 3.0  # of Newton's method for the peak, and its steps
# Rows whose log weight is so far below that of the best row of their sample have one node.
NEGLIGIBLE = 40.0


class Nodes(NamedTuple):
    """Points of the integrals over z, as rows: M of them for N rows."""

    source: Tensor  # (M,) which row
    place: Tensor  # (M,) standardized z, (z − m)/s
    log_weight: Tensor  # (M,)


class _NodeExpectation(PartExpectation):
    """The E-step on nodes, which have the scores of their rows."""

    def __init__(self, problem: Samples, context: Tensor, mass: Tensor, scores: Tensor) -> None:
        super().__init__(problem, context, mass=mass)
        self._known = scores  # (M, 1)

    def _scores(self, x: Tensor, W: Tensor, pull: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        return self._known[self._rows].to(x), x @ self._value[0]


class IncompleteExpectation:
    """The E-step for samples in memory of which entries are missing, for one head and one output.

    Parameters
    ----------
    problem : Samples
    context : tensor of shape (n, q)
        Ones, or nothing: rows do not depend on a context.
    """

    def __init__(self, problem: Samples, context: Tensor) -> None:
        assert problem.missing is not None
        self.problem, self.context = problem, context
        self._imputed = PartExpectation(replace(problem, missing=None), context)
        self.design = self._imputed.design
        self.blocks = [
            (samples, rows, Patterns(problem.missing[rows]))
            for samples, rows in sample_blocks(problem.offsets, PASS_ROWS)
        ]

    def context_moments(self) -> Tensor:
        """Return Σ w c̃ c̃ᵀ, (q, q)."""
        return self._imputed.context_moments()

    def totals(self) -> RowMoments:
        """Return moments of rows with imputed entries, from which EM starts."""
        return self._imputed.totals()

    def run(
        self,
        rows: RowModel,
        response: ResponseModel,
        supervision: float = 1.0,
        score_variance: bool = False,
    ) -> Expected:
        """Make one pass; see `PartExpectation.run`."""
        sums: list[Tensor] | None = None
        for samples, block, patterns in self.blocks:
            part = self.problem.block(samples, block)
            step = _Block(part, self.context[samples], patterns, rows, response, supervision)
            found = step.run(score_variance).sums()
            sums = found if sums is None else [a + b for a, b in zip(sums, found, strict=True)]
        assert sums is not None
        return Expected.of_sums(sums)


class _Block:
    """One block of samples: rows are completed and turned into nodes, then sums are corrected."""

    def __init__(
        self,
        part: Samples,
        context: Tensor,
        patterns: Patterns,
        rows: RowModel,
        response: ResponseModel,
        supervision: float,
    ) -> None:
        self.part, self.context, self.patterns = part, context, patterns
        self.rows, self.response, self.supervision = rows, response, supervision
        precision, means = rows.precision, rows.A.sum(dim=2)  # q is 1, or 0 for means of 0
        self.background, self.active = (
            Conditional(patterns, mean, K) for mean, K in zip(means, precision, strict=True)
        )
        values = part.values.double()
        self.x1, self.x0, shift = active_rows(values, self.background, self.active)
        W, T = rows.score_terms()
        self.scores = torch.sum((self.x1 @ W[0] + T[0].sum(dim=1)) * self.x1, dim=1) + shift
        self.scores = self.scores + _of(part.log_prior)  # of observed entries, (N,)
        self.sample = sample_of_row(part.offsets)  # (N,)
        v = response.value[0, :, 0]
        along = self.active.times(v)  # (P, d)
        s = (along @ v).clamp(min=0.0).sqrt()
        self.direction = along / torch.where(s > 0, s, torch.inf)[:, None]  # (P, d): s·c
        self.s = s[patterns.of_row]
        ones = part.covariates.new_ones(part.n_samples, 1)
        base = torch.cat([ones, part.covariates], dim=1).double() @ response.shared[:, 0]
        self.base = base if part.offset is None else base + part.offset[:, 0].double()
        self.mean = self.x1 @ v + self.base[self.sample]  # m

    def run(self, score_variance: bool) -> Expected:
        """Make the ordinary E-step on nodes, and add the covariances that they lack."""
        part, nodes = self.part, self._nodes()
        scores = self.scores[nodes.source] + nodes.log_weight
        values = self.x1[nodes.source]
        values += self.direction[self.patterns.of_row[nodes.source]] * nodes.place[:, None]
        counts = torch.bincount(nodes.source, minlength=part.n_rows)
        ends = torch.cat([counts.new_zeros(1), counts.cumsum(dim=0)])
        expanded = replace(
            part,
            values=values.to(part.dtype),
            offsets=ends[part.offsets],
            missing=None,
            log_prior=None,
            log_known=None if part.log_known is None else part.log_known[nodes.source],
        )
        step = _NodeExpectation(expanded, self.context, part.row_mass, scores[:, None])
        given = (self.rows, self.response, self.supervision)
        expected = step.run(*given, keep=True, score_variance=score_variance)
        r = torch.cat(expected.responsibilities)[:, 0].double()  # (M,)
        r = torch.where(r > LEAST_WEIGHT, r, 0.0) * part.weights.double()[self.sample][nodes.source]
        expected.responsibilities = []
        self._add_spread(expected, r, nodes, values)
        self._add_background(expected, torch.zeros_like(self.s).index_add_(0, nodes.source, r))
        return expected

    # ------------------------------------------------------------------ nodes

    def _nodes(self) -> Nodes:
        """Return one node of complete and of negligible rows, several of others."""
        peak, width, height = self._peaks()
        incomplete = self.patterns.is_incomplete() & (self.s > 0)
        count = QUADRATIC_NODES if self.part.family.is_quadratic else NODES
        counts = torch.where(incomplete & self._matters(height), count, 1)
        source = torch.repeat_interleave(counts)  # (M,)
        number = torch.arange(len(source), device=source.device)
        number -= (counts.cumsum(dim=0) - counts)[source]
        xi, log_omega = _hermite(count)
        several = counts[source] > 1
        at = torch.where(several, xi.to(peak)[number], 0.0)
        omega = torch.where(several, log_omega.to(peak)[number], 0.0)
        place = peak[source] + width[source] * at
        return Nodes(
            source, place, omega + width[source].log() + 0.5 * (at.square() - place.square())
        )

    def _peaks(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return where N(t; 0, 1) p(y | m + s t)^λ peaks, how wide it is, and its log integral.

        The integral is Laplace's approximation, which is exact for the gaussian family.
        """
        family, y = self.part.family, self.part.y[self.sample].double()
        strength, t = self.supervision / self.response.phi, torch.zeros_like(self.s)
        if strength == 0:
            return t, torch.ones_like(t), torch.zeros_like(t)
        varies = self.s > 0
        for step in range(PEAK_STEPS):
            z = (self.mean + self.s * t)[:, None]
            bend = family.curvature(y, z)[:, 0, 0].clamp(min=0.0)
            curvature = torch.where(varies, 1 + strength * self.s.square() * bend, 1.0)
            if step and family.is_quadratic:
                break
            slope = strength * self.s * family.gradient(y, z)[:, 0] + t
            change = slope / curvature
            if not family.is_quadratic:  # far away both may be infinite
                far = LONGEST_STEP * slope.sign()
                change = change.nan_to_num(torch.inf).clamp(-LONGEST_STEP, LONGEST_STEP)
                change = torch.where(curvature.isfinite(), change, far)
            t = t - torch.where(varies, change, 0.0)
        z, width = (self.mean + self.s * t)[:, None], curvature.rsqrt()
        return t, width, width.log() - strength * family.loss(y, z) - 0.5 * t.square()

    def _matters(self, height: Tensor) -> Tensor:
        """Return which rows may have a weight in their sample that is not negligible."""
        scores = self.scores + _of(self.part.log_known) + height
        best = segment_max(scores[:, None], self.part.offsets)[:, 0]
        return scores > best[self.sample] - NEGLIGIBLE

    # ------------------------------------------------------------------ what nodes lack

    def _add_spread(self, expected: Expected, r: Tensor, nodes: Nodes, values: Tensor) -> None:
        """Add the covariance of chosen rows that nodes do not have."""
        family, d = self.part.family, len(self.active.mean)
        expected.xx[0] += (left := self._left(r, nodes))
        sample = self.sample[nodes.source]
        z = (values @ self.response.value[0, :, 0] + self.base[sample])[:, None]
        y = self.part.y[sample].double()
        if not family.prefers_bound:
            left = self._left(r * family.curvature(y, z)[:, 0, 0], nodes)
        expected.moments[:d, :d] += left
        if len(expected.score_square):
            squares = family.gradient(y, z)[:, 0].square()
            expected.score_square[:d, :d] += self._left(r * squares, nodes)

    def _left(self, weights: Tensor, nodes: Nodes) -> Tensor:
        """Return Σ w (K_mm⁻¹ − s² c cᵀ), (d, d), over nodes."""
        own = weights.new_zeros(len(self.s)).index_add_(0, nodes.source, weights)
        by_pattern = self.patterns.summed(own)  # (P,)
        return self.active.total(by_pattern) - self.direction.T @ (
            by_pattern[:, None] * self.direction
        )

    def _add_background(self, expected: Expected, r: Tensor) -> None:
        """Add moments of all rows as background rows, of those that are taken, and a constant."""
        weights = spread(self.part.weights.double()[:, None], self.part.offsets)[:, 0]
        weights = weights * _of(self.part.log_prior).exp()  # (N,)
        expected.total, expected.taken = self._background(weights), self._background(r)
        count, log_det = self.patterns.count.double(), self.background.log_det
        constant = 0.5 * (count * (1 + math.log(2 * math.pi)) - log_det)
        expected.log_likelihood += float((self.patterns.summed(weights) * constant).sum())

    def _background(self, weights: Tensor) -> RowMoments:
        used = torch.nonzero(weights)[:, 0]
        x, w, c = self.x0[used], weights[used, None], self.context[self.sample[used]].double()
        xx = x.T @ (w * x) + self.background.total(self.patterns.summed(weights))
        return RowMoments(xx, x.T @ (w * c), c.T @ (w * c), float(w.sum()))


def _of(optional: Tensor | None) -> Tensor:
    """Return terms of rows in float64; 0 if there are none."""
    return torch.zeros((), dtype=torch.float64) if optional is None else optional.double()


def _hermite(count: int) -> tuple[Tensor, Tensor]:
    """Return nodes and log weights of the mean under N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return torch.from_numpy(nodes), torch.from_numpy(np.log(weights / weights.sum()))
