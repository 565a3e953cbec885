"""Which words are located most often, class by class (the paper's Table 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from diagatt.text.embedded import WordWeight


def top_words(
    located: Sequence[Sequence[WordWeight]], labels: Any, k: int = 10
) -> dict[Any, list[tuple[str, int]]]:
    """Words ranked by the number of texts of a label in which they are located.

    A word counts once a text, in lower case; punctuation is not counted. Ties stand in
    alphabetical order.

    Parameters
    ----------
    located : list of lists of WordWeight
        As `TextClassifier.locate` or `EmbeddedTexts.located` return them.
    labels : array of shape (n_texts,)
    k : int
        Words a label.

    Returns
    -------
    dict
        For every label, in sorted order, up to k pairs (word, number of texts).

    Examples
    --------
    >>> good, bad = WordWeight("Good", 0, 4, 0.9), WordWeight("bad", 4, 7, 0.8)
    >>> top_words([[good], [bad], [good, bad]], [1, 0, 1])
    {0: [('bad', 1)], 1: [('good', 2), ('bad', 1)]}
    """
    labels = np.asarray(labels)
    if len(labels) != len(located):
        raise ValueError(f"{len(located)} texts, {len(labels)} labels: give one label a text.")
    counts: dict[Any, Counter] = {label: Counter() for label in np.unique(labels).tolist()}
    for words, label in zip(located, labels.tolist(), strict=True):
        texts = {w.word.lower() for w in words if any(c.isalnum() for c in w.word)}
        counts[label].update(texts)
    return {
        label: sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
        for label, counter in counts.items()
    }
