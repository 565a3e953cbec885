"""Ours beside the published numbers, cell by cell, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diagatt.studies.catalogue import Study
from diagatt.studies.methods import ORACLE
from diagatt.studies.published import published

__all__ = ["Cell", "compare", "matching_share"]

SMALLER_IS_BETTER = ("rmse",)
# Ours stands for the paper's method: it is held against the better of the two versions.
STANDS_FOR = dict.fromkeys(("diagatt", "diagatt-contextual"), ("diagatt-1", "diagatt-r"))
MATCHING_SDS, MATCHING_PART = 3.0, 0.10


@dataclass(frozen=True)
class Cell:
    """One metric of one method in one scenario.

    Attributes
    ----------
    scenario, method, metric : str
    mean, sd : float or None
        Ours over replications; the SD needs two.
    reps : int
    paper, paper_sd : float or None
        Published; for our own DiagAtt the better of the paper's two DiagAtt cells.
    oracle : float or None
        Mean of the Bayes oracle on the same test sets.
    verdict : {"matches", "better", "worse", "not run", ""}
        Empty where nothing was published, or where the sample size is not the paper's.
    """

    scenario: str
    method: str
    metric: str
    mean: float | None
    sd: float | None
    reps: int
    paper: float | None
    paper_sd: float | None
    oracle: float | None
    verdict: str

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in the paper's SDs."""
        if self.mean is None or self.paper is None or not self.paper_sd:
            return None
        return (self.mean - self.paper) / self.paper_sd


def compare(study: Study, lines: Iterable[dict[str, Any]], scale: float = 1.0) -> list[Cell]:
    """Cells of a study from the lines of a result store.

    A cell *matches* if our mean lies within 3 of the paper's SDs or within 10 % of its mean;
    otherwise it is *better* or *worse*. Our own DiagAtt is *better* if its mean is, by two
    standard errors, better than both of the paper's.

    Parameters
    ----------
    study : Study
    lines : iterable of dict
        `ResultStore.lines`.
    scale : float
        Only results of this part of the sample size count; only full size is judged.
    """
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    for line in lines:
        if line["scale"] == scale:
            for metric, value in line["metrics"].items():
                place = (line["scenario"], line["method"], metric)
                values.setdefault(place, {})[line["replication"]] = value
    numbers = {(c.setting, c.method, c.metric): c for c in _published(study)}
    cells = []
    for metric in study.metrics:
        for method in study.methods:
            for scenario in study.scenarios:
                place = (scenario.name, method, metric)
                ours = values.get(place, {})
                if not ours and not _expected(study, place, numbers):
                    continue
                best = _paper_cell(place, numbers)
                oracle = values.get((scenario.name, ORACLE, metric), {})
                same = [oracle[k] for k in ours if k in oracle]
                cell = _cell(place, list(ours.values()), best, same)
                cells.append(cell if scale == 1 else replace(cell, verdict=""))
    return cells


def matching_share(cells: Sequence[Cell]) -> float:
    """Share of the run cells of the paper's own methods that match."""
    run = [c for c in cells if c.paper is not None and c.method not in STANDS_FOR and c.reps]
    return sum(c.verdict == "matches" for c in run) / len(run) if run else float("nan")


def _published(study: Study) -> list:
    known = {cell.table for cell in published()}
    return published(study.table) if study.table in known else []


def _expected(study: Study, place: tuple[str, str, str], numbers: dict) -> bool:
    """Whether the cell belongs to the table though nothing was run for it."""
    return _paper_cell(place, numbers) is not None or (not numbers and study.table != "tableS1")


def _paper_cell(place: tuple[str, str, str], numbers: dict) -> Any:
    scenario, method, metric = place
    names = STANDS_FOR.get(method, (method,))
    found = [numbers[scenario, m, metric] for m in names if (scenario, m, metric) in numbers]
    if not found:
        return None
    best = min if metric in SMALLER_IS_BETTER else max
    return best(found, key=lambda cell: cell.mean)


def _cell(place: tuple[str, str, str], ours: list[float], paper: Any, oracle: list[float]) -> Cell:
    mean = float(np.mean(ours)) if ours else None
    sd = float(np.std(ours, ddof=1)) if len(ours) > 1 else None
    verdict = "" if paper is None else _verdict(place, mean, sd, len(ours), paper)
    return Cell(
        *place,
        mean=mean,
        sd=sd,
        reps=len(ours),
        paper=None if paper is None else paper.mean,
        paper_sd=None if paper is None else paper.sd,
        oracle=float(np.mean(oracle)) if oracle else None,
        verdict=verdict,
    )


def _verdict(
    place: tuple[str, str, str], mean: float | None, sd: float | None, reps: int, paper: Any
) -> str:
    if mean is None:
        return "not run"
    _, method, metric = place
    gain = paper.mean - mean if metric in SMALLER_IS_BETTER else mean - paper.mean
    if method in STANDS_FOR and gain > 2 * (sd or 0.0) / np.sqrt(reps):
        return "better"
    if abs(gain) <= max(MATCHING_SDS * (paper.sd or 0.0), MATCHING_PART * abs(paper.mean)):
        return "matches"
    return "better" if gain > 0 else "worse"
