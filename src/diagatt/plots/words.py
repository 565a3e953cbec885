"""Texts with their words shaded by weight."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from diagatt.plots.canvas import as_weights, axes_or_new, colour, strongest_head

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

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
    """Draw a text and shade the span of each row by its weight, in the colour of its head.

    Parameters
    ----------
    text : str
    spans : p pairs (start, stop)
        Row j is ``text[start:stop]``. A span that starts inside an earlier one is not shaded.
    weights : array of shape (p, R)
    head : int, optional
        Show this head; by default each row has its largest weight.
    fontsize : float
    ax : matplotlib Axes, optional
        Its frame is hidden. Lines break at its present width.

    Examples
    --------
    >>> ax = words("a good film", [(0, 1), (2, 6), (7, 11)], [0.05, 0.9, 0.05])
    >>> len(ax.artists)
    1
    """
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker

    shade, chosen = strongest_head(as_weights(weights), head)
    pieces = _pieces(text, spans, len(shade))
    if ax is None:
        ax = axes_or_new(None, (7, 0.6 + 0.3 * (1 + len(text) // 80)))
        ax.set_position((0.02, 0.02, 0.96, 0.96))

    def area(piece: str, row: int | None) -> Artist:
        style: dict[str, Any] = {"fontsize": fontsize, "parse_math": False}
        if row is not None:
            rgba = (colour(chosen[row]), float(_STRONGEST * shade[row]))
            style["bbox"] = {"facecolor": rgba, "edgecolor": "none", "pad": 1.5}
        return TextArea(piece, textprops=style)

    width = ax.get_window_extent().width / ax.figure.dpi * 72  # points
    lines: list[Artist] = [
        HPacker(children=[area(*piece) for piece in line], pad=0, sep=0, align="baseline")
        for line in _wrapped(pieces, width, fontsize)
    ]
    box = VPacker(children=lines, pad=0, sep=0.55 * fontsize, align="left")
    ax.add_artist(AnchoredOffsetbox("upper left", child=box, pad=0, borderpad=0, frameon=False))
    ax.set_axis_off()
    return ax


def _pieces(text: str, spans: Any, p: int) -> list[tuple[str, int | None]]:
    """Cut the text into rows (with their indices) and what lies between them (with None)."""
    pairs = [(int(start), int(stop)) for start, stop in spans]
    if len(pairs) != p:
        raise ValueError(f"there are {len(pairs)} spans for {p} rows: pass one per row.")
    pieces: list[tuple[str, int | None]] = []
    position = 0
    for j, (start, stop) in sorted(enumerate(pairs), key=lambda row: (*row[1], row[0])):
        if not 0 <= start <= stop <= len(text):
            raise ValueError(f"row {j}: span {(start, stop)} is outside the text of {len(text)}.")
        if start >= position and start < stop:
            pieces += [(text[position:start], None), (text[start:stop], j)]
            position = stop
    return [piece for piece in [*pieces, (text[position:], None)] if piece[0]]


def _wrapped(pieces: list[tuple[str, int | None]], width: float, fontsize: float) -> list[list]:
    """Arrange pieces in lines, which break at spaces, at line ends and in front of a row."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath(), FontProperties(size=fontsize)
    lines: list[list] = [[]]
    used = 0.0
    for text, row in pieces:
        for part in re.findall(r"\s+|\S+", text) if row is None else [text]:
            visible = "".join(c if c.isprintable() else " " for c in part)
            # A trailing space has no width of its own: measure it in front of a mark.
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
