"""Texts as samples: their rows, and where each row stands in its text."""

from __future__ import annotations

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
        One sample a text, one row a word (or piece).
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
        """These texts, in this order (a slice, an array of numbers or a mask)."""
        chosen = np.arange(len(self))[samples]
        cut = self.rows[chosen]
        first = np.repeat(self.rows.offsets[chosen] - cut.offsets[:-1], cut.lengths)
        spans = self.spans[first + np.arange(cut.n_rows)]
        return EmbeddedTexts([self.texts[i] for i in chosen], cut, spans)

    def spans_of(self, sample: int) -> np.ndarray:
        """Spans of one text's rows, (p, 2)."""
        return self.spans[self.rows.offsets[sample] : self.rows.offsets[sample + 1]]

    def words(self) -> list[list[str]]:
        """What the rows stand for, text by text."""
        return [
            [text[a:b] for a, b in self.spans_of(i).tolist()] for i, text in enumerate(self.texts)
        ]

    def rows_at(self, spans: Sequence[Any]) -> list[set[int]]:
        """Rows that share a character with a span given for each text (see `metrics.crlr`)."""
        if len(spans) != len(self):
            raise ValueError(f"{len(spans)} spans for {len(self)} texts: give one a text.")
        found = []
        for i, (start, stop) in enumerate(spans):
            own = self.spans_of(i)
            found.append(set(np.flatnonzero((own[:, 0] < stop) & (own[:, 1] > start)).tolist()))
        return found

    def shuffled(self, seed: int) -> EmbeddedTexts:
        """The same rows in random order within each text (paper, supplement S6)."""
        sample = np.repeat(np.arange(len(self)), self.rows.lengths)
        order = np.lexsort((np.random.default_rng(seed).random(len(sample)), sample))
        return EmbeddedTexts(
            self.texts, self.rows.with_values(self.rows.values[order]), self.spans[order]
        )

    def weighted(self, weights: Sequence[np.ndarray]) -> list[list[WordWeight]]:
        """Every word with its weight, head after head, text by text.

        Parameters
        ----------
        weights : list of arrays of shape (p_i, n_heads)
            As `attention` of the estimators returns them.
        """
        result = []
        for i, (text, own) in enumerate(zip(self.texts, weights, strict=True)):
            spans = self.spans_of(i).tolist()
            result.append(
                [
                    WordWeight(text[a:b], a, b, float(own[j, head]), head)
                    for head in range(own.shape[1])
                    for j, (a, b) in enumerate(spans)
                ]
            )
        return result

    def located(
        self, rows: np.ndarray, weights: Sequence[np.ndarray] | None = None
    ) -> list[list[WordWeight]]:
        """Located words of every text.

        Parameters
        ----------
        rows : int array of shape (n_texts, n_located)
            As `locate` of the estimators returns them; -1 where there is none.
        weights : list of arrays of shape (p_i, n_located), optional
            Attention; the weights are NaN without.
        """
        result = []
        for i, (text, chosen) in enumerate(zip(self.texts, rows.tolist(), strict=True)):
            spans, words = self.spans_of(i), []
            for head, row in enumerate(chosen):
                if row < 0:
                    continue
                start, stop = spans[row].tolist()
                weight = float("nan") if weights is None else float(weights[i][row, head])
                words.append(WordWeight(text[start:stop], start, stop, weight, head))
            result.append(words)
        return result
