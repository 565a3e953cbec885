"""After the contest: members that have weight are fitted to all samples and become one model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diagatt.attention.blend import Blend, Member
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.pullback import narrowed
from diagatt.segments import map_blocks
from diagatt.solvers.auto.combine import Verdict
from diagatt.solvers.auto.contest import (
    Contest,
    Entry,
    Prepared,
    batch_key,
    fit_alone,
    fit_contestants,
)
from diagatt.solvers.auto.contestants import LINEAR, Contestant
from diagatt.solvers.auto.shared_rows import score_width
from diagatt.solvers.base import Fitted, Model, loaded, with_errors
from diagatt.solvers.problem import Problem
from diagatt.solvers.sandwich import Objective, sandwich_errors
from diagatt.solvers.subspace import in_original_features

# Rows times score features up to which a batched fit goes through all samples at every step.
MOST_ENTRIES = 1_000_000_000


def refit(contest: Contest, verdict: Verdict, problem: Problem, model: Model, **how: Any) -> Fitted:
    """Return the blend of entries with weight, and the fit whose coefficients are reported."""
    entries = contest.entries
    single = _reported(contest)
    wanted = [
        k
        for k, entry in enumerate(entries)
        if verdict.weights[k] > 0 or verdict.votes[k] > 0 or entry is single
    ]
    fits = dict(
        zip(
            wanted,
            _fits(contest, [entries[k] for k in wanted], problem, model, **how),
            strict=True,
        )
    )
    members = [
        narrowed(Member(fits[k].module, prepared.rows, prepared.features, weight, vote))
        for k in wanted
        for prepared in [contest.preparation.of(entries[k].contestant)]
        for weight, vote in [(verdict.weights[k], verdict.votes[k])]
        if weight > 0 or vote > 0
    ]
    prepared = contest.preparation.of(single.contestant)
    whole = _mapped(prepared, contest, problem)
    described = _with_errors(fits[entries.index(single)], single.contestant, whole, model)
    original = in_original_features(described, prepared.rows, problem)
    like = _attention(described.module, prepared) if single.contestant.attends else None
    for module in (original.module, *(member.attention for member in members)):
        module.to(problem.dtype)  # the maps stay in float64
    blend, seen = Blend(members, problem.family), contest.samples
    blend.align_heads(seen.values, seen.offsets, seen.log_prior, like)
    return replace(
        original,
        blend=blend,
        described=single.contestant.label,
        finds_rows=verdict.finds_rows,
    )


@torch.no_grad()
def _attention(module: DiagonalAttention, prepared: Prepared) -> Tensor | None:  # (N, R)
    """Return the attention to the rows of the contest, if there are heads to put in order."""
    if module.n_heads == 1:
        return None
    samples = prepared.samples.to(module.value.dtype)
    given = (samples.values, samples.offsets)
    return map_blocks(module.attention, *given, log_prior=samples.log_prior)


def fold_members(contest: Contest, verdict: Verdict, fold: int) -> list[Member]:
    """Return the members of the blend as they were fitted without a fold.

    Modules are copies, so that changing them does not change those of the contest.
    """
    found = []
    for entry, weight, vote in zip(contest.entries, verdict.weights, verdict.votes, strict=True):
        if weight > 0 or vote > 0:
            prepared = contest.preparation.of(entry.contestant)
            module = deepcopy(entry.fits[fold].module)
            member = Member(module, prepared.rows, prepared.features, weight, vote)
            found.append(narrowed(member))
    return found


def _reported(contest: Contest) -> Entry:
    """Return the best entry whose coefficients can be converted to the original features."""
    convertible = [
        entry
        for entry in contest.entries
        if not entry.contestant.features
        and contest.preparation.of(entry.contestant).rows.affine() is not None
    ]
    alive = [entry for entry in convertible if entry.is_alive]
    if alive:
        return contest.leader(alive)
    return max(convertible, key=lambda entry: float(entry.log_score.nanmean()))


def _with_errors(fitted: Fitted, contestant: Contestant, problem: Problem, model: Model) -> Fitted:
    """Return the fit with standard errors of its own objective, in mapped rows."""
    penalties, samples = contestant.penalties, loaded(problem)
    if penalties is None or samples is None:
        return with_errors(fitted, problem, model)

    def penalty(module: DiagonalAttention, _: Tensor) -> Tensor:
        quadratic = 0.0 if scores == "linear" else penalties.quadratic
        return module.penalty(penalties.value * model.ridge, quadratic, penalties.linear)

    scores = "linear" if penalties.quadratic == LINEAR else "all"
    objective = Objective(penalty, scores)
    if contestant.readout == "uniform":  # nothing about scores is fitted
        ridge = penalties.value * model.ridge
        objective = Objective(lambda module, _: module.penalty(ridge, 0.0), "none")
    mixes = fitted.module.readout == "mixture" and samples.family.has_dispersion
    phi = fitted.dispersion if mixes else None
    found = sandwich_errors(fitted.module, samples, phi, objective)
    return replace(fitted, value_covariance=found.covariance, errors_note=found.note)


def _fits(
    contest: Contest, entries: Sequence[Entry], problem: Problem, model: Model, **how: Any
) -> list[Fitted]:
    """Fit entries to all samples, together where that is possible."""
    found: dict[int, Fitted] = {}
    same = problem.n_samples == contest.samples.n_samples  # they are in memory
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        c = entry.contestant
        groups.setdefault(batch_key(c) if c.is_batched else id(entry), []).append(entry)
    for group in groups.values():
        contestants = [entry.contestant for entry in group]
        prepared = contest.preparation.of(contestants[0])
        whole = problem
        if not (same and contestants[0].is_batched):
            whole = _mapped(prepared, contest, problem)
        if contestants[0].is_batched and (same or _goes_at_once(whole)):
            if not same:
                here = whole.sample(whole.n_samples, np.random.default_rng(0))  # all of them
                prepared = Prepared(prepared.rows, prepared.features, here.to(contest.dtype))
            weights = prepared.samples.weights[:, None].expand(-1, len(group))
            own = (model, how["seed"], contest.most_steps)
            fits = fit_contestants(contestants, prepared, weights, *own)
        else:
            fits = [fit_alone(c, whole, model, **how) for c in contestants]
        found |= {id(entry): fitted for entry, fitted in zip(group, fits, strict=True)}
    return [found[id(entry)] for entry in entries]


def _mapped(prepared: Prepared, contest: Contest, problem: Problem) -> Problem:
    """Return all samples after a row map; those of the contest, if these are all samples."""
    here = prepared.samples
    if problem.in_memory is contest.samples and here.dtype == problem.dtype:
        return here
    return problem.changed(prepared.apply)


def _goes_at_once(problem: Problem) -> bool:
    """Whether all samples are in memory and few enough for a batched fit."""
    entries = problem.n_rows * score_width(problem.n_features)
    return problem.in_memory is not None and entries <= MOST_ENTRIES
