"""Algorithmic unit tests of bag learners, after Raff and Holt (arXiv 2310.17867).

The first half of each set is for training, the second for testing, and they differ on purpose:
the training half offers a shortcut that the assumption behind the labels forbids, and the test
half turns it round. A learner that respects the assumption has an AUC near 1; one that takes the
shortcut falls below 0.5.

These are the three algorithms of the paper, with the distributions and counts that torchmil's
data sets give them, and one difference: there, lone concepts of the frequency test are always the
first one; here they are either, so that no single concept tells the classes apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diagatt.coerce import offsets_from
from diagatt.datasets.bags import Bags, provides
from diagatt.ragged import RaggedRows

_D = 16
_BACKGROUND = 10  # rows of the first test; the others have 1 to 9
_MARKER = (-10.0, 0.1)  # mean and standard deviation of every feature
_CONCEPTS = ((2.0, 0.1), (3.0, 0.1))
_SPREAD_OR_SHIFTED = ((0.0, 3.0), (1.0, 1.0))  # what makes a bag of the first test positive
_WHAT = {
    "unit_presence": "One row of wide or shifted features makes a bag positive. In training, "
    "negative bags hold a marker; in the test half positive ones do. Its absence must not count as "
    "evidence.",
    "unit_threshold": "Two concepts together make a bag positive; negative bags hold one row of "
    "either. In training, negative bags hold a marker; in the test half positive ones do.",
    "unit_frequency": "Two concepts together make a bag positive, a row of each. Negative bags "
    "hold one row of either in training, and 35 to 44 rows in the test half: many rows of one "
    "concept are not both.",
}

#: Rows of a bag by kind: mean, standard deviation, how many, and whether they decide.
_Kinds = list[tuple[float, float, int, bool]]


@provides(*_WHAT)
def assumption_bags(name: str, n: int = 1000, seed: int = 0) -> Bags:
    """Make n bags, every other one positive, the first half of them for training."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    in_training = np.arange(n) < n // 2
    drawn = [
        _bag(_KINDS[name](bool(label), bool(training), rng), rng)
        for label, training in zip(y, in_training, strict=True)
    ]
    X = RaggedRows(
        np.concatenate([rows for rows, _ in drawn]),
        offsets_from(np.array([len(rows) for rows, _ in drawn])),
    )
    return Bags(
        name,
        X,
        y,
        "binary",
        row_labels=np.concatenate([is_key for _, is_key in drawn]) & np.repeat(y == 1, X.lengths),
        description=_WHAT[name],
        licence="BSD-3-Clause",
        source="diagatt.datasets.assumptions",
    )


def _presence(positive: bool, training: bool, rng: np.random.Generator) -> _Kinds:
    found: _Kinds = [(0.0, 1.0, _BACKGROUND, False), _marker(positive, training)]
    if positive:
        count = int(rng.integers(1, 4))
        wide = int(rng.binomial(count, 0.5))
        for (mean, sd), held in zip(_SPREAD_OR_SHIFTED, (wide, count - wide), strict=True):
            found.append((mean, sd, held, True))
    return found


def _threshold(positive: bool, training: bool, rng: np.random.Generator) -> _Kinds:
    count = int(rng.integers(1, 4))
    concepts = _concepts(count, count) if positive else _concepts(*_one_of_either(1, rng))
    return [*concepts, _marker(positive, training), _background(rng)]


def _frequency(positive: bool, training: bool, rng: np.random.Generator) -> _Kinds:
    alone = 1 if training else int(rng.integers(35, 45))
    concepts = _concepts(1, 1) if positive else _concepts(*_one_of_either(alone, rng))
    return [*concepts, _background(rng)]


_KINDS: dict[str, Callable[[bool, bool, np.random.Generator], _Kinds]] = {
    "unit_presence": _presence,
    "unit_threshold": _threshold,
    "unit_frequency": _frequency,
}


def _marker(positive: bool, training: bool) -> tuple[float, float, int, bool]:
    """Return the shortcut: it stands in negative training bags and in positive test bags."""
    return (*_MARKER, int(positive != training), False)


def _background(rng: np.random.Generator) -> tuple[float, float, int, bool]:
    return (0.0, 1.0, int(rng.integers(1, 10)), False)


def _concepts(*counts: int) -> _Kinds:
    return [(*concept, count, True) for concept, count in zip(_CONCEPTS, counts, strict=True)]


def _one_of_either(count: int, rng: np.random.Generator) -> tuple[int, int]:
    return (count, 0) if rng.random() < 0.5 else (0, count)


def _bag(kinds: _Kinds, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a bag in random order, and which of them are concepts."""
    rows = np.concatenate([mean + sd * rng.normal(size=(k, _D)) for mean, sd, k, _ in kinds])
    is_key = np.repeat([key for *_, key in kinds], [k for *_, k, _ in kinds])
    order = rng.permutation(len(rows))
    return rows[order], is_key[order]
