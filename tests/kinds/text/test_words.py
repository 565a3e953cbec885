import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diagatt.kinds.text.words import group_pieces, merge_pieces, trim_spans, word_spans


@given(st.text(max_size=60))
def test_words_cover_everything_but_white_space(text):
    """Oracle: what no word covers is white space; words do not overlap and hold no space."""
    spans = word_spans(text)
    covered = np.zeros(len(text), dtype=int)
    for start, stop in spans:
        assert start < stop
        assert text[start:stop].split() == [text[start:stop]]
        covered[start:stop] += 1
    assert covered.max(initial=0) <= 1
    # What str.strip removes and \s matches differ in a few control characters only.
    assert not any(c.isalnum() for c, hit in zip(text, covered, strict=True) if not hit)


@given(st.data())
def test_merging_is_the_mean_over_pieces_of_a_word(data):
    """Oracle: a loop over words that averages the pieces that begin in it."""
    words = data.draw(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=6))
    text = " ".join(words)
    pieces = []
    for start, stop in word_spans(text):
        inner = data.draw(st.sets(st.integers(start + 1, stop - 1))) if stop > start + 1 else set()
        cuts = [start, *sorted(inner), stop]
        pieces += [list(pair) for pair in itertools.pairwise(cuts)]
    spans = np.array(pieces)
    vectors = np.random.default_rng(0).normal(size=(len(spans), 3))
    first = group_pieces(text, spans)
    mean, merged = merge_pieces(vectors, spans, first, "mean")
    leading, _ = merge_pieces(vectors, spans, first, "first")
    assert merged.tolist() == word_spans(text).tolist()
    for (start, stop), own, lead in zip(merged, mean, leading, strict=True):
        inside = (spans[:, 0] >= start) & (spans[:, 1] <= stop)
        np.testing.assert_allclose(own, vectors[inside].mean(axis=0))
        np.testing.assert_array_equal(lead, vectors[inside][0])


def test_spans_lose_white_space_at_their_ends_only():
    text = "  a\tb c "
    assert trim_spans(text, np.array([[0, 4], [4, 8], [7, 8], [3, 3]])).tolist() == [
        [2, 3],
        [4, 7],
        [8, 8],
        [3, 3],
    ]
