"""Words shaded in their sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from diagatt.plots.canvas import as_weights, axes_or_new, colour, strongest_head

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["words"]

_STRONGEST = 0.62  # opacity of weight 1; black text stays easy to read on it


def words(
    text: str,
    spans: Any,
    weights: Any,
    *,
    head: int | None = None,
    fontsize: float = 12,
    ax: Axes | None = None,
) -> Axes:
    """Write a text, each row's span shaded by its weight in the colour of its head.

    Parameters
    ----------
    text : str
    spans : p pairs (start, stop)
        Row j is ``text[start:stop]``. A span that begins inside an earlier one is not shaded.
    weights : array of shape (p, R)
    head : int, optional
        Show this head; by default each row has its largest weight.
    fontsize : float
    ax : matplotlib Axes, optional
        Its frame is taken away. Lines break at its width as it is now.

    Examples
    --------
    >>> ax = words("a good film", [(0, 1), (2, 6), (7, 11)], [0.05, 0.9, 0.05])
    >>> len(ax.artists)
    1
    """
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker

    array = as_weights(weights)
    shade, chosen = strongest_head(array, head)
    pieces = _pieces(text, spans, len(array))
    if ax is None:
        ax = axes_or_new(None, (7, 0.6 + 0.3 * (1 + len(text) // 80)))
        ax.set_position((0.02, 0.02, 0.96, 0.96))
    width = ax.get_window_extent().width / ax.figure.dpi * 72  # points
    lines: list[Artist] = []
    for line in _wrapped(pieces, width, fontsize):
        areas: list[Artist] = []
        for piece, row in line:
            style: dict[str, Any] = {"fontsize": fontsize, "parse_math": False}
            if row is not None:
                rgba = (colour(chosen[row]), float(_STRONGEST * shade[row]))
                style["bbox"] = {"facecolor": rgba, "edgecolor": "none", "pad": 1.5}
            areas.append(TextArea(piece, textprops=style))
        lines.append(HPacker(children=areas, pad=0, sep=0, align="baseline"))
    box = VPacker(children=lines, pad=0, sep=0.55 * fontsize, align="left")
    ax.add_artist(AnchoredOffsetbox("upper left", child=box, pad=0, borderpad=0, frameon=False))
    ax.set_axis_off()
    return ax


def _pieces(text: str, spans: Any, p: int) -> list[tuple[str, int | None]]:
    """The text cut into what is a row (with its number) and what is between rows."""
    pairs = [(int(start), int(stop)) for start, stop in spans]
    if len(pairs) != p:
        raise ValueError(f"there are {len(pairs)} spans for {p} rows: pass one a row.")
    for j, (start, stop) in enumerate(pairs):
        if not 0 <= start <= stop <= len(text):
            raise ValueError(f"row {j}: span {(start, stop)} is outside the text of {len(text)}.")
    pieces: list[tuple[str, int | None]] = []
    at = 0
    for start, stop, j in sorted((start, stop, j) for j, (start, stop) in enumerate(pairs)):
        if start < at or start == stop:
            continue
        pieces += [(text[at:start], None), (text[start:stop], j)]
        at = stop
    return [piece for piece in [*pieces, (text[at:], None)] if piece[0]]


def _wrapped(pieces: list[tuple[str, int | None]], width: float, fontsize: float) -> list[list]:
    """Lines of pieces; they break at spaces and line ends, and in front of a row."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath(), FontProperties(size=fontsize)
    lines: list[list] = [[]]
    used = 0.0
    for text, row in pieces:
        parts = re.findall(r"\s+|\S+", text) if row is None else [text]
        for part in parts:
            visible = "".join(c if c.isprintable() else " " for c in part)
            # A trailing space has no width of its own: measure it before a mark.
            advance = measure.get_text_width_height_descent(visible + "|", font, False)[0]
            advance -= measure.get_text_width_height_descent("|", font, False)[0]
            if lines[-1] and ("\n" in part or used + advance > width):
                lines.append([])
                used = 0.0
            if part.isspace() and (not lines[-1] or "\n" in part):
                continue
            lines[-1].append((visible, row))
            used += advance
    return [line for line in lines if line]
