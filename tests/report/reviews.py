"""Small made-up reviews: one word of each decides, and the rows are vectors of its words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from diagatt import RaggedRows

GOOD = [
    "wonderful",
    "delightful",
    "superb",
    "excellent",
    "charming",
    "brilliant",
    "moving",
    "splendid",
]
BAD = ["dreadful", "tedious", "awful", "clumsy", "boring", "dismal", "lifeless", "shallow"]
FRAMES = (
    "The plot is {} and the cast knows it.",
    "I watched it twice with my sister, and both times it was {} from the first scene on.",
    "A rather {} film, if you ask me.",
    "Two hours in a cold theatre, popcorn, a friend beside me: {}.",
    "The music, the light, the old house by the sea; everything about it felt {}.",
    "Say what you will about the ending, the dialogue is {} throughout.",
    "My neighbour called it long. I call it {}.",
    "It opens slowly, in the rain, with a letter nobody reads, and then turns {}.",
)
WIDTH = 8


@dataclass(frozen=True)
class Reviews:
    """Texts with the spans of their words, their vectors, labels, and the word that decides."""

    texts: list[str]
    spans: list[np.ndarray]
    X: RaggedRows
    y: np.ndarray
    rows: np.ndarray


def make_reviews(n: int, seed: int = 0, noise: float = 0.35) -> Reviews:
    rng = np.random.default_rng(seed)
    pole = np.zeros(WIDTH)
    pole[:2] = 1.0, 2.5
    texts, spans, samples, labels, rows = [], [], [], [], []
    for _ in range(n):
        label = int(rng.integers(2))
        word = (GOOD if label else BAD)[rng.integers(len(GOOD))]
        frame = FRAMES[rng.integers(len(FRAMES))]
        text = frame.format(word)
        found = [match.span() for match in re.finditer(r"[A-Za-z]+", text)]
        at = next(k for k, (start, stop) in enumerate(found) if text[start:stop] == word)
        vectors = np.stack([_vector(text[start:stop]) for start, stop in found])
        vectors[at] = pole * [2 * label - 1, 1, *[0] * (WIDTH - 2)]
        texts.append(text)
        spans.append(np.array(found))
        samples.append(vectors + noise * rng.normal(size=vectors.shape))
        labels.append(("negative", "positive")[label])
        rows.append(at)
    return Reviews(texts, spans, RaggedRows.from_samples(samples), np.array(labels), np.array(rows))


@cache
def _vector(word: str) -> np.ndarray:
    """The same vector for the same word, in every process."""
    seed = int.from_bytes(word.lower().encode()[:8], "big")
    return 0.6 * np.random.default_rng(seed).normal(size=WIDTH)
