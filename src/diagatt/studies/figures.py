"""Figures 1 and S2: accuracy and CRLR side by side, bars with error bars on twin axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from matplotlib.figure import Figure

from diagatt.studies.catalogue import Study
from diagatt.studies.comparison import Cell

__all__ = ["draw_bars"]

_COLOURS = ("#4c78a8", "#e4894c")  # distinguishable for the colour-blind


def draw_bars(study: Study, cells: Sequence[Cell]) -> Figure:
    """One panel a scenario: the study's two metrics of every method, mean ± SD.

    Parameters
    ----------
    study : Study
        With two metrics; the first goes to the left axis, the second to the right.
    cells : sequence of Cell
    """
    panels = len(study.scenarios)
    columns = min(2, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(6.2 * columns, 3.4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, scenario in zip(axes, study.scenarios, strict=False):
        twin = ax.twinx()
        for side, (metric, axis) in enumerate(zip(study.metrics, (ax, twin), strict=True)):
            found = {
                c.method: c for c in cells if (c.scenario, c.metric) == (scenario.name, metric)
            }
            shown = [m for m in study.methods if m in found and found[m].mean is not None]
            places = [study.methods.index(m) + (side - 0.5) * 0.38 for m in shown]
            heights = [found[m].mean for m in shown]
            spreads = [nan if (sd := found[m].sd) is None else sd for m in shown]  # nan: no bar
            axis.bar(places, heights, 0.36, yerr=spreads, capsize=2, color=_COLOURS[side])
            axis.set_ylabel(metric.upper() if metric == "crlr" else metric, color=_COLOURS[side])
            axis.set_ylim(0, 100 if metric != "rmse" else None)
            axis.spines["top"].set_visible(False)
        ax.set_xticks(range(len(study.methods)), study.methods, rotation=40, ha="right")
        ax.set_title(scenario.name, fontsize=10)
    for ax in axes[panels:]:
        ax.set_visible(False)
    return figure
