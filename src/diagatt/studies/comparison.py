"""Our numbers next to the published ones, cell by cell, with a verdict and the reason for it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from diagatt.studies.catalogue import Study
from diagatt.studies.methods import ORACLE
from diagatt.studies.published import PAPER_REPS, Published, published

SMALLER_IS_BETTER = ("rmse",)
# Our DiagAtt stands for the paper's method and is compared with the better of its two versions.
STANDS_FOR = dict.fromkeys(("diagatt", "diagatt-contextual"), ("diagatt-1", "diagatt-r"))
MATCHING_SDS, MATCHING_PART = 3.0, 0.10
#: The two rules by which a cell matches, in words.
RULES = ("within 3 SD", "within 3 SD or 10 %")

_Place = tuple[str, str, str]  # scenario, method, metric


@dataclass(frozen=True)
class Cell:
    """One metric of one method in one scenario."""

    scenario: str
    method: str
    metric: str
    mean: float | None  #: Our mean over replications.
    sd: float | None  #: Our standard deviation, which needs two replications.
    reps: int
    paper: float | None  #: The published mean; for our DiagAtt the better of the paper's two cells.
    paper_sd: float | None
    oracle: float | None  #: Mean of the Bayes oracle on the same test sets.
    #: "matches" by the wider of the two rules, "better", "worse" or "not run"; empty where nothing
    #: was published, or where the sample size is not the paper's.
    verdict: str

    @property
    def difference(self) -> float | None:
        """Our mean less the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    @property
    def error(self) -> float | None:
        r"""Standard error of the difference: :math:`\sqrt{s^2/m + s_P^2/100}`.

        s is our SD over m replications, and the paper's SD stands in for it where m = 1; the paper
        has 100 replications.
        """
        if self.difference is None or not self.paper_sd:
            return None
        return _error(self.sd, self.reps, self.paper_sd)

    @property
    def sds(self) -> float | None:
        """The difference in the paper's SDs."""
        if self.difference is None or not self.paper_sd:
            return None
        return self.difference / self.paper_sd

    @property
    def is_within_sds(self) -> bool | None:
        """Whether the difference is at most 3 of the paper's SDs; None if it printed no SD."""
        return None if self.sds is None or not self.verdict else abs(self.sds) <= MATCHING_SDS


def compare(study: Study, lines: Iterable[dict[str, Any]], scale: float = 1.0) -> list[Cell]:
    """Return the cells of a study from the lines of a result store.

    Two rules are reported side by side. By the narrow one a cell matches if our mean lies within 3
    of the paper's SDs (`Cell.is_within_sds`). By the wide one, which the verdict says, it *matches*
    if it lies within 3 SDs or within 10 % of the paper's mean; otherwise it is *better* or *worse*.
    Our own DiagAtt is *better* if its mean is, by two standard errors of the difference, better
    than both of the paper's.

    Parameters
    ----------
    study : Study
    lines : iterable of dict
        `ResultStore.lines`.
    scale : float
        Share of the paper's sample size: only results with it count, and only 1 is judged.
    """
    values: dict[_Place, dict[int, float]] = {}
    for line in lines:
        if line["scale"] == scale:
            for metric, value in line["metrics"].items():
                place = (line["scenario"], line["method"], metric)
                values.setdefault(place, {})[line["replication"]] = value
    numbers = {(c.setting, c.method, c.metric): c for c in published() if c.table == study.table}
    everything = not numbers  # if nothing is published, cells that were not run are listed, too
    cells = []
    for metric, method, scenario in product(study.metrics, study.methods, study.scenarios):
        place = (scenario.name, method, metric)
        ours = values.get(place, {})
        paper = _paper_cell(place, numbers)
        if ours or paper is not None or everything:
            oracle = values.get((scenario.name, ORACLE, metric), {})
            same = [oracle[k] for k in ours if k in oracle]
            cell = _cell(place, list(ours.values()), paper, same)
            cells.append(cell if scale == 1 else replace(cell, verdict=""))
    return cells


def matching(cells: Sequence[Cell], rule: str) -> tuple[int, int]:
    """Count the cells of the paper's own methods that match by one of `RULES`, and all judged ones.

    Only cells that were run are judged; the rule of SDs needs a published SD as well.

    Examples
    --------
    >>> from diagatt.studies import get_study
    >>> matching(compare(get_study("table1"), []), "within 3 SD")
    (0, 0)
    """
    run = [c for c in cells if c.verdict and c.method not in STANDS_FOR and c.reps]
    if rule == RULES[0]:
        found = [c.is_within_sds for c in run if c.is_within_sds is not None]
    elif rule == RULES[1]:
        found = [c.verdict == "matches" for c in run]
    else:
        raise ValueError(f"unknown rule {rule!r}: choose one of {RULES}.")
    return sum(found), len(found)


@cache
def explanations() -> dict[tuple[str, ...], str]:
    """Return why cells do not match, by (method, metric) or (method, metric, verdict)."""
    text = files("diagatt.studies").joinpath("explanations.toml").read_text(encoding="utf-8")
    reasons = tomllib.loads(text)["reason"]
    return {tuple(cell.split(", ")): r["text"] for r in reasons for cell in r["cells"]}


def _paper_cell(place: _Place, numbers: dict[_Place, Published]) -> Published | None:
    scenario, method, metric = place
    places = [(scenario, name, metric) for name in STANDS_FOR.get(method, (method,))]
    best = min if metric in SMALLER_IS_BETTER else max
    found = [numbers[place] for place in places if place in numbers]
    return best(found, key=lambda cell: cell.mean, default=None)


def _cell(place: _Place, ours: list[float], paper: Published | None, oracle: list[float]) -> Cell:
    mean = float(np.mean(ours)) if ours else None
    sd = float(np.std(ours, ddof=1)) if len(ours) > 1 else None
    return Cell(
        *place,
        mean=mean,
        sd=sd,
        reps=len(ours),
        paper=None if paper is None else paper.mean,
        paper_sd=None if paper is None else paper.sd,
        oracle=float(np.mean(oracle)) if oracle else None,
        verdict="" if paper is None else _verdict(place, mean, sd, len(ours), paper),
    )


def _verdict(
    place: _Place, mean: float | None, sd: float | None, reps: int, paper: Published
) -> str:
    if mean is None:
        return "not run"
    _, method, metric = place
    gain = paper.mean - mean if metric in SMALLER_IS_BETTER else mean - paper.mean
    if method in STANDS_FOR and gain > 2 * _error(sd, reps, paper.sd or 0.0):
        return "better"
    if abs(gain) <= max(MATCHING_SDS * (paper.sd or 0.0), MATCHING_PART * abs(paper.mean)):
        return "matches"
    return "better" if gain > 0 else "worse"


def _error(sd: float | None, reps: int, paper_sd: float) -> float:
    """Return the standard error of our mean less the paper's."""
    own = paper_sd if sd is None else sd
    return float(np.sqrt(own**2 / reps + paper_sd**2 / PAPER_REPS))
