r"""Recalibrated weights of rows, as flat as held-out responses allow: a temperature and doubt.

A model with misleading scores gives some rows too much weight, which a temperature corrects. In
other samples its scores have no information, which no temperature corrects. Recalibrated weights of
one head are

.. math:: κ'_{ij} = (1 - δ)\, \mathrm{softmax}(ψ_i / T)_j + δ u_{ij},

where u are equal weights. They are judged by the evidence of held-out responses,
in which the predictors of single rows may be corrected,
:math:`z_{ij} + a + b z_{ij} + ⟨c, x_{ij}⟩`. Otherwise a solver that took wrong rows for the active
ones would seem to be right, because its coefficients explain the response by those rows.

Responses of 400 samples, of two classes above all, leave a wide range of T and δ open. The largest
evidence picks sharp weights as often as flat ones there. Therefore weights are the flattest ones
that held-out responses do not reject: those with the least :math:`\sum_i w_i \sum_j κ'^2_{ij}` in
the region of T and δ that a likelihood ratio test at 5 % leaves.

The temperature out of fold, T̂ of `row_temperature`, shows whether attention weights can be read as
posteriors of rows. If κ_j is the probability that row j is active, no other temperature explains
held-out responses better. T̂ and φ̂ maximize the evidence

.. math:: \sum_i w_i \log \sum_j κ_{ij}(T)\, p(y_i | ⟨v, x_{ij}⟩ + b, φ), \qquad
          κ(T) = \mathrm{softmax}(ψ / T)

of held-out samples. T̂ > 1 means that weights are too concentrated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logit
from torch import Tensor

from diagatt.attention.row_terms import RowTerms, row_terms
from diagatt.families import Family
from diagatt.segments import (
    offsets_from,
    segment_argmax,
    segment_logsumexp,
    segment_softmax,
    segment_sum,
    spread,
)
from diagatt.solvers.folds import OutOfFold
from diagatt.solvers.lbfgs import minimize_lbfgs
from diagatt.solvers.outlying_rows import main_directions
from diagatt.solvers.problem import Samples
from diagatt.solvers.sandwich.parameters import with_zeros

# T̂ above which weights are not called posteriors, and are recalibrated.
WORST_TEMPERATURE = 1.5
# Held-out samples that decide about T̂, at most; fewer if several heads have many assignments.
MOST_SAMPLES, MOST_OF_SEVERAL_HEADS = 600, 200
# Their rows at most: what costs is the evidence of rows.
MOST_ROWS = 30_000
# T̂ is searched between 1/20 and 20.
MOST_LOG = float(np.log(20.0))
# Loss of evidence at which T and δ are rejected: half of the 95 % quantile of χ² with 2 parameters.
LARGEST_LOSS = 3.0
# Logarithms of the price of sharp weights, in units of evidence, between which it is searched.
LOG_PRICES, BISECTIONS = (-4.0, 5.0), 5
# Where the search for δ begins, and the least and the most that it is.
FIRST_DOUBT, LEAST_DOUBT, MOST_DOUBT = 0.1, 1e-4, 0.999
# Doubt up to which sharper scores count as sharper weights.
LITTLE_DOUBT = 0.05
# Features by which predictors of rows are corrected: at most one per this many samples.
SAMPLES_PER_DIRECTION = 40
# Ridge of the correction, whose columns have unit size; separable classes have no other maximum.
RIDGE = 0.1
# How far log φ may move.
FARTHEST_LOG_PHI = 7.0
# Logarithms of ratios of densities are taken as no larger.
MOST_LOG_RATIO = 50.0
MAX_STEPS, TOLERANCE, LEAST_STEP = 40, 1e-3, 1e-6


def row_temperature(unseen: OutOfFold) -> float:
    """Return T̂ of held-out samples."""
    family, parts = unseen.samples.family, held_out_terms(unseen)
    y = torch.cat([part.y for part, _ in parts]).double()
    phi = initial_log_dispersion(family, y)
    start = np.array([[0.0, phi], [0.7, phi], [0.0, phi - 0.7]])

    def cost(place: np.ndarray) -> float:
        if abs(place[0]) > MOST_LOG:
            return float("inf")
        phi = float(np.exp(place[1])) if family.has_dispersion else 1.0
        found = sum(_evidence(part, terms, float(np.exp(place[0])), phi) for part, terms in parts)
        return -found if np.isfinite(found) else float("inf")

    if family.has_dispersion:
        how = {"initial_simplex": start, "xatol": 0.01, "fatol": 0.01}
        best = minimize(cost, start[0], method="Nelder-Mead", options=how)
        return float(np.exp(best.x[0]))
    grid = np.linspace(-MOST_LOG, MOST_LOG, 25)
    near = grid[int(np.argmin([cost(np.array([t, 0.0])) for t in grid]))]
    fine = near + np.linspace(-0.25, 0.25, 11)
    return float(np.exp(fine[int(np.argmin([cost(np.array([t, 0.0])) for t in fine]))]))


def initial_log_dispersion(family: Family, y: Tensor) -> float:
    """Return log φ from which the search begins."""
    return float(np.log(family.initial_dispersion(family.scale(y, torch.ones(len(y)).to(y)))))


def held_out_terms(unseen: OutOfFold) -> list[tuple[Samples, RowTerms]]:
    """Return some held-out samples of each fold with their row terms by the fit to the others."""
    heads = unseen.predictors[0].n_heads
    most = MOST_SAMPLES if heads == 1 else MOST_OF_SEVERAL_HEADS
    samples = unseen.samples
    step = max(1, -(-samples.n_samples // most), -(-samples.n_rows // MOST_ROWS))
    found = []
    for _, held_out, predictor in unseen.parts():
        part = held_out.take(torch.arange(0, held_out.n_samples, step, device=held_out.device))
        found.append((part, row_terms(predictor, *part.inputs)))
    return found


def _evidence(part: Samples, terms: RowTerms, temperature: float, phi: float) -> float:
    log_p, z, places = terms.assignments(temperature)
    density: Tensor = part.family.log_density(spread(part.y.double(), places), z, phi)
    return float((part.weights.double() * segment_logsumexp(log_p + density, places)).sum())


class Recalibration(NamedTuple):
    """The change of row weights, and the loss of evidence without it."""

    temperature: float = 1.0
    doubt: float = 0.0
    loss: float = 0.0

    def __str__(self) -> str:
        return f"scores divided by {self.temperature:.2f}, doubt {self.doubt:.2f}"

    @property
    def is_none(self) -> bool:
        """Whether weights do not change."""
        return self.temperature == 1 and self.doubt == 0

    def shows_overconfidence(self, row_temperature: float) -> bool:
        """Whether unchanged weights are no posteriors: T̂ > 1.5, or flatter weights are better."""
        is_flatter = self.temperature > 1 or self.doubt > LITTLE_DOUBT
        return row_temperature > WORST_TEMPERATURE or (is_flatter and self.loss > LARGEST_LOSS)

    def weights(self, terms: RowTerms, offsets: Tensor, log_prior: Tensor | None) -> Tensor:
        """Return recalibrated weights of rows, (N, R); `offsets` are those of rows alone."""
        kappa = terms.weights(self.temperature)
        return doubted(kappa, offsets, self.doubt, log_prior) if self.doubt > 0 else kappa


def doubted(
    kappa: Tensor, offsets: Tensor, doubt: float, log_prior: Tensor | None = None
) -> Tensor:
    """Return weights (N, R) of which a share δ is the same for all rows of a sample.

    What weights leave to "none" stays as it is.

    Examples
    --------
    >>> doubted(torch.tensor([[1.0], [0.0]]), torch.tensor([0, 2]), 0.5)[:, 0]
    tensor([0.7500, 0.2500])
    """
    prior = kappa.new_zeros(len(kappa)) if log_prior is None else log_prior.to(kappa)
    equal = segment_softmax(prior[:, None], offsets)  # (N, 1)
    return (1 - doubt) * kappa + doubt * spread(segment_sum(kappa, offsets), offsets) * equal


def recalibration(unseen: OutOfFold, row_temperature: float) -> Recalibration:
    """Return the recalibration of weights by held-out responses.

    Parameters
    ----------
    unseen : OutOfFold
    row_temperature : float
        T̂, by which weights of several heads are recalibrated if it is above 1.5.
    """
    if unseen.predictors[0].n_heads > 1:
        too_sure = row_temperature > WORST_TEMPERATURE
        return Recalibration(row_temperature if too_sure else 1.0)
    return _Evidence(unseen).flattest()


def row_evidence(unseen: OutOfFold, change: Recalibration) -> np.ndarray:
    """Return what held-out responses say about the located rows of one head, (m, 3).

    The columns are the recalibrated weight of the located row; the logarithm of the response's
    mean density given one of the other rows, relative to that given the located row; and the
    weight of the sample.
    """
    parts, family = held_out_terms(unseen), unseen.samples.family
    terms = _joined([terms for _, terms in parts])
    priors = [part.log_prior for part, _ in parts if part.log_prior is not None]
    y = torch.cat([part.y for part, _ in parts]).double()
    log_p, z, offsets = terms.assignments()

    def density(log_phi: float) -> Tensor:
        return family.log_density(spread(y, offsets), z, math.exp(log_phi))

    log_phi = 0.0
    if family.has_dispersion:
        first = initial_log_dispersion(family, y)
        log_phi = minimize_scalar(
            lambda place: -float(segment_logsumexp(log_p + density(place), offsets).sum()),
            bounds=(first - FARTHEST_LOG_PHI, first + FARTHEST_LOG_PHI),
            method="bounded",
        ).x
    kappa = change.weights(terms, offsets, torch.cat(priors) if priors else None)
    best = offsets[:-1] + segment_argmax(kappa, offsets)[:, 0]
    found, others = density(log_phi), torch.ones_like(log_p, dtype=torch.bool)
    others[best] = False
    of_others = segment_logsumexp(torch.where(others, found, -torch.inf), offsets)
    ratio = of_others - (offsets.diff() - 1).double().log() - found[best]
    ratio = torch.where(offsets.diff() > 1, ratio, 0.0)  # a single row has no others
    ratio = ratio.nan_to_num().clamp(-MOST_LOG_RATIO, MOST_LOG_RATIO)
    weights = torch.cat([part.weights for part, _ in parts]).double()
    return torch.stack([kappa[best, 0], ratio, weights], dim=1).cpu().numpy()


class _Evidence:
    """The evidence of held-out responses, as a function of T, δ, φ and the correction.

    Its place is a vector of log T and logit δ, before they are bounded, the change of log φ, and
    the correction.
    """

    def __init__(self, unseen: OutOfFold) -> None:
        held_out, self.family = held_out_terms(unseen), unseen.samples.family
        self.y = torch.cat([part.y for part, _ in held_out]).double()
        self.weights = torch.cat([part.weights for part, _ in held_out]).double()
        self.log_phi = initial_log_dispersion(self.family, self.y)
        self.unit = math.exp(0.5 * self.log_phi) if self.family.has_identity_link else 1.0
        # One table of all folds; none-rows are candidates like rows.
        self.terms = _joined([terms for _, terms in held_out])
        flags, equal = zip(*(_equal_weights(*pair) for pair in held_out), strict=True)
        self.is_row, self.equal = torch.cat(flags), torch.cat(equal)  # (M,) each
        self.columns = _correction(held_out, self.terms)  # (M, m)
        self.count = self.columns.shape[1] * unseen.samples.n_outputs

    def flattest(self) -> Recalibration:
        """Return the flattest weights that are not rejected.

        The squares of weights are subtracted from the evidence at a price, which is found by
        bisection.
        """
        start = torch.zeros(3 + self.count, dtype=torch.float64)
        start[1] = float(logit(FIRST_DOUBT))
        alone = self._maximum(0.0, start, (1.0, 0.0))[0]
        best, start = self._maximum(0.0, start)
        free = start
        start = start.clone()
        start[:2] = 0.0  # δ = ½: at the ends of its range, nothing would pull it away
        low, high = LOG_PRICES
        evidence, found = self._maximum(math.exp(high), start)
        if best - evidence > LARGEST_LOSS:
            found = free
            for _ in range(BISECTIONS):
                middle = 0.5 * (low + high)
                evidence, place = self._maximum(math.exp(middle), start)
                if best - evidence > LARGEST_LOSS:
                    high = middle
                else:
                    low, found = middle, place
        temperature, doubt = _bounded(found[:2]).tolist()
        return Recalibration(temperature, doubt if doubt > 2 * LEAST_DOUBT else 0.0, best - alone)

    def _maximum(
        self, price: float, start: Tensor, gate: tuple[float, float] | None = None
    ) -> tuple[float, Tensor]:
        """Return the evidence and the place of the maximum, with T and δ as given if they are."""

        def objective(at: Tensor) -> tuple[Tensor, Tensor]:
            at = at.detach().requires_grad_()
            evidence, squares = self._at(at, gate)
            value = price * squares - evidence
            return value.detach(), torch.autograd.grad(value, at)[0]

        found = minimize_lbfgs(objective, start, MAX_STEPS, TOLERANCE, LEAST_STEP).x
        return float(self._at(found, gate)[0]), found

    def _at(self, at: Tensor, gate: tuple[float, float] | None) -> tuple[Tensor, Tensor]:
        """Return the evidence and Σ w_i Σ_j κ'_ij²."""
        temperature, doubt = _bounded(at[:2]) if gate is None else at.new_tensor(gate)
        phi: Tensor | float = 1.0
        if self.family.has_dispersion:
            phi = (self.log_phi + FARTHEST_LOG_PHI * torch.tanh(at[2] / FARTHEST_LOG_PHI)).exp()
        log_p, z, places = self.terms.assignments(temperature)
        p = log_p.exp()
        some = segment_sum((p * self.is_row)[:, None], places)[:, 0]
        mixed = (1 - doubt) * p + doubt * self.equal * spread(some, places)
        log_p = torch.where(self.is_row, mixed, p).clamp(min=1e-300).log()
        theta = at[3:]
        z = z + self.unit * self.columns @ theta.reshape(self.columns.shape[1], -1)
        density = self.family.log_density(spread(self.y, places), z, phi)
        evidence = self.weights @ segment_logsumexp(log_p + density, places)
        squares = self.weights @ segment_sum((2 * log_p).exp()[:, None], places)[:, 0]
        return evidence - 0.5 * RIDGE * theta.square().sum(), squares


