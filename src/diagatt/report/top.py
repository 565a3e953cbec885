"""Which words, patches or features the located rows of each class have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.report.samples import Samples

__all__ = ["DRAWINGS", "groups", "top_features", "top_patches", "top_words"]

MOST = 12  # entries a group
MOST_GROUPS = 8


def groups(samples: Samples) -> list[tuple[str, np.ndarray]]:
    """Predicted classes, or the lowest and highest quarter of predicted numbers."""
    if samples.labels is not None:
        counts = np.bincount(samples.prediction, minlength=len(samples.labels))
        largest = np.sort(np.argsort(-counts, kind="stable")[:MOST_GROUPS])
        named = [(f"predicted {samples.labels[k]}", samples.prediction == k) for k in largest]
    else:
        low, high = np.quantile(samples.prediction, [0.25, 0.75])
        named = [
            ("lowest quarter of predictions", samples.prediction <= low),
            ("highest quarter of predictions", samples.prediction >= high),
        ]
    return [(name, inside) for name, inside in named if inside.any()]


def top_words(samples: Samples, *_: Any) -> list[dict[str, Any]]:
    """Words whose mean weight in a group most exceeds that in all other samples.

    With ``m_g(w)`` the weight (mean over heads) of word w in the samples of group g, divided by
    their number, the words with the largest ``m_g(w) − m_¬g(w)``, sorted by their ``m_g(w)``.
    """
    assert samples.texts is not None
    assert samples.spans is not None
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.offsets))
    names, word = _word_codes(samples.texts, sample.tolist(), samples.spans.tolist())
    weight = samples.weights.mean(axis=1)
    found = []
    for name, inside in groups(samples):
        here = inside[sample]
        mass = np.bincount(word[here], weight[here], len(names)) / inside.sum()
        other = np.bincount(word[~here], weight[~here], len(names)) / max(1, (~inside).sum())
        gain = np.where([n == "" for n in names], -np.inf, mass - other)  # rows without a word
        most = [k for k in np.argsort(-gain, kind="stable")[:MOST] if gain[k] > 0.1 * gain.max()]
        best = sorted(most, key=lambda k: -mass[k])
        entries = [{"name": names[k], "value": float(mass[k])} for k in best]
        found.append({"name": name, "entries": entries})
    return found


def top_patches(samples: Samples, *_: Any) -> list[dict[str, Any]]:
    """The surest located patches of each group, by sample and packed row."""
    posterior, found = samples.posterior, []
    surest = posterior.argmax(axis=1)  # (n,) head
    for name, inside in groups(samples):
        order = np.argsort(np.where(inside, -posterior.max(axis=1), np.inf), kind="stable")
        best = order[: min(MOST, int(inside.sum()))]
        entries = [
            {
                "sample": int(i),
                "row": int(samples.located[i, surest[i]]),
                "value": float(posterior[i, surest[i]]),
            }
            for i in best
        ]
        found.append({"name": name, "entries": entries})
    return found


def top_features(samples: Samples, values: np.ndarray, names: list[str]) -> list[dict[str, Any]]:
    """Features by which located rows of a group stand out from all rows, in standard deviations."""
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread[spread == 0] = 1.0
    packed = samples.offsets[:-1, None] + samples.located  # (n, R)
    found = []
    for name, inside in groups(samples):
        distance = (values[packed[inside].ravel()].mean(axis=0) - mean) / spread
        best = np.argsort(-np.abs(distance), kind="stable")[:MOST]
        entries = [{"name": names[k], "value": float(distance[k])} for k in best]
        found.append({"name": name, "entries": entries})
    return found


def _word_codes(texts: list[str], sample: list[int], spans: list) -> tuple[list[str], np.ndarray]:
    """Distinct words, and the number of each row's word among them."""
    codes: dict[str, int] = {}
    seen: dict[str, int] = {}  # code of a word as it is written
    word = np.empty(len(sample), dtype=np.int64)
    for row, (i, (start, stop)) in enumerate(zip(sample, spans, strict=True)):
        written = texts[i][start:stop]
        if written not in seen:
            seen[written] = codes.setdefault(_word(written), len(codes))
        word[row] = seen[written]
    return list(codes), word


def _word(text: str) -> str:
    """Lower case without the punctuation around it; punctuation alone stays."""
    text = text.strip().lower()
    return text.strip(".,;:!?\"'()[]{}…“”‘’") or text


@dataclass(frozen=True)
class Drawing:
    """One way in which the page draws rows.

    ``top(samples, values, feature_names)`` lists what located rows have in common; a row takes
    ``row_bytes`` besides its weights and scores.
    """

    top: Callable[..., list[dict[str, Any]]]
    row_bytes: int


#: By what a row is: a span of a text, a patch of an image, or nothing but its features.
DRAWINGS = {
    "text": Drawing(top_words, 8),
    "image": Drawing(top_patches, 10),
    "rows": Drawing(top_features, 2),
}
