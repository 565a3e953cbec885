"""A figure as the content of a file."""

from __future__ import annotations

import io

from matplotlib import rc_context
from matplotlib.figure import Figure


def figure_bytes(figure: Figure, kind: str, *, dpi: float) -> bytes:
    """PNG or SVG of a figure: an unchanged figure is an unchanged file."""
    out = io.BytesIO()
    # An SVG would hold the date, and names of its parts that are drawn anew each time.
    metadata = {"Date": None} if kind == "svg" else {}
    with rc_context({"svg.hashsalt": "diagatt"}):
        figure.savefig(out, format=kind, dpi=dpi, metadata=metadata)
    return out.getvalue()