def _bounded(at: Tensor) -> Tensor:
    """Return T, between 1/20 and 20, and δ of two numbers without bounds, (2,)."""
    temperature = (MOST_LOG * torch.tanh(at[0] / MOST_LOG)).exp()
    doubt = LEAST_DOUBT + (MOST_DOUBT - LEAST_DOUBT) * torch.sigmoid(at[1])
    return torch.stack([temperature, doubt])


def _joined(terms: Sequence[RowTerms]) -> RowTerms:
    """Return the terms of all samples of several parts."""
    return terms[0]._replace(
        scores=torch.cat([part.scores for part in terms]),
        effects=torch.cat([part.effects for part in terms]),
        shared=torch.cat([part.shared for part in terms]),
        offsets=offsets_from(torch.cat([part.offsets.diff() for part in terms])),
    )


def _correction(held_out: Sequence[tuple[Samples, RowTerms]], terms: RowTerms) -> Tensor:
    """Return the columns by which predictors of candidates are corrected, (M, m)."""
    most = len(terms.shared) // SAMPLES_PER_DIRECTION
    values = [samples.values for samples, _ in held_out]
    rows = main_directions(torch.cat(values), most)
    if terms.has_none:
        lengths = torch.cat([samples.offsets.diff() for samples, _ in held_out])
        rows = with_zeros(rows, offsets_from(lengths))
    columns = torch.cat([terms.assignments().predictor, rows], dim=1)
    columns = columns / columns.std(dim=0).clamp(min=1e-12)
    return torch.cat([torch.ones_like(columns[:, :1]), columns], dim=1)


def _equal_weights(samples: Samples, terms: RowTerms) -> tuple[Tensor, Tensor]:
    """Return which candidates are no none-rows, and equal weights of those, both (M,)."""
    prior = torch.zeros_like(samples.values[:, 0], dtype=torch.float64)
    if samples.log_prior is not None:
        prior = samples.log_prior.double()
    equal = segment_softmax(prior[:, None], samples.offsets)
    is_row = torch.ones_like(equal)
    if terms.has_none:
        equal, is_row = with_zeros(equal, samples.offsets), with_zeros(is_row, samples.offsets)
    return is_row[:, 0] > 0, equal[:, 0]
