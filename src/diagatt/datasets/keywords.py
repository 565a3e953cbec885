"""Comments whose sentiment depends on one known word (paper, supplement S6)."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

BUNDLED = "keyword_sentiment.json"


@dataclass(frozen=True)
class KeywordComments:
    """Comments with the place of their keyword.

    Attributes
    ----------
    texts : list of str
    y : int array of shape (n,)
        1 for positive, 0 for negative.
    spans : int array of shape (n, 2)
        Start and stop of the keyword, in characters.
    split : str array of shape (n,)
        Name of the list of templates that a comment comes from.
    """

    texts: list[str]
    y: np.ndarray
    spans: np.ndarray
    split: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class KeywordSentiment:
    """Training and test comments; `notes` describes each split."""

    train: KeywordComments
    test: KeywordComments
    notes: dict[str, str]


def keyword_sentiment(path: Any = None) -> KeywordSentiment:
    """Return 15,552 training and 7,920 test comments, each decided by one keyword.

    A comment consists of a decoy sentence, which never decides, and a sentence with one keyword.
    Test comments have new context words and, in some splits, new keywords, a new leading sentence,
    or both. The decoy may contain the same word, so the keyword's place is given in characters.
    `EmbeddedTexts.shuffled` puts the rows in random order, as the paper does.

    Parameters
    ----------
    path : path-like, optional
        JSON file with word lists in the same form, such as the original lists of Marion,
        Berthier, Biau and Boyer (arXiv 2410.01537); by default our own lists.

    Examples
    --------
    >>> from diagatt.datasets.keywords import keyword_sentiment
    >>> data = keyword_sentiment()
    >>> len(data.train), len(data.test)
    (15552, 7920)
    >>> text, (start, stop) = data.train.texts[-1], data.train.spans[-1]
    >>> text, text[start:stop], int(data.train.y[-1])
    ('The weather was damp. our leather superb bag looks truly wide', 'superb', 1)
    """
    bundled = resources.files("diagatt.datasets").joinpath("data", BUNDLED)
    splits = json.loads((bundled if path is None else Path(path)).read_text("utf-8"))["splits"]
    parts: dict[bool, list[KeywordComments]] = {True: [], False: []}
    for name, split in splits.items():
        parts[split["role"] == "train"].append(_expand(name, split))
    notes = {name: split["note"] for name, split in splits.items()}
    return KeywordSentiment(_join(parts[True]), _join(parts[False]), notes)


def _expand(name: str, split: dict[str, Any]) -> KeywordComments:
    """Return every combination of a split's options, in the order of its slots."""
    slots = split["slots"]
    options = [list(zip(s["options"], s["signs"], strict=True)) for s in slots]
    texts, labels, spans = [], [], []
    for combination in itertools.product(*options):
        text, sign, span = "", 1, None
        for slot, (words, own_sign) in zip(slots, combination, strict=True):
            if not words:
                continue
            text += " " if text else ""
            if slot["carries_label"]:
                span, sign = (len(text), len(text) + len(words)), own_sign
            text += words
        if span is None:
            raise ValueError(f"split {name!r} has no slot that carries the label.")
        texts.append(text)
        labels.append(int(sign > 0))
        spans.append(span)
    return KeywordComments(texts, np.array(labels), np.array(spans), np.full(len(texts), name))


def _join(parts: list[KeywordComments]) -> KeywordComments:
    return KeywordComments(
        [text for part in parts for text in part.texts],
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.spans for part in parts]),
        np.concatenate([part.split for part in parts]),
    )
