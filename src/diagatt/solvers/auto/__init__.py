"""`Auto`: ways to fit are compared out of fold; those with weight become one model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from diagatt.attention.blend import Blend
from diagatt.parameters import Rule, count, one_of, optional
from diagatt.progress import progress_bar
from diagatt.rowmaps import MOST_DIMENSIONS, MOST_FULL, MOST_WIDE, distinct_maps
from diagatt.solvers.auto.combine import Verdict, judge
from diagatt.solvers.auto.contest import PER_DIMENSION, Contest, Entry
from diagatt.solvers.auto.contestants import (
    SAMPLE_FEATURES,
    SHAPES,
    Contestant,
    attention_contestants,
    extreme_contestants,
    kernel_contestants,
    likelihood_contestant,
    mean_contestants,
    several_heads_contestants,
    solver_contestants,
    uniform_contestants,
    wide_contestants,
)
from diagatt.solvers.auto.many import STEPS_OF_WIDE_ROWS
from diagatt.solvers.auto.refit import fold_members, refit
from diagatt.solvers.auto.report import report_lines
from diagatt.solvers.auto.shared_rows import score_width
from diagatt.solvers.auto.units import ResponseUnits
from diagatt.solvers.base import Fitted, Model, Solver, agreed
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.folds import OutOfFold, content_folds
from diagatt.solvers.glm import OVERFLOW, DivergedError
from diagatt.solvers.problem import Problem, Samples, row_weights
from diagatt.solvers.uniform import Uniform

__all__ = ["Auto"]

logger = logging.getLogger(__name__)

# The contest takes as many samples as have about `CONTEST_ROWS` rows, but no more than
# `ALL_SAMPLES` and no fewer than `LEAST_SAMPLES`.
ALL_SAMPLES, CONTEST_ROWS, LEAST_SAMPLES = 2000, 20_000, 300
# With more rows times score parameters than this, fewer ways to fit compete.
LARGE_CONTEST = 30_000_000
# The row map whose scale depends on the units of features.
WITH_UNITS = "common"
# Rows times squared features up to which the contest computes in float64.
EXACT_SIZE = 2_000_000

_SEVERAL_SOLVERS = Rule(
    "a sequence of solvers",
    lambda value: (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(contestant, Solver) for contestant in value)
    ),
)


class Auto(Solver):
    """Compare ways to fit by their log score out of fold; keep the best, or a weighted blend.

    Parameters
    ----------
    contestants : sequence of solvers, optional
        Their rows are not mapped. By default row maps (`diagatt.rowmaps`), objectives and penalties
        compete: uniform attention, attention by the loss of the pooled row, by the likelihood of
        the mixture over rows, and by the likelihood of Gaussian rows.
    folds : int
        Count of folds. Copies of a sample, and samples of one group, share a fold.
    combine : {"weights", "best"}
        "weights" blends contestants by their log scores; "best" keeps the one with the best, for
        those who report its coefficients.

    Examples
    --------
    >>> from diagatt.solvers import Auto, Gradient, Uniform
    >>> Auto([Uniform(), Gradient(rank=1)], combine="best").combine
    'best'
    """

    name = "auto"
    goes_on = False
    holds_out = True
    rules: ClassVar[Mapping[str, Rule]] = {
        "contestants": optional(_SEVERAL_SOLVERS),
        "folds": count(2),
        "combine": one_of("weights", "best"),
    }

    def __init__(
        self,
        contestants: Sequence[Solver] | None = None,
        *,
        folds: int = 5,
        combine: str = "weights",
    ) -> None:
        self.contestants = contestants
        self.folds = folds
        self.combine = combine

    def refuse(self, problem: Problem, model: Model) -> str | None:
        """Return why the first contestant that cannot serve refuses, if any."""
        if any(solver.allows_none for solver in self.contestants or ()):
            return "none=True cannot compete: set solver to that solver itself."
        reasons = (solver.refuse(problem, model) for solver in self.contestants or ())
        return next((reason for reason in reasons if reason), None)

    def fit(
        self,
        problem: Problem,
        model: Model,
        *,
        seed: int,
        start: Fitted | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool = False,
    ) -> Fitted:
        """Compare the contestants, then fit those that have weight to all samples.

        The contest does not start from an earlier fit, which has seen the held-out samples.
        """
        units = ResponseUnits.of(problem)
        scaled = units.scaled(problem)
        part = _contest_part(scaled, seed)
        if not bool(torch.isfinite(part.values.double().square().sum())):
            raise DivergedError(OVERFLOW)
        groups = None if part.groups is None else part.groups.cpu().numpy()
        folds = content_folds(part, self.folds, seed, groups)
        if int(folds.max()) == 0 and groups is not None and part.n_samples > 1:
            raise ValueError(
                "groups: all samples are of one group, which cannot be held out while others are "
                "fitted to; leave groups out, or set solver='likelihood'."
            )
        if int(folds.max()) == 0:  # copies of one sample: nothing can be held out
            return replace(Uniform().fit(problem, model, seed=seed), finds_rows=False)
        with progress_bar("Contest", None, verbose) as advance:
            contest = Contest(part, folds, model, seed, _dtype(part), advance)
            self._run(contest)
        verdict = self._verdict(contest, problem)
        unseen = self._unseen(contest, verdict, _contest_part(problem, seed), units)
        lines = report_lines(contest, verdict, units)
        logger.info("contest: %s", lines)
        fitted = refit(
            contest, verdict, scaled, model, seed=seed, checkpoint=checkpoint, verbose=verbose
        )
        fitted = units.undone(fitted, problem.total_weight)
        return replace(fitted, contest=lines, out_of_fold=unseen)

    def out_of_fold(self, problem: Problem, model: Model, *, seed: int) -> OutOfFold:
        """Return the predictions of the contest for held-out samples, without a final fit."""
        units = ResponseUnits.of(problem)
        part = _contest_part(units.scaled(problem), seed)
        groups = None if part.groups is None else part.groups.cpu().numpy()
        folds = content_folds(part, self.folds, seed, groups)
        if int(folds.max()) == 0:
            raise ValueError("all samples are copies of one, or one group: nothing is held out.")
        contest = Contest(part, folds, model, seed, _dtype(part))
        self._run(contest)
        verdict = self._verdict(contest, problem)
        found = self._unseen(contest, verdict, _contest_part(problem, seed), units)
        if found is None:
            raise ValueError("no contestant attends to rows: there is nothing to test.")
        return found

    def _unseen(
        self, contest: Contest, verdict: Verdict, samples: Samples, units: ResponseUnits
    ) -> OutOfFold | None:
        """Return the blend of every fold's fits, in the units of y."""
        if verdict.existence is None:
            return None
        blends: list[Blend] = []
        rows = (samples.values, samples.offsets, samples.log_prior)
        for fold in range(contest.n_folds):
            members = fold_members(contest, verdict, fold)
            for member in members:
                units.undo(member.attention)
                member.attention.to(samples.dtype)  # the maps stay in float64
            blend = Blend(members, samples.family)
            like = blends[0].attention(*rows) if blends and blend.n_heads > 1 else None
            blend.align_heads(*rows, like)
            blends.append(blend)
        return OutOfFold(samples, contest.folds, list(blends), verdict.existence)

    def _run(self, contest: Contest) -> None:
        """Enter the user's contestants, or those for the form of the model."""
        model, family = contest.model, contest.samples.family
        if self.contestants is not None:
            contest.enter(Contestant("given", solver=solver) for solver in self.contestants)
            return
        maps = distinct_maps(contest.samples.values, row_weights(contest.samples))
        free = [rows for rows in maps if rows != WITH_UNITS]
        if model.is_plain:
            self._enter_one_head(contest, free)
            if free != maps:
                self._enter_common(contest)
            return
        tried = (
            several_heads_contestants(free, family, model.n_heads)
            if model.has_affine_scores
            else solver_contestants(model, family)
        )
        contest.enter(c for c in tried if c.as_solver().refuse(contest.samples, model) is None)

    def _enter_one_head(self, contest: Contest, maps: list[str]) -> None:
        """Enter the contestants of the plain model; those without attention come first."""
        part, family, scope = contest.samples, contest.samples.family, Scope.of(contest.samples)
        plain = [rows for rows in maps if rows != "squares"]
        if scope.is_large:
            contest.most_steps = STEPS_OF_WIDE_ROWS
        if scope.is_wide:  # the subspace of squares, or a kernel, costs more than all fits to it
            maps = plain
        contest.enter(c for rows in maps for c in uniform_contestants(rows))
        extra = _helpful_features(contest)
        contest.enter(_of_means_and_kernels(maps, part, scope))
        if scope.is_coarse:
            maps = plain
        coarse = scope.is_coarse
        attending = [c for rows in maps for c in attention_contestants(rows, family, (), coarse)]
        if part.n_features > MOST_DIMENSIONS:
            attending += wide_contestants(family)
        contest.enter([*attending, *_extremes(contest), *_latent_rows(contest)])
        if coarse and not scope.is_wide:
            contest.enter(_finer(contest))
        if extra is not None and not contest.is_clear(contest.leader(contest.entries), extra):
            beside = (extra.contestant.rows, family, extra.contestant.features, coarse)
            contest.enter(attention_contestants(*beside))

    def _enter_common(self, contest: Contest) -> None:
        """Enter fits to rows of one scale; they stay if they are clearly better than all others.

        Their scale depends on the units of features: where these say nothing, neither shall it.
        """
        part, scope = contest.samples, Scope.of(contest.samples)
        before, rows = contest.leader(contest.entries), WITH_UNITS
        found = contest.enter(
            [
                *uniform_contestants(rows),
                *_of_means_and_kernels([rows], part, scope),
                *attention_contestants(rows, part.family, (), scope.is_coarse),
            ]
        )
        alive = [entry for entry in found if entry.is_alive]
        if alive and not contest.is_clear(contest.leader(alive), before):
            for entry in alive:
                entry.is_alive = False

    def _verdict(self, contest: Contest, problem: Problem) -> Verdict:
        verdict = judge(contest, contest.entries)
        if self.combine == "best":
            leader = contest.leader(contest.entries, score="mean_score")
            best = contest.entries.index(leader)
            alone = [float(k == best) for k in range(len(contest.entries))]
            verdict = replace(verdict, weights=alone, votes=alone)
        both = torch.tensor([verdict.weights, verdict.votes], dtype=torch.float64)
        (same,) = agreed([both], problem)  # rounding may differ between machines
        return replace(verdict, weights=same[0].tolist(), votes=same[1].tolist())


