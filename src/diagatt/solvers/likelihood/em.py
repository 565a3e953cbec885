"""Maximum likelihood for the latent-row model by EM.

Each sample has R distinct active rows, one per head (`latent_rows`), and its response follows a GLM
of these rows (equation eq:individualized_framework). The E-step (`part`) computes which rows are
active, given the response. The M-step computes moments and one Newton step, which is exact for the
gaussian family. The fitted scores need no response: they are those of diagonalized attention.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from diagatt.scores import ScoreForm
from diagatt.solvers.checkpoint import RunState, with_prefix
from diagatt.solvers.likelihood.incomplete import IncompleteExpectation
from diagatt.solvers.likelihood.latent_rows import (
    Expected,
    LatentRows,
    NoneModel,
    ResponseModel,
    RowModel,
    RowMoments,
    estimate_row_model,
)
from diagatt.solvers.likelihood.part import PartExpectation
from diagatt.solvers.problem import Problem, RememberedPart, Samples

# Lower bound of the dispersion, as a share of the variance of y.
LEAST_DISPERSION = 1e-4
# Distance of two runs, as a share of their steps, from which they are the same.
MET = 0.25
# Least distance of π from 0 and from 1.
LEAST_SHARE = 1e-6


class Expectation:
    """The E-step for one problem, in memory or on disk.

    Parameters
    ----------
    problem : Problem
    score_form : ScoreForm
        Decides on which context the rows are conditioned.
    distinct : bool
        Whether the rows of different heads must differ.
    """

    def __init__(self, problem: Problem, score_form: ScoreForm, distinct: bool = True) -> None:
        self.problem, self.distinct = problem, distinct

        def part_expectation(part: Samples) -> Any:
            context = score_form.context(part.values, part.offsets)
            if part.missing is not None:
                return IncompleteExpectation(part, context)
            return PartExpectation(part, context, distinct)

        self.of_part = RememberedPart(problem, part_expectation)

    @cached_property
    def _moments(self) -> tuple[RowMoments, Tensor]:
        """Moments of all rows and of the context, from one pass."""

        def terms(part: Samples) -> list[Tensor]:
            here = self.of_part(part)
            return [*here.totals().tensors(), here.context_moments()]

        *rows, context = self.problem.total(terms)
        return RowMoments.of_tensors(rows), context

    @property
    def totals(self) -> RowMoments:
        """Moments of all rows, weighted by sample weight and by how free each row is."""
        return self._moments[0]

    @property
    def context_moments(self) -> Tensor:
        """Σ w c̃ c̃ᵀ, (q, q)."""
        return self._moments[1]

    def run(
        self,
        rows: RowModel,
        response: ResponseModel,
        supervision: float = 1.0,
        score_variance: bool = False,
    ) -> Expected:
        """Make one pass over all samples; see `PartExpectation.run`."""

        def terms(part: Samples) -> list[Tensor]:
            here = self.of_part(part)
            return here.run(rows, response, supervision, score_variance=score_variance).sums()

        return Expected.of_sums(self.problem.total(terms))


@dataclass(frozen=True)
class EMSettings:
    """Settings of EM; see the parameters of `Likelihood`."""

    covariance: str
    rank: int
    shrinkage: float | None
    ridge: float
    tolerance: float
    verbose: bool = False
    none: bool = False  # whether samples may have no active row
    prevalence: float | None = None  # the share of samples that have one, if it is known


@dataclass
class LikelihoodFit:
    """The result of EM."""

    model: LatentRows
    log_likelihood: float
    history: list[dict[str, float]]


@dataclass
class EMState:
    """The state of EM before an E-step."""

    model: LatentRows
    schedule: list[float]  # λ of the next iterations
    step: float = 1.0
    best: float = -math.inf  # log-likelihood of `best_model`
    best_model: LatentRows | None = None
    expected: Expected | None = None  # E-step of `best_model`
    last: float = -math.inf
    is_done: bool = False
    history: list[dict[str, float]] = field(default_factory=list)

    def write(self, file: RunState) -> None:
        """Write the state; the E-step of the best model is repeated if it is needed."""
        tensors = {f"model.{k}": v for k, v in self.model.tensors().items()}
        if self.best_model is not None:
            tensors |= {f"best.{k}": v for k, v in self.best_model.tensors().items()}
        names = ("step", "best", "last", "is_done", "history")
        file.write(tensors, {"em": {name: getattr(self, name) for name in names}})

    @classmethod
    def read(cls, file: RunState, device: torch.device) -> EMState | None:
        """Return the state that was written last, if any."""
        found = file.read()
        if found is None:
            return None
        tensors = {k: v.to(device) for k, v in found[0].items()}
        best = with_prefix("best.", tensors)
        return cls(
            LatentRows.of(with_prefix("model.", tensors)),
            schedule=[],
            best_model=LatentRows.of(best) if best else None,
            **found[1]["em"],
        )


class EM:
    """EM on one problem, for all heads together or for one head in addition to earlier ones.

    Parameters
    ----------
    expectation : Expectation
        If its problem has probabilities that rows were left free by earlier heads, rows count by
        these probabilities, also as background rows.
    settings : EMSettings
    """

    def __init__(self, expectation: Expectation, settings: EMSettings) -> None:
        self.expectation, self.settings = expectation, settings
        self.problem = expectation.problem
        self.total = expectation.totals
        self.weight = self.problem.total_weight
        self.least_phi = LEAST_DISPERSION * self.problem.scale

    def expect(self, model: LatentRows, supervision: float = 1.0) -> Expected:
        """Make an E-step; the log-likelihood is that of all rows and, by λ, of the responses."""
        expected = self.expectation.run(model.rows, model.response, supervision)
        total = expected.total or self.total
        expected.log_likelihood += model.rows.background_log_likelihood(total)
        return expected

    def maximize(
        self, expected: Expected, response: ResponseModel, step: float = 1.0
    ) -> LatentRows:
        """Make an M-step: row moments in closed form, the GLM by a Newton step."""
        active = self.head_moments(expected)
        background = self._background(expected, active)
        s = self.settings
        rows = estimate_row_model(active, background, s.covariance, s.shrinkage, s.rank)
        return LatentRows(rows, self._newton(expected, response, step))

    def _background(self, expected: Expected, active: list[RowMoments]) -> RowMoments:
        """Return moments of rows that no head chose, each as far as it is not chosen."""
        total = expected.total or self.total
        if expected.taken is not None:
            background = total - expected.taken
        elif len(active) > 1 and not self.expectation.distinct:
            return total  # independent heads may choose a row twice: it cannot be taken out
        else:
            background = total
            for moments in active:
                background = background - moments
        nothing_left = background.count < 1e-6 * total.count  # every row is active
        return total if nothing_left else background

    def head_moments(self, expected: Expected) -> list[RowMoments]:
        """Return moments of the rows that each head chose; a sample counts once per head.

        It counts as far as it has an active row; the context is then 1 in every sample.
        """
        heads, cc = zip(expected.xx, expected.xc, strict=True), self.expectation.context_moments
        if expected.without:
            with_row = self.weight - expected.without
            cc = cc * (with_row / self.weight)
            return [RowMoments(xx, xc, cc, with_row) for xx, xc in heads]
        return [RowMoments(xx, xc, cc, self.weight) for xx, xc in heads]

    def _newton(self, expected: Expected, response: ResponseModel, step: float) -> ResponseModel:
        R, d, K = response.value.shape
        family = self.problem.family
        bound = family.curvature_bound if family.prefers_bound else None
        H = expected.moments * (1.0 if bound is None else bound)
        ridge = torch.zeros(len(H), dtype=H.dtype, device=H.device)
        ridge[: R * d] = self.settings.ridge
        parts = [response.value.reshape(R * d, K), response.shared]
        if response.none is not None:
            ridge[-1] = self.settings.ridge
            parts.append(response.none.value[None])
        beta = torch.cat(parts)
        slope = expected.gradient + ridge[:, None] * beta
        # A tiny ridge keeps copied features and covariates solvable.
        tiny = 1e-10 * float(H.diagonal().mean()) + 1e-300
        change = -step * torch.linalg.solve(H + torch.diag(ridge + tiny), slope)
        if bound is None:  # far from the optimum, curvatures mislead: z moves by about 1
            step_of = change[: R * d].reshape(R, d, K)
            moved = torch.einsum("rdk,rde,rek->", step_of, expected.xx, step_of) * R / self.weight
            change = change / max(1.0, float(moved) ** 0.5)
        beta = beta + change
        phi = response.phi
        if family.is_quadratic:  # the loss after the step is known exactly
            gain = (expected.gradient * change).sum() + 0.5 * (change * (H @ change)).sum()
            phi = 2 * (expected.loss + float(gain)) / (self.weight * family.n_outcomes)
        elif family.has_dispersion:
            phi = expected.dispersion / self.weight
        phi = max(phi, self.least_phi)
        none, end = None, len(beta)
        if response.none is not None:
            share = self.settings.prevalence
            if share is None:
                share = 1 - expected.without / self.weight
            none, end = NoneModel(min(max(share, LEAST_SHARE), 1 - LEAST_SHARE), beta[-1]), end - 1
        return ResponseModel(beta[: R * d].reshape(R, d, K), beta[R * d : end], phi, none)

    def run(
        self,
        model: LatentRows,
        iterations: int,
        supervision: list[float] | None = None,
        file: RunState | None = None,
    ) -> LikelihoodFit:
        """Iterate until the likelihood gains less than the tolerance per sample.

        Parameters
        ----------
        supervision : list of float, optional
            λ of the first iterations; 1 afterwards.
        file : RunState, optional
            Where the state is kept; a run goes on from it.

        Returns
        -------
        LikelihoodFit
            The likelihood never falls at λ = 1: a Newton step that lowers it is halved.
        """
        now = EMState(model, list(supervision or []))
        if file is not None:
            now = EMState.read(file, self.problem.device) or now
        with self.problem.pass_bar("EM", self.settings.verbose) as advance:
            while len(now.history) < iterations and not now.is_done:
                self._iterate(now)
                advance(f"iteration {len(now.history)}, log-likelihood {now.last:.6g}")
                if file is not None and file.is_due(len(now.history), now.is_done):
                    now.write(file)
        return self._result(now)

    def run_together(
        self, starts: dict[str, tuple[LatentRows, list[float]]], iterations: int
    ) -> dict[str, LikelihoodFit]:
        """Iterate from several starts; of runs that meet, one goes on, and both have its result.

        Two runs at the same λ have met when, twice in succession, the distance between their row
        models is at most `MET` of the last step of either: they follow the same path, perhaps one
        a fraction of a step behind. The one with the higher likelihood goes on.
        """
        runs = {name: EMState(model, list(schedule)) for name, (model, schedule) in starts.items()}
        joined: dict[str, str] = {}
        near: set[tuple[str, str]] = set()
        context = self.expectation.context_moments / self.weight
        for iteration in range(iterations):
            steps: dict[str, float] = {}
            for name, now in runs.items():
                if name not in joined and not now.is_done:
                    before = now.model.rows
                    self._iterate(now)
                    steps[name] = now.model.rows.divergence(before, context)
            pairs = [
                (one, other)
                for one, other in combinations(steps, 2)
                if iteration  # the first step, from an arbitrary start, is far longer than others
                and runs[one].schedule == runs[other].schedule
                and runs[one].model.rows.divergence(runs[other].model.rows, context)
                <= MET * min(steps[one], steps[other])
            ]
            for pair in near.intersection(pairs):
                if not joined.keys() & set(pair):
                    behind, ahead = sorted(pair, key=lambda name: runs[name].last)
                    joined[behind] = ahead
            near = set(pairs)
        found = {name: self._result(now) for name, now in runs.items() if name not in joined}
        for name in reversed(joined):  # a run may have joined one that joined a third later
            found[name] = found[joined[name]]
        return {name: found[name] for name in runs}

    def _result(self, now: EMState) -> LikelihoodFit:
        if now.best_model is None:
            return LikelihoodFit(now.model, self.expect(now.model).log_likelihood, now.history)
        return LikelihoodFit(now.best_model, now.best, now.history)

    def _iterate(self, now: EMState) -> None:
        """Make an E-step at the current model, then the M-step that its likelihood allows."""
        enough = self.settings.tolerance * self.weight
        strength = now.schedule.pop(0) if now.schedule else 1.0
        model, expected = now.model, self.expect(now.model, strength)
        value = expected.log_likelihood
        now.history.append({"iteration": len(now.history) + 1, "log_likelihood": value})
        if strength == 1.0:
            slack = 1e-9 * abs(value)
            known = now.best_model
            if known is not None and not value >= now.best - slack and now.step > 1e-3:
                model, expected = known, now.expected or self.expect(known)
                now.step /= 2
            else:
                gain = value - now.best
                now.best, now.best_model, now.expected = value, model, expected
                now.is_done = gain < enough and now.step == 1.0
                now.step = min(1.0, 2 * now.step)
        elif value - now.last < enough:  # this λ is exhausted
            now.schedule = [s for s in now.schedule if s > strength]
        now.last = value
        if not now.is_done:
            now.model = self.maximize(expected, model.response, now.step)


def value_covariance(em: EM, model: LatentRows) -> Tensor | None:
    r"""Return the covariance of (V, b, γ), (P, P), from Louis' observed information (1982).

    .. math:: I = \tfrac1φ \, \mathrm E[ℓ''\, f f^⊤] - \tfrac1{φ²} \,\mathrm{Cov}(ℓ' f)

    The first term is the information of complete data, the second what is lost because the rows
    are unknown; the distributions of rows are taken as known. None for several outputs.
    """
    if model.response.value.shape[2] > 1:
        return None
    expected = em.expectation.run(model.rows, model.response, score_variance=True)
    phi, size = model.response.phi, model.response.value.numel()
    information = expected.moments / phi - expected.score_square / phi**2
    information[range(size), range(size)] += em.settings.ridge / phi
    if model.response.none is not None:
        information[-1, -1] += em.settings.ridge / phi
    values, vectors = torch.linalg.eigh((information + information.T) / 2)
    if float(values[0]) <= 0:  # no maximum in some direction, which has no standard error
        return None
    covariance = vectors / values @ vectors.T
    return covariance if model.response.none is None else covariance[:-1, :-1]


def join_heads(heads: list[LatentRows], background: tuple[Tensor, Tensor]) -> LatentRows:
    """Join heads that were built one after the other into one model with a common background."""
    A = torch.stack([background[0], *(h.rows.A[1] for h in heads)])
    C = torch.stack([background[1], *(h.rows.C[1] for h in heads)])
    value = torch.cat([h.response.value for h in heads])
    return LatentRows(RowModel(A, C), replace(heads[-1].response, value=value))
