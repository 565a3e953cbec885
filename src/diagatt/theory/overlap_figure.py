"""The two-panel figure of the spectral-overlap study (S4.6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.theory.overlap_paths import OverlapStudy

__all__ = ["draw_overlap"]

# Colour-blind safe (Okabe and Ito), dark enough for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v")


def draw_overlap(study: OverlapStudy) -> Any:
    """Draw γ̄_max* along the paths (a) and three projected spectra (b).

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: nothing stays open.
    """
    from matplotlib.figure import Figure

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
        medians = [point.median for point in path]
        axes.plot(x, medians, marker, color=colour, markersize=5)
        axes.plot([], [], color=colour, marker=marker, markersize=5, label=f"$s = {s}$")
        axes.axvline(study.cutoff(s), color=colour, linestyle=":", linewidth=1.2)
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
    styles = ("-", "--", "-")
    axes.axvspan(1, d_star, color="0.9", linewidth=0)
    for (fraction, values), colour, style in zip(
        study.spectra.items(), ("0.35", *COLOURS), styles, strict=False
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
