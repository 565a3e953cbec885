"""Two pictures: which methods differ, and what accuracy costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from diagatt.bench.methods import DEFAULT
from diagatt.plots.canvas import COLOURS, tidy


def groups_not_separated(
    ranks: Mapping[str, float], difference: float
) -> list[tuple[float, float]]:
    """Return ranges of mean ranks within which methods do not differ; none contains another.

    Examples
    --------
    >>> groups_not_separated({"a": 1.0, "b": 1.8, "c": 2.9, "d": 3.3}, 1.2)
    [(1.0, 1.8), (1.8, 2.9), (2.9, 3.3)]
    """
    places = sorted(ranks.values())
    spans: list[tuple[float, float]] = []
    for start in places:
        end = max(place for place in places if place - start <= difference)
        if end > start and not any(low <= start and end <= high for low, high in spans):
            spans.append((start, end))
    return spans


def critical_difference_diagram(
    ranks: Mapping[str, float], difference: float, title: str
) -> Figure:
    """Draw mean ranks on a line; bars join methods that differ by less than `critical`."""
    ordered = sorted(ranks, key=ranks.__getitem__)
    half = -(-len(ordered) // 2)
    spans = groups_not_separated(ranks, difference)
    figure = Figure(figsize=(8, 1.4 + 0.24 * half + 0.1 * len(spans)), layout="constrained")
    ax = figure.subplots()
    last = len(ordered)
    base = -0.3 * len(spans) - 0.4  # of the first name
    ax.set(xlim=(0.2 - 0.35 * last, last * 1.35 + 0.8), ylim=(base - half + 0.4, 2.0))
    ax.axis("off")
    ax.plot([1, last], [0, 0], color="black", lw=1)
    for place in range(1, last + 1):
        ax.plot([place, place], [0, 0.12], color="black", lw=1)
        ax.text(place, 0.2, str(place), ha="center", va="bottom", fontsize=8)
    ax.plot([1, 1 + difference], [1.1, 1.1], color="black", lw=2)
    ax.text(
        1 + difference / 2, 1.2, f"critical difference {difference:.2f}", ha="center", fontsize=8
    )
    for k, (low, high) in enumerate(spans):
        level = -0.25 - 0.3 * k
        ax.plot([low - 0.05, high + 0.05], [level, level], color=COLOURS[0], lw=3)
    for k, name in enumerate(ordered):
        left = k < half
        level = base - (k if left else last - 1 - k)
        edge = 0.9 if left else last + 0.1
        ax.plot([ranks[name], ranks[name], edge], [0, level, level], color="0.6", lw=0.7)
        ax.text(
            edge,
            level,
            f"{name} {ranks[name]:.1f} " if left else f" {ranks[name]:.1f} {name}",
            ha="right" if left else "left",
            va="center",
            fontsize=8,
            weight="bold" if name == DEFAULT else "normal",
        )
    ax.set_title(title, fontsize=9)
    return figure


def speed_picture(
    ranks: Mapping[str, float], seconds: Mapping[str, float], names: Sequence[str]
) -> Figure:
    """Draw mean ranks against the median CPU seconds of a fit."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(figure)  # which can measure text
    ax = figure.subplots()
    for name in names:
        ours = name.startswith(DEFAULT)
        ax.plot(seconds[name], ranks[name], "o", color=COLOURS[1] if ours else COLOURS[0])
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.margins(x=0.14, y=0.08)  # room for labels
    ax.invert_yaxis()
    tidy(ax, xlabel="CPU seconds of a fit, median over sets", ylabel="mean rank (up is better)")
    figure.draw_without_rendering()
    taken = [_around(*ax.transData.transform((seconds[name], ranks[name]))) for name in names]
    for name in sorted(names, key=ranks.__getitem__):
        taken.append(_label(ax, name, (seconds[name], ranks[name]), taken))
    return figure


#: Where a label may stand: offset in points, horizontal and vertical alignment.
_PLACES = (
    ((5, 2), "left", "bottom"),
    ((5, -2), "left", "top"),
    ((-5, 2), "right", "bottom"),
    ((-5, -2), "right", "top"),
    ((0, 7), "center", "bottom"),
    ((0, -7), "center", "top"),
    ((5, 12), "left", "bottom"),
    ((5, -12), "left", "top"),
)


def _label(ax: Axes, name: str, point: tuple[float, float], taken: Sequence[Bbox]) -> Bbox:
    """Write a name beside its point where it covers least of what is there."""

    def written(offset: tuple[float, float], ha: str, va: str) -> Annotation:
        weight = "bold" if name == DEFAULT else "normal"
        style: dict[str, Any] = {"fontsize": 8, "weight": weight, "ha": ha, "va": va}
        return ax.annotate(name, point, xytext=offset, textcoords="offset points", **style)

    def covered(place: tuple[Any, ...]) -> float:
        text = written(*place)
        box = text.get_window_extent()
        text.remove()
        shared = [Bbox.intersection(box, other) for other in taken]
        outside = box.width * box.height if box.x1 > ax.bbox.x1 or box.x0 < ax.bbox.x0 else 0.0
        return outside + sum(part.width * part.height for part in shared if part is not None)

    return written(*min(_PLACES, key=covered)).get_window_extent()


def _around(x: float, y: float, radius: float = 4.0) -> Bbox:
    return Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)
