"""Table S1 and its figure (S4.6): the path from shared to class-specific directions, computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from diagatt.studies.scenarios import Scenario
from diagatt.theory.overlap import (
    class_specific_cutoff,
    preprojection_average,
    shared_specific_spectrum,
)

FRACTIONS = (0.0, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
# Colour-blind safe (Okabe and Ito), dark enough for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v")


@dataclass(frozen=True)
class Overlap(Scenario):
    """One line of Table S1: spectral overlap of s classes.

    Its "methods" are the table's columns. Only the means are random: every replication draws 30 new
    sets of means.
    """

    s: int

    @property
    def name(self) -> str:
        """Name of the line."""
        return f"tableS1-s{self.s}"

    def parameters(self, method: str, scale: float) -> dict[str, Any]:
        """Return what a result depends on, for its key."""
        return {"s": self.s}

    def run(self, method: str, replication: int, scale: float) -> dict[str, Any]:
        """Compute one column."""
        ends = {"shared": (0.0,), "class-specific": (1.0,)}  # the two ends of the path
        study = run_study(
            classes=(self.s,), fractions=ends.get(method, FRACTIONS), seed=replication
        )
        if method == "analytic":
            return {"cutoff": class_specific_cutoff(self.s)}
        if method == "numerical":
            return dict(zip(("bracket_low", "bracket_high"), study.bracket(self.s), strict=True))
        (point,) = study.paths[self.s]
        low, high = point.band
        found = {"median": point.median, "q05": low, "q95": high, "satisfied": point.satisfied}
        return {**found, "realizations": study.n_means}


@dataclass(frozen=True)
class GridPoint:
    """One value of r_cs/r for one count of classes."""

    fraction: float  #: r_cs/r after rounding r_cs to an integer.
    pre: float  #: Exact average before the means are projected away.
    gammas: np.ndarray  #: (n_means,), γ̄_max* of every mean realization.

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
        """Count of mean realizations with γ̄_max* < 1."""
        return int(np.sum(self.gammas < 1))


@dataclass(frozen=True)
class OverlapStudy:
    """Everything that the figure and the table show."""

    d: int
    n_means: int
    paths: dict[int, list[GridPoint]]  #: By count of classes, from shared to class-specific.
    spectra: dict[float, np.ndarray]  #: Spectra of one realization, head 0, by fraction (panel b).
    spectra_s: int

    def bracket(self, s: int) -> tuple[float, float]:
        """Return the grid interval (low, high] of the numerical transition.

        ``high`` is the first grid value from which on all realizations satisfy the condition;
        NaN where the last grid value does not.
        """
        path = self.paths[s]
        failing = [i for i, point in enumerate(path) if point.satisfied < self.n_means]
        last = max(failing, default=-1)
        low = path[last].fraction if last >= 0 else float("nan")
        return low, path[last + 1].fraction if last + 1 < len(path) else float("nan")


def run_study(
    *,
    d: int = 600,
    classes: Sequence[int] = (3, 5, 10),
    fractions: Sequence[float] = FRACTIONS,
    n_means: int = 30,
    seed: int = 0,
    spectra_s: int = 5,
) -> OverlapStudy:
    """Walk from shared to class-specific enhanced directions for several counts of classes.

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
            gammas = np.array([_gamma_max(means, s, r_cs) for means in draws])
            pre = preprojection_average(r_cs / r, s)
            paths[s].append(GridPoint(r_cs / r, pre, gammas))
        if s == spectra_s:
            spectra = {
                f: shared_specific_spectrum(draws[0], s, int(np.rint(f * r)), k=0)
                for f in (0.0, 0.8, 1.0)
            }
    return OverlapStudy(d, n_means, paths, spectra, spectra_s)


def _gamma_max(means: np.ndarray, s: int, r_cs: int) -> float:
    r = len(means) // s
    tails = [shared_specific_spectrum(means, s, r_cs, k)[:r] for k in range(s)]
    # Rounding to 12 digits only undoes the eigensolver's last bits: at the shared endpoint every
    # eigenvalue is s − 1 by theory.
    return max(round(float(tail.mean()), 12) for tail in tails)


def draw_overlap(study: OverlapStudy) -> Figure:
    """Draw γ̄_max* along the paths (a) and three projected spectra (b)."""
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _paths_panel(left, study)
    if study.spectra:
        _spectra_panel(right, study)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _paths_panel(axes: Any, study: OverlapStudy) -> None:
    fine = np.linspace(0, 1, 201)
    for (s, path), colour, marker in zip(study.paths.items(), COLOURS, MARKERS, strict=False):
        x = [point.fraction for point in path]
        # Both averages are (nearly) linear in the fraction: interpolate them linearly, or straight
        # segments on the log axis would part from the exact curve between grid points.
        low, high, middle, exact = (
            np.interp(fine, x, values)
            for values in zip(*((*p.band, p.median, p.pre) for p in path), strict=True)
        )
        axes.fill_between(fine, low, high, color=colour, alpha=0.3, linewidth=0)
        axes.plot(fine, exact, color=colour, linestyle="--", linewidth=1)
        axes.plot(fine, middle, color=colour)
        axes.plot(x, [point.median for point in path], marker, color=colour, markersize=5)
        axes.plot([], [], color=colour, marker=marker, markersize=5, label=f"$s = {s}$")
        axes.axvline(class_specific_cutoff(s), color=colour, linestyle=":", linewidth=1.2)
    axes.axhline(1, color="black", linewidth=1)
    axes.annotate("condition holds below 1", (0.01, 0.93), va="top", fontsize=8.5)
    axes.plot([], [], color="grey", linestyle="--", linewidth=1, label="before projection, exact")
    axes.plot([], [], color="grey", linestyle=":", linewidth=1.2, label="analytic cutoff")
    axes.set_yscale("log")
    axes.set_yticks([0.03, 0.1, 0.3, 1, 3, 9], ["0.03", "0.1", "0.3", "1", "3", "9"])
    axes.minorticks_off()
    axes.set_xlabel(r"class-specific fraction $r_{\mathrm{cs}}/r$")
    axes.set_ylabel(r"projected overlap $\bar\gamma^{*}_{\max}$ (log scale)")
    axes.set_title(f"(a) median and 5–95 % band, {study.n_means} draws of the means", fontsize=10)
    axes.legend(frameon=False, fontsize=8.5, loc="lower left")


def _spectra_panel(axes: Any, study: OverlapStudy) -> None:
    d_star = study.d // study.spectra_s
    names = {0.0: "fully shared", 0.8: "near the cutoff", 1.0: "fully class-specific"}
    axes.axvspan(1, d_star, color="0.9", linewidth=0)
    for (fraction, values), colour, style in zip(
        study.spectra.items(), ("0.35", *COLOURS), ("-", "--", "-"), strict=False
    ):
        label = f"{names.get(fraction, '')} ({fraction:g})"
        order = np.arange(1, len(values) + 1)
        axes.plot(order, values, color=colour, linestyle=style, linewidth=1.8, label=label)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_yscale("log")
    axes.set_xlim(1, study.d)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 2)
    note = f"averaged:\nsmallest\n$d^* = {d_star}$"
    axes.text(1 + d_star / 2, high * 1.7, note, ha="center", va="top", fontsize=8.5)
    axes.set_xlabel("order of the eigenvalue")
    axes.set_ylabel(r"eigenvalue of $\widetilde D_k$ (log scale)")
    axes.set_title(f"(b) projected spectra, one draw, $s = {study.spectra_s}$", fontsize=10)
    axes.legend(frameon=False, fontsize=8.5, loc="lower right", title=r"$r_{\mathrm{cs}}/r$")
