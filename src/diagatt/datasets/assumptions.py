"""Algorithmic unit tests of bag learners, after Raff and Holt (arXiv 2310.17867).

The first half of each set is for training, the second for testing, and they differ on purpose:
the training half offers a shortcut that the assumption behind the labels forbids, and the test
half turns it round. A learner that respects the assumption has an AUC near 1; one that takes the
shortcut falls below 0.5.
"""

from __future__ import annotations

import numpy as np

from diagatt.coerce import offsets_from
from diagatt.datasets.bags import Bags, provides
from diagatt.ragged import RaggedRows

_D = 8
_CONCEPT = 4.0  # distance of a concept from the background, in standard deviations
_POISON = -8.0
_WHAT = {
    "unit_presence": "One concept makes a bag positive. In training, negative bags hold a marker; "
    "in the test half positive ones do. Its absence must not count as evidence.",
    "unit_threshold": "Two rows of each of two concepts make a bag positive. In training, negative "
    "bags hold a marker; in the test half positive ones do.",
    "unit_frequency": "Two concepts together make a bag positive. In training, positive bags hold "
    "more concept rows than negative ones; in the test half fewer.",
}


@provides(*_WHAT)
def assumption_bags(name: str, n: int = 400, seed: int = 0) -> Bags:
    """Make n bags of 15 background rows and concepts, half of them for training."""
    rng = np.random.default_rng(seed)
    y = np.tile([0, 1], n // 2)[:n]
    in_training = np.arange(n) < n // 2
    samples, keys = [], []
    for label, training in zip(y, in_training, strict=True):
        counts = _counts(name, label == 1, bool(training), rng)  # of concepts 1 and 2, and markers
        rows, is_key = _bag(counts, rng)
        samples.append(rows)
        keys.append(is_key)
    X = RaggedRows(np.concatenate(samples), offsets_from(np.array([len(s) for s in samples])))
    return Bags(
        name,
        X,
        y,
        "binary",
        row_labels=np.concatenate(keys) & np.repeat(y == 1, X.lengths),
        description=_WHAT[name],
        licence="BSD-3-Clause",
        source="diagatt.datasets.assumptions",
    )


def _counts(
    name: str, positive: bool, training: bool, rng: np.random.Generator
) -> tuple[int, int, int]:
    """Return how many rows of concept 1, of concept 2 and of the marker a bag holds."""
    # The shortcut: the marker stands in negative training bags and in positive test bags.
    marker = int(positive != training) * int(rng.integers(1, 3))
    if name == "unit_presence":
        return (int(rng.integers(1, 3)), 0, marker) if positive else (0, 0, marker)
    if name == "unit_threshold":
        if positive:
            return int(rng.integers(2, 4)), int(rng.integers(2, 4)), marker
        few, many = int(rng.integers(0, 2)), int(rng.integers(2, 4))
        return (few, many, marker) if rng.random() < 0.5 else (many, few, marker)
    many = int(rng.integers(6, 9))
    few = int(rng.integers(1, 3))
    if positive:
        return (many // 2, many - many // 2, 0) if training else (1, 1, 0)
    alone = few if training else many
    return (alone, 0, 0) if rng.random() < 0.5 else (0, alone, 0)


def _bag(counts: tuple[int, int, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a bag in random order, and which of them are concepts."""
    kinds = np.repeat([0, 1, 2, 3], [15, *counts])
    rows = rng.normal(size=(len(kinds), _D))
    rows[kinds == 1, 0] += _CONCEPT
    rows[kinds == 2, 1] += _CONCEPT
    rows[kinds == 3, 2] += _POISON
    order = rng.permutation(len(kinds))
    return rows[order], np.isin(kinds, (1, 2))[order]