class Scope(NamedTuple):
    """How much competes, by the size of the data.

    Attributes
    ----------
    is_coarse : bool
        Fewer ways to fit compete.
    is_large : bool
        Besides, rows are wide.
    is_wide : bool
        Maps to squares and kernels do not compete.
    """

    is_coarse: bool
    is_large: bool
    is_wide: bool

    @classmethod
    def of(cls, samples: Samples) -> Scope:
        """Return what fits these samples."""
        d = samples.n_features
        is_coarse = samples.n_rows * score_width(min(d, MOST_DIMENSIONS)) > LARGE_CONTEST
        is_large = is_coarse and d > MOST_FULL
        return cls(is_coarse, is_large, is_large or d > MOST_WIDE)


def _of_means_and_kernels(maps: Sequence[str], part: Samples, scope: Scope) -> list[Contestant]:
    """Return regressions on mean rows in all features, and on mean kernel features."""
    found = mean_contestants(maps) if part.n_features > MOST_DIMENSIONS else []
    return found if scope.is_wide else found + kernel_contestants(maps, _sizes_vary(part))


def _helpful_features(contest: Contest) -> Entry | None:
    """Enter features of whole samples on the best maps; return the best if it clearly gains."""
    plain = contest.leader(contest.entries)
    affine = contest.leader([e for e in contest.entries if e.contestant.is_affine])
    sizes_vary = _sizes_vary(contest.samples)
    tried = [
        contestant
        for rows in dict.fromkeys([plain.contestant.rows, affine.contestant.rows])
        for features in SAMPLE_FEATURES
        if sizes_vary or "size" not in features  # sums are means otherwise
        for contestant in uniform_contestants(rows, features)
    ]
    best = contest.leader(contest.enter(tried))
    return best if contest.is_clear(best, plain) else None


