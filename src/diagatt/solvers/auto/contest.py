"""The contest: every contestant is fitted without each fold and judged by its log score there.

The log score of a held-out sample is log p(y | X): for the loss of the pooled row the family's
density with the dispersion of held-out residuals, for mixtures over rows log Σ κ p. It puts all
contestants on one scale. What is averaged in the end are means, so these have a score of their own:
the family's density around the predicted mean. For classes the two are the same. Contestants that
fall behind in both are dropped after the first folds.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.sample_features import SampleFeatures
from diagatt.families import Family
from diagatt.rowmaps import MOST_NEEDED, ROW_MAPS, RowMap, settled
from diagatt.solvers.auto.contestants import LINEAR, Contestant
from diagatt.solvers.auto.extremes import extreme_rows, looking_at, scored
from diagatt.solvers.auto.many import ManyFits
from diagatt.solvers.auto.shared_rows import SharedRows
from diagatt.solvers.base import Fitted, Model
from diagatt.solvers.glm import DivergedError
from diagatt.solvers.problem import Problem, Samples, mean_rows, row_weights

logger = logging.getLogger(__name__)

# A contestant goes on if it is at most so many standard errors behind the best after one fold and
# after two. A solver that fits on its own costs more and must be nearer, unless samples are few.
AFTER_ONE, AFTER_TWO, AFTER_ONE_ALONE = 3.0, 2.0, 1.0
# The most contestants that go on, by either score, after one fold and after two: where all do well,
# a few represent the rest.
MOST_AFTER_ONE, MOST_AFTER_TWO = 24, 10
# Standard errors by which one entry must be better than another to be so clearly.
CLEAR_GAIN = 2.0
# Each sample has one row of interest; with fewer samples per dimension of rows than this, these
# rows cannot determine a covariance.
PER_DIMENSION = 3
# How arithmetic fails on data for which a contestant is not made.
BREAKDOWNS = (DivergedError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]
# Two scores of held-out samples: of the predicted density, and of the predicted mean alone.
SCORES = ("log_score", "mean_score")


@dataclass
class Entry:
    """One contestant with its predictions for held-out samples and their scores."""

    contestant: Contestant
    z: Tensor  # (n, K), NaN where it has not predicted
    log_score: Tensor  # (n,)
    mean_score: Tensor  # (n,)
    seconds: float = 0.0
    is_alive: bool = True
    has_density: bool = False  # of its own: the mixture over rows
    is_broken: bool = False
    fits: dict[int, Fitted] = field(default_factory=dict)  # by fold

    @property
    def runs(self) -> bool:
        """Whether it is still fitted: it competes, or the test of any row of interest needs it."""
        return self.is_alive or (self.contestant.is_witness and not self.is_broken)


@dataclass
class Prepared:
    """Rows after one map, with the features of samples beside the covariates."""

    rows: RowMap
    features: SampleFeatures
    samples: Samples
    shared: SharedRows = field(init=False)

    def __post_init__(self) -> None:
        self.shared = SharedRows(self.samples)

    def apply(self, samples: Samples) -> Samples:
        """Return other samples as the same maps make them."""
        values = settled(self.rows(samples.values))
        beside = self.features(values, samples.offsets, samples.log_prior)
        covariates = torch.cat([samples.covariates, beside], dim=1)
        return replace(samples, values=values, covariates=covariates)


class Preparation:
    """Maps rows once for all contestants that see them alike."""

    def __init__(self, samples: Samples, dtype: torch.dtype) -> None:
        self.samples, self._dtype = samples, dtype
        self._maps: dict[str, tuple[RowMap, Samples]] = {}
        self._prepared: dict[tuple, Prepared] = {}

    def _mapped(self, name: str) -> tuple[RowMap, Samples]:
        if name not in self._maps:
            seen, weights = self.samples.values, row_weights(self.samples)
            if ROW_MAPS[name].of_means:
                seen, weights = mean_rows(self.samples, torch.float64), self.samples.weights
            needed = min(MOST_NEEDED, self.samples.n_samples // PER_DIMENSION)
            rows = ROW_MAPS[name].fitted_to(seen, weights, needed)
            mapped = replace(self.samples, values=settled(rows(self.samples.values)))
            self._maps[name] = rows, mapped.to(self._dtype)  # digits are dropped after the map
        return self._maps[name]

    def of(self, contestant: Contestant) -> Prepared:
        """Return the samples after the contestant's row map, with its features of samples."""
        key = (contestant.rows, contestant.features)
        if key not in self._prepared:
            rows, samples = self._mapped(contestant.rows)
            given, prior = (samples.values, samples.offsets), samples.log_prior
            features = SampleFeatures.fitted_to(contestant.features, *given, samples.weights, prior)
            if contestant.features:
                beside = torch.cat([samples.covariates, features(*given, prior)], dim=1)
                samples = replace(samples, covariates=beside)
            self._prepared[key] = Prepared(rows, features, samples)
        return self._prepared[key]


