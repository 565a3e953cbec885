"""Texts with their rows, where each row stands in its text, and which words are located most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from diagatt.ragged import RaggedRows


class WordWeight(NamedTuple):
    """A word of a text, ``text[start:stop]``, and the attention that a head pays to it."""

    word: str
    start: int
    stop: int
    weight: float
    head: int = 0


@dataclass(frozen=True)
class EmbeddedTexts:
    """Rows of texts with the characters they stand for.

    Attributes
    ----------
    texts : list of str
    rows : RaggedRows
        One sample per text, one row per word (or piece).
    spans : array of shape (n_rows, 2)
        First character of each row in its text, and one past the last.

    Examples
    --------
    >>> rows = RaggedRows(np.eye(3), [0, 2, 3])
    >>> embedded = EmbeddedTexts(["good dog", "Hi"], rows, np.array([[0, 4], [5, 8], [0, 2]]))
    >>> embedded.words()
    [['good', 'dog'], ['Hi']]
    >>> embedded.rows_at([(5, 8), (0, 1)])
    [{1}, {0}]
    """

    texts: list[str]
    rows: RaggedRows
    spans: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, samples: Any) -> EmbeddedTexts:
        """Return these texts, in this order (a slice, an array of indices or a mask)."""
        chosen = np.arange(len(self))[samples]
        cut = self.rows[chosen]
        first = np.repeat(self.rows.offsets[chosen] - cut.offsets[:-1], cut.lengths)
        spans = self.spans[first + np.arange(cut.n_rows)]
        return EmbeddedTexts([self.texts[i] for i in chosen], cut, spans)

    def spans_of(self, sample: int) -> np.ndarray:
        """Return the spans of one text's rows, (p, 2)."""
        return self.spans[self.rows.offsets[sample] : self.rows.offsets[sample + 1]]

    def words(self) -> list[list[str]]:
        """Return what the rows stand for, text by text."""
        return [
            [text[a:b] for a, b in self.spans_of(i).tolist()] for i, text in enumerate(self.texts)
        ]

    def rows_at(self, spans: Sequence[Any]) -> list[set[int]]:
        """Return the rows that share a character with the span given for each text."""
        if len(spans) != len(self):
            raise ValueError(f"{len(spans)} spans for {len(self)} texts: give one per text.")
        found = []
        for i, (start, stop) in enumerate(spans):
            own = self.spans_of(i)
            found.append(set(np.flatnonzero((own[:, 0] < stop) & (own[:, 1] > start)).tolist()))
        return found

    def shuffled(self, seed: int) -> EmbeddedTexts:
        """Return the same rows in random order within each text (paper, supplement S6)."""
        sample = np.repeat(np.arange(len(self)), self.rows.lengths)
        order = np.lexsort((np.random.default_rng(seed).random(len(sample)), sample))
        return EmbeddedTexts(
            self.texts, self.rows.with_values(self.rows.values[order]), self.spans[order]
        )

    def weighted(self, weights: Sequence[np.ndarray]) -> list[list[WordWeight]]:
        """Return every word with its weight in `attention`, head after head, text by text."""
        result = []
        for i, own in enumerate(weights):
            places = [(head, row) for head in range(own.shape[1]) for row in range(len(own))]
            result.append([self._word(i, row, head, own) for head, row in places])
        return result

    def located(
        self, rows: np.ndarray, weights: Sequence[np.ndarray] | None = None
    ) -> list[list[WordWeight]]:
        """Return the words of the rows that `locate` named, (n_texts, n_located); -1 is none.

        Their weights are those of `attention`, or NaN if it is None.
        """
        result = []
        for i, chosen in enumerate(rows.tolist()):
            own = None if weights is None else weights[i]
            found = [(head, row) for head, row in enumerate(chosen) if row >= 0]
            result.append([self._word(i, row, head, own) for head, row in found])
        return result

    def _word(self, i: int, row: int, head: int, weights: np.ndarray | None) -> WordWeight:
        start, stop = self.spans[self.rows.offsets[i] + row].tolist()
        weight = float("nan") if weights is None else float(weights[row, head])
        return WordWeight(self.texts[i][start:stop], start, stop, weight, head)


def top_words(
    located: Sequence[Sequence[WordWeight]], labels: Any, k: int = 10
) -> dict[Any, list[tuple[str, int]]]:
    """Rank words by the count of texts of a label in which they are located (Table 3).

    A word counts once per text, in lower case; punctuation is not counted. Ties stand in
    alphabetical order.

    Parameters
    ----------
    located : list of lists of WordWeight
        As `TextClassifier.locate` or `EmbeddedTexts.located` return them.
    labels : array of shape (n_texts,)
    k : int

    Returns
    -------
    dict
        For every label, in sorted order, up to k pairs (word, count of texts).

    Examples
    --------
    >>> good, bad = WordWeight("Good", 0, 4, 0.9), WordWeight("bad", 4, 7, 0.8)
    >>> top_words([[good], [bad], [good, bad]], [1, 0, 1])
    {0: [('bad', 1)], 1: [('good', 2), ('bad', 1)]}
    """
    labels = np.asarray(labels)
    if len(labels) != len(located):
        raise ValueError(f"{len(located)} texts, {len(labels)} labels: give one label per text.")
    counts: dict[Any, Counter] = {label: Counter() for label in np.unique(labels).tolist()}
    for words, label in zip(located, labels.tolist(), strict=True):
        counts[label].update({w.word.lower() for w in words if any(c.isalnum() for c in w.word)})
    return {
        label: sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
        for label, counter in counts.items()
    }
