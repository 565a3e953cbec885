"""Which words, patches or features the located rows of each class have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from diagatt.report.samples import Samples
from diagatt.stores.reading import row_parts

MOST = 12  # entries per group
MOST_GROUPS = 8
MOST_FEATURES = 3  # features that are named per located row
BLOCK_NUMBERS = 2**20  # that are read in one go


def groups(samples: Samples) -> list[tuple[str, np.ndarray]]:
    """Return the predicted classes, or the lowest and the highest quarter of predicted numbers."""
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


def _by_group(samples: Samples, entries: Callable[[np.ndarray], list[dict]]) -> list[dict]:
    return [{"name": name, "entries": entries(inside)} for name, inside in groups(samples)]


def top_words(samples: Samples, *_: Any) -> list[dict[str, Any]]:
    """Return the words whose mean weight in a group most exceeds that in all other samples.

    Let ``m_g(w)`` be the mean over the samples of group g of the total weight (mean over heads) of
    word w. The words with the largest ``m_g(w) − m_¬g(w)`` are returned, sorted by ``m_g(w)``.
    """
    assert samples.texts is not None
    assert samples.spans is not None
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.offsets))
    pairs = zip(sample.tolist(), samples.spans.tolist(), strict=True)
    words = [_word(samples.texts[i][start:stop]) for i, (start, stop) in pairs]
    codes = {name: k for k, name in enumerate(dict.fromkeys(words))}
    names, word = list(codes), np.array([codes[name] for name in words])
    weight = samples.weights.mean(axis=1)

    def entries(inside: np.ndarray) -> list[dict]:
        here = inside[sample]
        mass = np.bincount(word[here], weight[here], len(names)) / inside.sum()
        other = np.bincount(word[~here], weight[~here], len(names)) / max(1, (~inside).sum())
        gain = np.where([n == "" for n in names], -np.inf, mass - other)  # rows without a word
        most = [k for k in np.argsort(-gain, kind="stable")[:MOST] if gain[k] > 0.1 * gain.max()]
        return _entries(names, mass, sorted(most, key=lambda k: -mass[k]))

    return _by_group(samples, entries)


def top_patches(samples: Samples, *_: Any) -> list[dict[str, Any]]:
    """Return the located patches of each group with the largest weights, by sample and row."""
    surest = samples.posterior.argmax(axis=1)  # (n,) head
    weight = samples.posterior.max(axis=1)

    def entries(inside: np.ndarray) -> list[dict]:
        order = np.argsort(np.where(inside, -weight, np.inf), kind="stable")
        best = order[: min(MOST, int(inside.sum()))].tolist()
        rows = [int(samples.located[i, surest[i]]) for i in best]
        pairs = zip(best, rows, strict=True)
        return [{"sample": i, "row": row, "value": float(weight[i])} for i, row in pairs]

    return _by_group(samples, entries)


def top_features(samples: Samples, distances: np.ndarray, names: list[str]) -> list[dict[str, Any]]:
    """Return the features whose mean over located rows is most standard deviations off."""
    by_sample = distances.reshape(*samples.located.shape, -1)  # (n, R, d)

    def entries(inside: np.ndarray) -> list[dict]:
        distance = _mean(by_sample[inside].reshape(-1, len(names)))
        return _entries(names, distance, np.argsort(-np.abs(distance), kind="stable")[:MOST])

    return _by_group(samples, entries)


def standing_out(distances: np.ndarray, names: list[str]) -> list[str]:
    """Return the features that set each located row apart, n·R times ``"CD8A +2.1, LYZ −1.3"``."""
    best = np.argsort(-np.abs(distances), axis=1, kind="stable")[:, :MOST_FEATURES]
    lines = zip(best.tolist(), np.take_along_axis(distances, best, axis=1).tolist(), strict=True)
    return [
        ", ".join(
            f"{names[j]} {x:+.1f}".replace("-", "−")
            for j, x in zip(*line, strict=True)
            if not np.isnan(x)
        )
        for line in lines
    ]


def located_distances(X: Any, located: np.ndarray) -> np.ndarray:
    """Return located rows less the mean of all rows, in standard deviations, (L, d).

    Rows are read once, block by block, so that a `RowStore` need not fit into memory. Missing
    entries stay missing.

    Parameters
    ----------
    X : RaggedRows or RowStore
    located : int array of shape (L,)
        Places among the rows of all samples.
    """
    found = np.empty((len(located), X.n_features))
    count, total, squares = np.zeros((3, X.n_features))
    shift, start = None, 0
    for block in _row_blocks(X):
        x = block.astype(np.float64)
        here = (located >= start) & (located < start + len(x))
        found[here] = x[located[here] - start]
        start += len(x)
        if shift is None:
            shift = _mean(x)  # sums of squares around a mean lose no digits
        observed = ~np.isnan(x)
        gap = np.where(observed, x - shift, 0.0)
        count += observed.sum(axis=0)
        total += gap.sum(axis=0)
        squares += np.square(gap).sum(axis=0)
    offset = total / count.clip(min=1)
    spread = np.sqrt(np.maximum(squares / count.clip(min=1) - offset**2, 0.0))
    return (found - shift - offset) / np.where(spread > 0, spread, 1.0)


def _row_blocks(X: Any) -> Iterator[np.ndarray]:
    """Yield all rows in order, as dense blocks."""
    for part in row_parts(X):
        size = max(1, BLOCK_NUMBERS // part.n_features)
        for start in range(0, part.n_rows, size):
            block = part.values[start : start + size]
            yield block.toarray() if part.is_sparse else block


def _mean(values: np.ndarray) -> np.ndarray:
    """Return means of observed entries, (d,); 0 for features without any."""
    observed = ~np.isnan(values)
    return np.where(observed, values, 0).sum(axis=0) / observed.sum(axis=0).clip(min=1)


def _entries(names: list[str], values: np.ndarray, chosen: Any) -> list[dict]:
    return [{"name": names[k], "value": float(f"{values[k]:.6g}")} for k in chosen]


@lru_cache(maxsize=100_000)
def _word(text: str) -> str:
    """Return the text in lower case without surrounding punctuation, unless it is nothing else."""
    text = text.strip().lower()
    return text.strip(".,;:!?\"'()[]{}…“”‘’") or text


@dataclass(frozen=True)
class Drawing:
    """One way in which the page draws rows.

    ``top(samples, distances, feature_names)`` lists what located rows have in common, whose
    distances from the mean row are those of `located_distances`; a row takes ``row_bytes`` besides
    its weights and scores.
    """

    top: Callable[..., list[dict[str, Any]]]
    row_bytes: int
    #: Whether a row is known by nothing but its features.
    names_features: bool = False


#: By what a row is: a span of a text, a patch of an image, or nothing but its features.
DRAWINGS = {
    "text": Drawing(top_words, 8),
    "image": Drawing(top_patches, 10),
    "rows": Drawing(top_features, 2, names_features=True),
}
