"""Words of texts: their places, their sub-word pieces, and whether they are English."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

# Letters and digits with inner apostrophes ("don't"), or a run of anything else that is printed.
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]+")
# Common words of English prose that related languages do not share, unlike "in", "is" and "was".
COMMON_WORDS = (
    "the of and to it that with this from are be but not you they my there what would can very has "
    "just your out which their were been when who more about its than them our have she his her "
    "these those could should because into don"
)
ENGLISH_MODELS = ("minilm",)
LEAST_WORDS = 100  # fewer words allow no judgement
LEAST_SHARE = 0.04  # share of common words below which texts do not look English; prose has 0.25
READ = 2000  # texts that are looked at


def word_spans(text: str) -> np.ndarray:
    """Return the first character of every word and one past its last, (n_words, 2).

    Examples
    --------
    >>> word_spans("It doesn't work!").tolist()
    [[0, 2], [3, 10], [11, 15], [15, 16]]
    """
    spans = [match.span() for match in _WORD.finditer(text)]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def trim_spans(text: str, spans: np.ndarray) -> np.ndarray:
    """Leave out white space at both ends of the spans, which some tokenizers include.

    Examples
    --------
    >>> trim_spans("a big dog", np.array([[0, 1], [1, 5], [5, 9]])).tolist()
    [[0, 1], [2, 5], [6, 9]]
    """
    trimmed = []
    for start, stop in spans.tolist():
        piece = text[start:stop]
        start += len(piece) - len(piece.lstrip())
        trimmed.append((start, max(start, start + len(piece.strip()))))
    return np.array(trimmed, dtype=np.int64).reshape(-1, 2)


def group_pieces(text: str, spans: np.ndarray) -> np.ndarray:
    """Return the index of the first piece of every word; a piece belongs to where it begins.

    Examples
    --------
    >>> group_pieces("undoable things", np.array([[0, 2], [2, 8], [9, 14], [14, 15]]))
    array([0, 2])
    """
    words = word_spans(text)
    if len(words) == 0:
        return np.arange(len(spans))
    word = np.searchsorted(words[:, 0], spans[:, 0], side="right")
    return np.flatnonzero(np.diff(word, prepend=-1))


def merge_pieces(
    vectors: np.ndarray, spans: np.ndarray, first: np.ndarray, merge: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return one vector and one span per word: the "mean" of its pieces, or the "first".

    Examples
    --------
    >>> merge_pieces(np.array([[1.0], [3.0], [5.0]]), np.array([[0, 2], [2, 4], [5, 6]]),
    ...              np.array([0, 2]), "mean")
    (array([[2.],
           [5.]]), array([[0, 4],
           [5, 6]]))
    """
    after = np.append(first[1:], len(vectors))
    merged = np.stack([spans[first, 0], np.maximum.reduceat(spans[:, 1], first)], axis=1)
    if merge == "first":
        return vectors[first], merged
    if len(first) == len(vectors):
        return vectors, merged
    counts = (after - first).astype(vectors.dtype)
    return np.add.reduceat(vectors, first, axis=0) / counts[:, None], merged


def english_share(texts: Sequence[str]) -> float | None:
    """Return the share of common English words; None if there are too few words to judge.

    Examples
    --------
    >>> round(english_share(["It was the best film that I have seen in a year."] * 10), 2)
    0.33
    >>> english_share(["Das war der beste Film, den ich je gesehen habe."] * 20)
    0.0
    >>> english_share(["yes"]) is None
    True
    """
    words = [w for text in texts[:READ] for w in re.findall(r"[^\W\d_]+", text.lower())]
    if len(words) < LEAST_WORDS:
        return None
    common = set(COMMON_WORDS.split())
    return sum(word in common for word in words) / len(words)