def _sizes_vary(samples: Samples) -> bool:
    """Return whether samples have different counts of rows."""
    return bool((samples.row_mass != samples.row_mass[0]).any())


def _extremes(contest: Contest) -> list[Contestant]:
    """Return fits to the row where a feature is extreme, unless rows are projected."""
    rows = contest.preparation.of(Contestant("unit")).rows
    is_projected = rows.n_dimensions < len(rows.columns)
    return [] if is_projected else extreme_contestants("unit", rows.columns.tolist())


def _finer(contest: Contest) -> list[Contestant]:
    """Return the rest of the grid on the map where a fit with attention leads a coarse contest."""
    best = contest.leader(contest.entries).contestant
    if not best.attends or best.penalties is None or best.extreme or best.rows not in SHAPES:
        return []
    entered = [entry.contestant for entry in contest.entries]
    grid = attention_contestants(best.rows, contest.samples.family)
    return [contestant for contestant in grid if contestant not in entered]


def _latent_rows(contest: Contest) -> list[Contestant]:
    """Return the fit with Gaussian rows, if there are enough samples for its covariances."""
    part = contest.samples
    latent = likelihood_contestant(part.family, part.n_features)
    dimensions = contest.preparation.of(latent).samples.n_features
    serves = latent.as_solver().refuse(part, contest.model) is None
    return [latent] if serves and part.n_samples >= PER_DIMENSION * dimensions else []


def _contest_part(problem: Problem, seed: int) -> Samples:
    """Return the samples that the contest takes place on, in memory."""
    wanted = max(LEAST_SAMPLES, int(CONTEST_ROWS * problem.n_samples / problem.n_rows))
    return problem.sample(min(wanted, ALL_SAMPLES), np.random.default_rng(seed))


def _dtype(part: Samples) -> torch.dtype:
    """Return float64 for few rows, so that copies and weights of samples agree to rounding."""
    small = part.n_rows * min(part.n_features, MOST_DIMENSIONS) ** 2 <= EXACT_SIZE
    return torch.float64 if small else torch.float32
