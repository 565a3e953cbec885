"""Score gap, radius and bound of one head, from scores of rows whose class is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diagatt.ragged import RaggedRows

__all__ = ["Evidence", "score_evidence"]


@dataclass(frozen=True)
class Evidence:
    """What the scores of one head show.

    Attributes
    ----------
    gap, gap_se : float
        Mean active score minus the largest mean score of a competing class, and its standard
        error.
    deviations : ndarray of shape (n,)
        Per sample, the largest distance of a row's score from the mean score of its class.
    active, background : ndarray
        Scores of the head's active rows (n,) and of background rows.
    softmax_error : float
        Mean over samples of ‖κ − e_{j*}‖_∞.
    """

    gap: float
    gap_se: float
    deviations: np.ndarray
    active: np.ndarray
    background: np.ndarray
    softmax_error: float

    def radius(self, eta: float) -> float:
        """Radius that a fresh sample exceeds with probability at most η.

        The ⌈(n + 1)(1 − η)⌉-th smallest deviation; infinite if n is too small for this η.
        """
        n = len(self.deviations)
        order = int(np.ceil((n + 1) * (1 - eta)))
        return float(np.sort(self.deviations)[order - 1]) if order <= n else float("inf")

    def bound(self) -> float:
        """Share of samples that may be mislocalized: those with a deviation of gap/2 or more."""
        if not self.gap > 0:
            return 1.0
        n = len(self.deviations)
        return float((1 + np.sum(self.deviations >= self.gap / 2)) / (n + 1))


def score_evidence(
    samples: RaggedRows, scores: np.ndarray, active: np.ndarray, group: np.ndarray
) -> Evidence:
    """Collect the evidence for one head.

    Parameters
    ----------
    samples : RaggedRows
    scores : array of shape (N,)
        Packed scores, as they enter the softmax.
    active : int array of shape (n,)
        Packed position of the head's active row in every sample.
    group : int array of shape (N,)
        Class of every row; 0 is background. The active rows count as a class of their own.
    """
    own = int(group.max()) + 1
    group = group.copy()
    group[active] = own
    counts = np.bincount(group)  # (own + 1,)
    present = np.flatnonzero(counts)
    means = np.bincount(group, weights=scores) / np.maximum(counts, 1)
    centred = scores - means[group]  # (N,)
    spread = np.bincount(group, weights=centred**2) / np.maximum(counts - 1, 1)
    rivals = present[present != own]
    if len(rivals) == 0:
        raise ValueError("every sample has one row: there is nothing to tell the active row from.")
    rival = rivals[np.argmax(means[rivals])]
    deviations = np.maximum.reduceat(np.abs(centred), samples.offsets[:-1])  # (n,)
    return Evidence(
        gap=float(means[own] - means[rival]),
        gap_se=float(np.sqrt(spread[own] / counts[own] + spread[rival] / counts[rival])),
        deviations=deviations,
        active=scores[active],
        background=scores[group == 0],
        softmax_error=_softmax_error(samples, scores, active),
    )


def top_rows(samples: RaggedRows, scores: np.ndarray) -> np.ndarray:
    """Packed position (n,) of the largest score of every sample, the first one on ties."""
    top = np.repeat(np.maximum.reduceat(scores, samples.offsets[:-1]), samples.lengths)  # (N,)
    hits = np.flatnonzero(scores == top)
    return hits[np.searchsorted(hits, samples.offsets[:-1])]


def _softmax_error(samples: RaggedRows, scores: np.ndarray, active: np.ndarray) -> float:
    starts = samples.offsets[:-1]
    top = np.maximum.reduceat(scores, starts)  # (n,)
    weights = np.exp(scores - np.repeat(top, samples.lengths))  # (N,)
    total = np.add.reduceat(weights, starts)
    # The active weight's distance from one is the sum of all others, so it is the largest entry.
    return float(np.mean(1 - weights[active] / total))
