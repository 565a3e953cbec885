"""The settings of the paper's tables and figures, by name.

The paper draws the entries of β from N(1, 1) once, keeps β over replications and does not print it.
Only its scale shows in the tables: the RMSE of group lasso is that of a constant prediction,
``√(Σ_j σ_j² β_jᵀβ_j (1 − ρ) + 1)``. Here β is drawn once with a fixed seed and rescaled so that
this expression equals the published value; the bold μ is drawn once, too, and Σ is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.arguments import Seed
from diagatt.simulate.processes import Simulation, classification, regression
from diagatt.simulate.sampling import stream

_POPULATION_SEED = 2026
_DIMENSIONS = ((100, 70), (100, 90), (120, 70), (120, 90))  # (p, d) of Tables 1 and S2
_SQUARED_NORM = {70: 115.0, 90: 129.0}  # βᵀβ by d, for s = 1
# Table 2: 3·β₁ᵀβ₁ + 2·β₂ᵀβ₂ = 751, shared equally, and 2·β₃ᵀβ₃ = 363.
_SQUARED_NORMS_TABLE2 = (751 / 5, 751 / 5, 363 / 2)


@dataclass(frozen=True)
class PaperSetting:
    """One column of a table or figure of the paper.

    Attributes
    ----------
    name, table : str
        ``"table1-p100-d70"`` belongs to ``"table1"``.
    task : {"regression", "classification"}
    n, p, d : int
        Counts of training samples, rows and features.
    mu, sigma2 : tuple of float
        One entry per active row; for classification those of classes 1 and 0.
    rho : float
        Within-sample correlation.
    squared_norms : tuple of float
        ``β_jᵀβ_j`` per active row; empty for classification.
    """

    name: str
    table: str
    task: str
    n: int
    p: int
    d: int
    mu: tuple[float, ...] = (2.0,)
    sigma2: tuple[float, ...] = (2.0,)
    rho: float = 0.0
    squared_norms: tuple[float, ...] = ()

    @property
    def n_test(self) -> int:
        """Count of test samples, a quarter of the training samples."""
        return self.n // 4

    def draw(self, n: int | None = None, seed: Seed = 0, **options: Any) -> Simulation:
        """Draw n samples (by default the training size) from a population shared by all seeds.

        Parameters
        ----------
        n : int, optional
        seed : int or sequence of int
            Seed of the samples only. Training and test set of a replication need different seeds,
            for instance ``seed=(replication, 0)`` and ``seed=(replication, 1)``.
        **options
            Passed to `regression` or `classification`, to vary the setting.
        """
        fields: dict[str, Any] = {
            **{name: getattr(self, name) for name in ("p", "d", "mu", "sigma2", "rho")},
            "n": self.n if n is None else n,
            "center": stream((_POPULATION_SEED, self.d), "center").normal(0, 0.1, self.d),
            "seed": seed,
        }
        if self.task == "classification":
            return classification(**fields | options)
        beta = stream((_POPULATION_SEED, self.d), "beta").normal(1, 1, (3, self.d))
        beta = beta[: len(self.squared_norms)]  # (s, d): s = 2 and s = 3 share β₁ and β₂
        scale = np.sqrt(self.squared_norms) / np.linalg.norm(beta, axis=1)
        return regression(**fields | {"beta": beta * scale[:, None]} | options)


def paper_setting(name: str) -> PaperSetting:
    """Look up a setting by name.

    Examples
    --------
    >>> setting = paper_setting("table1-p100-d70")
    >>> setting.n, setting.n_test
    (9000, 2250)
    >>> setting.draw(20, seed=(0, 1)).X
    RaggedRows(n_samples=20, n_rows=2000, n_features=70, dtype=float32)
    """
    if name not in PAPER_SETTINGS:
        raise ValueError(f"unknown setting {name!r}: choose one of {list(PAPER_SETTINGS)}.")
    return PAPER_SETTINGS[name]


def paper_settings(table: str | None = None) -> list[PaperSetting]:
    """Return the settings of one table or figure, or all settings, in the paper's order.

    Parameters
    ----------
    table : {"table1", "table2", "tableS2", "tableS3", "tableS4", "figure1", "figureS2"}, optional

    Examples
    --------
    >>> [setting.rho for setting in paper_settings("tableS3")]
    [0.3, 0.6]
    """
    tables = list(dict.fromkeys(setting.table for setting in PAPER_SETTINGS.values()))
    if table is not None and table not in tables:
        raise ValueError(f"unknown table {table!r}: choose one of {tables}.")
    return [s for s in PAPER_SETTINGS.values() if table in (None, s.table)]


def _regression(table: str, label: str, n: int, p: int, d: int, **fields: Any) -> PaperSetting:
    fields = {"squared_norms": (_SQUARED_NORM[d],)} | fields
    return PaperSetting(f"{table}-{label}", table, "regression", n, p, d, **fields)


def _classification(table: str, n: int, p: int, d: int) -> PaperSetting:
    name = f"{table}-n{n}-p{p}-d{d}"
    return PaperSetting(name, table, "classification", n, p, d, (3.0, -3.0), (2.0, 2.0))


def _all_settings() -> list[PaperSetting]:
    mu, sigma2 = (1.0, 4.0, -4.0), (3.0, 2.0, 2.0)
    norms = _SQUARED_NORMS_TABLE2
    return [
        *(_regression("table1", f"p{p}-d{d}", 9000, p, d) for p, d in _DIMENSIONS),
        *(
            _regression(
                *("table2", f"s{s}", 27000, 100, 70),
                mu=mu[:s],
                sigma2=sigma2[:s],
                squared_norms=norms[:s],
            )
            for s in (2, 3)
        ),
        *(_regression("tableS2", f"p{p}-d{d}", 18000, p, d) for p, d in _DIMENSIONS),
        *(_regression("tableS3", f"rho{rho}", 9000, 100, 70, rho=rho) for rho in (0.3, 0.6)),
        *(
            _regression("tableS4", f"mu{m:g}-sigma2-{v:g}", 9000, 100, 70, mu=(m,), sigma2=(v,))
            for m in (1.0, 3.0)
            for v in (2.0, 2.5)
        ),
        *(_classification("figure1", n, *_DIMENSIONS[0]) for n in (9000, 18000)),
        *(_classification("figureS2", n, p, d) for p, d in _DIMENSIONS[1:] for n in (9000, 18000)),
    ]


#: Every setting of Sections 5.1, 5.2 and S5, by name.
PAPER_SETTINGS: dict[str, PaperSetting] = {setting.name: setting for setting in _all_settings()}
