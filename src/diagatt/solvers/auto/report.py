"""The report of a contest: one line per contestant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sklearn  # its metrics, which take 0.2 s, are imported when they are first used
from torch import Tensor

from diagatt.families import Times
from diagatt.families.cox import risk_of
from diagatt.metrics import concordance
from diagatt.solvers.auto.combine import Verdict
from diagatt.solvers.auto.contest import Contest
from diagatt.solvers.auto.units import ResponseUnits


def report_lines(contest: Contest, verdict: Verdict, units: ResponseUnits) -> list[dict[str, Any]]:
    """Return one line per contestant, best first; those that were dropped have no scores."""
    leader = contest.leader(contest.entries)
    lines = []
    for entry, weight, vote in zip(contest.entries, verdict.weights, verdict.votes, strict=True):
        line: dict[str, Any] = {
            "solver": entry.contestant.method,
            "what": entry.contestant.label,
            "log_score": None,
            "se": None,
            **dict.fromkeys(_score_names(contest)),
            "weight": weight,
            "vote": vote,
            "seconds": entry.seconds,
        }
        if entry.is_alive:
            line["log_score"] = contest.mean(entry.log_score) - math.log(units.scale)
            line["se"] = contest.gap(leader, entry)[1]
            line |= _scores(contest, entry.z)
        lines.append(line)
    return sorted(lines, key=lambda line: -math.inf if line["log_score"] is None
                  else line["log_score"], reverse=True)  # fmt: skip


def _score_names(contest: Contest) -> tuple[str, ...]:
    family = contest.samples.family
    if isinstance(family, Times):
        return ("concordance",)
    if not family.classifies:
        return ("r2",)
    return ("accuracy",) if family.predicts_classes else ("auc",)


def _scores(contest: Contest, z: Tensor) -> dict[str, float]:
    family, (name,) = contest.samples.family, _score_names(contest)
    y = family.observed(contest.samples.y.double()).cpu().numpy()
    w = contest.samples.weights.double().cpu().numpy()
    if isinstance(family, Times):
        event = family.is_event(contest.samples.y).cpu().numpy()
        return {name: concordance(event, y, risk_of(family, z)[:, 0].cpu().numpy())}
    mean = family.inverse_link(z.double()).cpu().numpy()
    if name == "r2":
        own = mean if family.n_outcomes > 1 else mean[:, 0]  # of several outcomes, their average
        return {
            name: float(sklearn.metrics.r2_score(y, own, sample_weight=w))
            if len(y) > 1
            else math.nan
        }
    if name == "accuracy":
        return {
            name: float(sklearn.metrics.accuracy_score(y, mean.argmax(axis=1), sample_weight=w))
        }
    labels = y.reshape(len(y), -1)
    if not all(len(np.unique(label)) == 2 for label in labels.T):
        return {name: math.nan}
    return {name: float(sklearn.metrics.roc_auc_score(labels, mean, sample_weight=w))}