@dataclass
class Contest:
    """Out-of-fold comparison of contestants on samples in memory.

    Attributes
    ----------
    samples : Samples
    folds : tensor of shape (n,)
    model : Model
    seed : int
    dtype : torch.dtype
        Type that fits compute in.
    advance : callable
        Called with a note after each batch of fits.
    most_steps : int, optional
        Of batched fits with attention.
    """

    samples: Samples
    folds: Tensor
    model: Model
    seed: int
    dtype: torch.dtype = torch.float64
    advance: Callable[..., None] = lambda *_: None
    most_steps: int | None = None
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.preparation = Preparation(self.samples, self.dtype)

    @property
    def _is_small(self) -> bool:
        """Whether rows times squared features are few, by which `Auto` chose float64.

        A solver that fits on its own then costs little.
        """
        return self.dtype == torch.float64

    @property
    def n_folds(self) -> int:
        """Count of folds."""
        return int(self.folds.max()) + 1

    def enter(self, contestants: Iterable[Contestant]) -> list[Entry]:
        """Fit contestants without each fold in turn, and drop those that fall behind."""
        n, empty = self.samples.n_samples, self.samples.values.new_zeros(1, self.samples.n_outputs)
        K = self.samples.family.widened(empty).shape[1]
        unknown = torch.full((n,), torch.nan).to(empty)
        new = [
            Entry(c, unknown[:, None].repeat(1, K), unknown.clone(), unknown.clone())
            for c in contestants
        ]
        self.entries += new
        stages = [[0], [1], list(range(2, self.n_folds))]
        if not any(entry.contestant.attends for entry in new):
            stages = [list(range(self.n_folds))]  # cheap: all at once
        for stage, folds in enumerate(stages):
            folds = [fold for fold in folds if fold < self.n_folds]
            if not folds:
                continue
            for batch in self._batches(new):
                began = time.process_time()
                try:
                    self._run(batch, folds)
                except BREAKDOWNS as error:  # a contestant that breaks down is out
                    logger.info("%s breaks down: %s", batch[0].contestant.label, error)
                    self._give_up(batch, error)
                    continue
                share = (time.process_time() - began) / len(batch)
                for entry in batch:
                    entry.seconds += share
                self.advance(batch[0].contestant.method)
            seen = self.folds <= max(folds)
            self._score(new, seen)
            if max(folds) < self.n_folds - 1:
                self._drop(new, seen, stage)
        return new

    def _give_up(self, batch: list[Entry], error: Exception) -> None:
        """Drop a batch that broke down; raise its error if no contestant is left."""
        for entry in batch:
            entry.is_alive, entry.is_broken = False, True
        if not any(entry.is_alive for entry in self.entries):
            raise error

    def _batches(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Return the entries that are still fitted, grouped by what can be fitted together."""
        batches: dict[Any, list[Entry]] = {}
        for entry in entries:
            c = entry.contestant
            if entry.runs:
                batches.setdefault(batch_key(c) if c.is_batched else id(entry), []).append(entry)
        return list(batches.values())

    def _run(self, batch: list[Entry], folds: list[int]) -> None:
        """Fit a batch without each of the folds, and predict the held-out samples."""
        pairs = [(entry, fold) for entry in batch for fold in folds]
        weights = torch.stack([self.folds != fold for _, fold in pairs], dim=1)
        weights = (weights * self.samples.weights[:, None]).to(self.dtype)
        contestants = [entry.contestant for entry, _ in pairs]
        prepared = self.preparation.of(batch[0].contestant)
        how = (self.model, self.seed, self.most_steps)
        fits = fit_contestants(contestants, prepared, weights, *how)
        held_out = {f: torch.nonzero(self.folds == f)[:, 0] for f in folds}
        parts = {f: prepared.samples.take(samples) for f, samples in held_out.items()}
        for (entry, fold), fitted in zip(pairs, fits, strict=True):
            part = parts[fold]
            entry.fits[fold] = fitted
            with torch.no_grad():
                given = (part.values, part.offsets, part.covariates)
                z = fitted.module(*given, part.offset, log_prior=part.log_prior)
                entry.z[held_out[fold]] = part.family.widened(z).to(entry.z)
                entry.has_density = fitted.module.readout == "mixture"
                if entry.has_density:
                    phi = fitted.dispersion or 1.0
                    density = fitted.module.log_density(
                        part.y, *given, phi, part.offset, log_prior=part.log_prior
                    )
                    entry.log_score[held_out[fold]] = density.to(entry.log_score)

    def _score(self, entries: Sequence[Entry], seen: Tensor) -> None:
        """Score predicted means by the family's density, with the dispersion out of fold."""
        family, y, w = self.samples.family, self.samples.y[seen], self.samples.weights[seen]
        for entry in entries:
            if entry.is_alive:
                z, phi = entry.z[seen], 1.0
                if family.has_dispersion:
                    units = family.unit_dispersion(y, z)
                    phi = max(float((w * units).sum() / w.sum()), 1e-12)
                entry.mean_score[seen] = family.log_density(y, z, phi)
                if not entry.has_density:
                    entry.log_score[seen] = entry.mean_score[seen]

    def _drop(self, entries: Sequence[Entry], seen: Tensor, stage: int) -> None:
        """Drop entries that are far behind, but keep one with attention and one without."""
        kept: set[int] = set()
        for score in SCORES:
            best = self.leader(self.entries, seen, score)
            for attends in (False, True):
                group = [e for e in entries if e.is_alive and e.contestant.attends is attends]
                group.sort(key=lambda entry: -self._rating(entry, seen, score))
                for place, entry in enumerate(group[: MOST_AFTER_TWO if stage else MOST_AFTER_ONE]):
                    gap, error = self.gap(best, entry, seen, score)
                    limit = AFTER_TWO if stage else AFTER_ONE
                    if not (entry.contestant.is_batched or stage or self._is_small):
                        limit = AFTER_ONE_ALONE
                    if place == 0 or gap <= limit * error:
                        kept.add(id(entry))
        for entry in entries:
            entry.is_alive = id(entry) in kept

    def leader(
        self, entries: Sequence[Entry], seen: Tensor | None = None, score: str = "log_score"
    ) -> Entry:
        """Return the alive entry with the best mean score."""
        alive = (entry for entry in entries if entry.is_alive)
        return max(alive, key=lambda entry: self._rating(entry, seen, score))

    def _rating(self, entry: Entry, seen: Tensor | None, score: str) -> float:
        """Return the mean score, −∞ if there is none."""
        value = self.mean(getattr(entry, score), seen)
        return value if math.isfinite(value) else -math.inf

    def mean(self, values: Tensor, seen: Tensor | None = None) -> float:
        """Return the weighted mean over samples."""
        w = self.samples.weights if seen is None else self.samples.weights[seen]
        values = values if seen is None else values[seen]
        return float((w * values).sum() / w.sum())

    def gap(
        self, better: Entry, worse: Entry, seen: Tensor | None = None, score: str = "log_score"
    ) -> tuple[float, float]:
        """Return the mean difference of scores and its standard error."""
        difference = getattr(better, score) - getattr(worse, score)
        mean = self.mean(difference, seen)
        weight = self.samples.weights if seen is None else self.samples.weights[seen]
        variance = self.mean((difference - mean).square(), seen)
        return mean, (max(variance, 0.0) / float(weight.sum())) ** 0.5

    def is_clear(self, better: Entry, worse: Entry) -> bool:
        """Return whether one entry's log score is clearly higher than another's."""
        gain, error = self.gap(better, worse)
        return gain > CLEAR_GAIN * error


def batch_key(contestant: Contestant) -> tuple:
    """Return a key that is equal for contestants that can be fitted together."""
    linear = contestant.penalties is not None and contestant.penalties.quadratic == LINEAR
    kind = (contestant.attends, contestant.extreme is None, linear)
    return (contestant.rows, contestant.features, *kind)


def fit_contestants(
    contestants: Sequence[Contestant],
    prepared: Prepared,
    weights: Tensor,
    model: Model,
    seed: int,
    most_steps: int | None = None,
) -> list[Fitted]:
    """Fit contestants with the same row map; column m of the weights (n, M) belongs to the m-th."""
    first, samples = contestants[0], prepared.samples
    if not first.is_batched:
        return [
            fit_alone(contestant, _counted(samples, column), model, seed)
            for contestant, column in zip(contestants, weights.T, strict=True)
        ]
    extremes = [c.extreme for c in contestants if c.extreme is not None]
    found_rows = extreme_rows(samples, extremes) if extremes else None
    penalties = [c.penalties for c in contestants if c.penalties is not None]
    scaled = [p._replace(value=p.value * model.ridge) for p in penalties]
    free = samples.n_covariates - len(prepared.features.shift)
    readouts = [c.readout for c in contestants]
    heads = model.n_heads if first.attends and not extremes else 1
    given = (prepared.shared, scaled, weights, readouts, free, found_rows)
    many = ManyFits(*given, heads, model.coupling, most_steps)
    found = zip(contestants, many.fitted(many.fit()), strict=True)
    fits = [Fitted(module, c.as_solver(), [[]], dispersion=phi) for c, (module, phi) in found]
    return list(map(scored, fits, extremes)) if extremes else fits


def _counted(samples: Samples, weights: Tensor) -> Samples:
    counted = torch.nonzero(weights)[:, 0]
    return samples.take(counted) if len(counted) < len(weights) else samples


def fit_alone(
    contestant: Contestant, problem: Problem, model: Model, seed: int, **how: Any
) -> Fitted:
    """Fit a contestant by its own solver; a model of latent rows predicts by their mixture."""
    solver, extreme = contestant.as_solver(), contestant.extreme
    if extreme is not None:
        there = problem.changed(lambda samples: looking_at(samples, extreme))
        return scored(solver.fit(there, model, seed=seed, **how), extreme)
    with warnings.catch_warnings():
        if not contestant.is_given:  # the default's own contestants stop early on purpose
            warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = solver.fit(problem, model, seed=seed, **how)
    if contestant.readout != "mixture" or fitted.module.readout == "mixture":
        return fitted
    return replace(fitted, module=as_mixture(fitted.module, problem.family))


def as_mixture(module: DiagonalAttention, family: Family) -> DiagonalAttention:
    """Return the module with the readout of its own latent-row model."""
    return DiagonalAttention.with_parameters(
        *(module.query_key.matrix().detach(), None, module.value.detach()),
        *(module.intercept.detach(), module.covariate.detach()),
        temperature=module.temperature,
        score_form=module.score_form.name,
        coupling=module.coupling,
        groups=module.groups,
        readout="mixture",
        family=family,
    )
