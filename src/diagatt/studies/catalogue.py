"""The studies: which scenarios, methods and metrics make a table or a figure of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from diagatt.simulate import paper_settings
from diagatt.studies.methods import ORACLE, OURS, PAPER_METHODS
from diagatt.studies.overlap import Overlap
from diagatt.studies.scenarios import Scenario, Simulated
from diagatt.studies.tasks import Task
from diagatt.studies.text_scenarios import UCI, Keywords


@dataclass(frozen=True)
class Study:
    """A table or figure: scenario × method × scoring."""

    name: str
    title: str
    table: str  #: What `published` calls it.
    scenarios: tuple[Scenario, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]  #: The metrics in the order of the table.

    def tasks(
        self, reps: int = 1, methods: Sequence[str] | None = None, scale: float = 1.0
    ) -> list[Task]:
        """Return all tasks, replication by replication, so that a run cut short has whole tables.

        Examples
        --------
        >>> len(get_study("table1").tasks(reps=2, methods=["oracle"]))
        8
        """
        chosen = self.methods if methods is None else tuple(methods)
        unknown = [m for m in chosen if m not in self.methods]
        if unknown:
            raise ValueError(
                f"study {self.name!r} has no method {unknown[0]!r}: choose among "
                f"{', '.join(self.methods)}."
            )
        places = product(range(reps), chosen, self.scenarios)
        return [Task(scenario, method, k, scale) for k, method, scenario in places]


def get_study(name: str) -> Study:
    """Look a study up by name.

    Examples
    --------
    >>> get_study("table-s2").title
    'Table S2: n = 18000'
    """
    if name not in STUDIES:
        raise ValueError(f"unknown study {name!r}: choose among {', '.join(STUDIES)}.")
    return STUDIES[name]


def _simulated(name: str, title: str, table: str, *extra: str) -> Study:
    scenarios = tuple(Simulated(setting) for setting in paper_settings(table))
    main = "accuracy" if scenarios[0].classifies else "rmse"
    methods = (*PAPER_METHODS, *OURS, *extra, ORACLE)
    return Study(name, title, table, scenarios, methods, (main, "crlr"))


_TEXT = (*PAPER_METHODS, *OURS)

#: Every study by name.
STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        _simulated("table1", "Table 1: one active row, n = 9000", "table1"),
        _simulated("table2", "Table 2: two and three active rows, n = 27000", "table2"),
        _simulated("table-s2", "Table S2: n = 18000", "tableS2"),
        _simulated("table-s3", "Table S3: correlated rows", "tableS3", "diagatt-contextual"),
        _simulated("table-s4", "Table S4: distribution gap", "tableS4"),
        _simulated("figure1", "Figure 1: mixture classification", "figure1"),
        _simulated("figure-s2", "Figure S2: mixture classification, dimensions", "figureS2"),
        Study(
            "overlap",
            "Table S1: spectral overlap",
            "tableS1",
            tuple(Overlap(s) for s in (3, 5, 10)),
            ("analytic", "numerical", "shared", "class-specific"),
            (
                *("cutoff", "bracket_low", "bracket_high"),
                *("median", "q05", "q95", "satisfied", "realizations"),
            ),
        ),
        Study(
            "uci",
            "Figure 2 and Table 3: UCI comments",
            "figure2",
            (UCI(),),
            (*_TEXT, "pooled-best", "pooled-joined", "gated-joined", "stdatt-1-joined"),
            ("accuracy",),
        ),
        Study(
            "keywords",
            "Table S5: comments with a known keyword",
            "tableS5",
            (Keywords(original=True), Keywords(original=False)),
            _TEXT,
            ("accuracy", "crlr"),
        ),
    )
}
