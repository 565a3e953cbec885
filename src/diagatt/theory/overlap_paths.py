"""The path from shared to class-specific directions, computed (S4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.theory.overlap_families import (
    class_specific_cutoff,
    preprojection_average,
    shared_specific_spectrum,
)

__all__ = ["GridPoint", "OverlapStudy", "run_study"]

FRACTIONS = (0.0, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class GridPoint:
    """One value of r_cs/r for one number of classes.

    Attributes
    ----------
    s, r_cs : int
    fraction : float
        r_cs/r after rounding r_cs to an integer.
    pre : float
        Exact average before the means are projected away.
    gammas : ndarray of shape (n_means,)
        γ̄_max* of every mean realization.
    """

    s: int
    r_cs: int
    fraction: float
    pre: float
    gammas: np.ndarray

    @property
    def median(self) -> float:
        """Median of γ̄_max* over mean realizations."""
        return float(np.median(self.gammas))

    @property
    def band(self) -> tuple[float, float]:
        """Empirical 5 % and 95 % quantiles."""
        low, high = np.quantile(self.gammas, [0.05, 0.95])
        return float(low), float(high)

    @property
    def satisfied(self) -> int:
        """Mean realizations with γ̄_max* < 1."""
        return int(np.sum(self.gammas < 1))


@dataclass(frozen=True)
class OverlapStudy:
    """Everything the figure and the tables show.

    Attributes
    ----------
    d : int
    c_sig, c_eps : float
    n_means : int
    paths : dict of int to list of GridPoint
        One path a number of classes, from shared to class-specific.
    spectra : dict of float to ndarray
        Projected spectra of one realization, head 0, by fraction (panel b).
    spectra_s : int
    """

    d: int
    c_sig: float
    c_eps: float
    n_means: int
    paths: dict[int, list[GridPoint]]
    spectra: dict[float, np.ndarray]
    spectra_s: int

    def cutoff(self, s: int) -> float:
        """Analytic cutoff of r_cs/r."""
        return class_specific_cutoff(s, self.c_sig, self.c_eps)

    def bracket(self, s: int) -> tuple[float, float]:
        """Grid interval (low, high] of the numerical transition.

        ``high`` is the first grid value from which on all realizations satisfy the condition;
        NaN where the last grid value does not.
        """
        path = self.paths[s]
        failing = [i for i, point in enumerate(path) if point.satisfied < self.n_means]
        last = max(failing, default=-1)
        low = path[last].fraction if last >= 0 else float("nan")
        return low, path[last + 1].fraction if last + 1 < len(path) else float("nan")

    def table(self) -> list[dict[str, Any]]:
        """Rows of Table S1."""
        rows = []
        for s, path in self.paths.items():
            row: dict[str, Any] = {"s": s, "cutoff": self.cutoff(s)}
            row["bracket_low"], row["bracket_high"] = self.bracket(s)
            for name, point in (("shared", path[0]), ("specific", path[-1])):
                row[f"{name}_median"] = point.median
                row[f"{name}_q05"], row[f"{name}_q95"] = point.band
                row[f"{name}_satisfied"] = point.satisfied
            row["specific_pre"] = path[-1].pre
            rows.append(row)
        return rows


def run_study(
    *,
    d: int = 600,
    classes: Sequence[int] = (3, 5, 10),
    fractions: Sequence[float] = FRACTIONS,
    n_means: int = 30,
    c_sig: float = 1.0,
    c_eps: float = 0.01,
    seed: int = 0,
    spectra_s: int = 5,
) -> OverlapStudy:
    """Walk from shared to class-specific enhanced directions for several numbers of classes.

    For each s, ``n_means`` sets of s + 1 isotropic Gaussian means are drawn once and reused at
    every fraction, so comparisons along a path are paired.

    Examples
    --------
    >>> study = run_study(d=60, classes=(3,), n_means=4, spectra_s=3)
    >>> study.bracket(3)
    (0.5, 0.6)
    """
    rng = np.random.default_rng(seed)
    paths: dict[int, list[GridPoint]] = {}
    spectra: dict[float, np.ndarray] = {}
    for s in classes:
        r = d // s
        draws = rng.standard_normal((n_means, d, s + 1))
        paths[s] = []
        for fraction in fractions:
            r_cs = int(np.rint(fraction * r))
            gammas = [_gamma_max(means, s, r_cs, r, c_sig, c_eps) for means in draws]
            pre = preprojection_average(r_cs / r, s, c_sig, c_eps)
            paths[s].append(GridPoint(s, r_cs, r_cs / r, pre, np.array(gammas)))
        if s == spectra_s:
            spectra = {
                f: shared_specific_spectrum(draws[0], s, int(np.rint(f * r)), 0, c_sig, c_eps)
                for f in (0.0, 0.8, 1.0)
            }
    return OverlapStudy(d, c_sig, c_eps, n_means, paths, spectra, spectra_s)


def _gamma_max(means: np.ndarray, s: int, r_cs: int, r: int, c_sig: float, c_eps: float) -> float:
    tails = [shared_specific_spectrum(means, s, r_cs, k, c_sig, c_eps)[:r] for k in range(s)]
    # Rounding to 12 digits only undoes the eigensolver's last bits: at the shared endpoint every
    # eigenvalue is s − 1 by theory.
    return max(round(float(tail.mean()), 12) for tail in tails)
