"""Words: spans are shaded by weight, and the pieces are the text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.offsetbox import TextArea

from diagatt import plots
from diagatt.plots.words import _pieces


def _areas(ax):
    return [box for box in ax.figure.findobj(TextArea) if box.get_text()]


def test_words_are_shaded_by_weight_and_wrapped_within_the_axes():
    text = "some words before the end " * 8 + "end"
    spans = [(26 * k, 26 * k + 4) for k in range(8)]
    weights = np.linspace(0, 1, 8)
    ax = plots.words(text, spans, weights)
    ax.figure.canvas.draw()
    shaded = [a for a in _areas(ax) if a._text.get_bbox_patch() is not None]
    assert [a.get_text() for a in shaded] == ["some"] * 8
    opacity = [a._text.get_bbox_patch().get_facecolor()[3] for a in shaded]
    np.testing.assert_allclose(opacity, 0.62 * weights)
    frame = ax.get_window_extent()
    for area in _areas(ax):
        extent = area._text.get_window_extent()
        assert extent.x1 <= frame.x1 + 2, "a line is longer than the axes"
    assert "".join(a.get_text() for a in _areas(ax)).replace(" ", "") == text.replace(" ", "")


@settings(max_examples=60)
@given(st.text(max_size=30), st.lists(st.tuples(*[st.integers(0, 30)] * 2), max_size=6))
def test_pieces_put_together_are_the_text(text, pairs):
    spans = [tuple(sorted((min(a, len(text)), min(b, len(text))))) for a, b in pairs]
    pieces = _pieces(text, spans, len(spans))
    assert "".join(piece for piece, _ in pieces) == text
    for piece, row in pieces:
        if row is not None:
            assert piece == text[slice(*spans[row])]


def test_words_refuse_spans_outside_the_text():
    with pytest.raises(ValueError, match=r"row 1: span \(2, 9\) is outside"):
        plots.words("abc", [(0, 1), (2, 9)], [0.5, 0.5])
    with pytest.raises(ValueError, match="1 spans for 2 rows"):
        plots.words("abc", [(0, 1)], [0.5, 0.5])
