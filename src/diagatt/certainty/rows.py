"""How certain the located rows are: their posteriors, and sets that contain the active row.

Rows whose weight reaches a threshold are in the set: of all sets with the same coverage over
samples, these are the smallest on average. The threshold comes from labelled samples, where the
coverage is exact in finite samples, or from weights of held-out samples, where the coverage holds
as far as the weights are posteriors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from diagatt.certainty.summary import SHOWN_LINES, cell
from diagatt.tables import html_table, percent
from diagatt.user_warnings import warn

# Attention whose unevenness is below this points at nothing: 0 is uniform, 1 one row.
LEAST_UNEVENNESS = 0.05
# Levels whose thresholds are kept.
LEVELS = np.arange(1, 100) / 100


class NoRowOfInterestWarning(UserWarning):
    """The fitted attention does not single out rows."""


class NotAPosteriorWarning(UserWarning):
    """Attention weights are not probabilities of rows."""


def warn_of_no_row() -> None:
    """Warn that a fit singles out no row."""
    warn(
        "no row of interest was found: attention predicts no better than a regression on mean "
        "rows. Do not read locate() as an answer.",
        NoRowOfInterestWarning,
    )


@dataclass(frozen=True)
class Certainty:
    """How certain each head's row is: one line per sample, one column per head.

    Attributes
    ----------
    rows : array (n, R), int
        Rows of interest, as `locate` names them.
    posterior : array (n, R)
        Attention weight of that row, recalibrated by held-out samples if there were any.
    entropy : array (n, R)
        Entropy of the attention in nats; 0 is certainty, log p is ignorance.
    ambiguous : bool array (n, R)
        Whether the row has less than half of the weight.
    row_sets : list
        For each sample, an array of rows that includes the active one with the given probability;
        with several heads, a list of such arrays.
    none : array (n, R) or None
        Probability that the sample has no row of interest, if the solver has ``none=True``.
        `posterior` is then the probability that there is one and that it is this row, and
        `row_sets` include the active row with the given probability in samples that have one.
    temperature : float or None
        T̂ out of fold, before recalibration. It is 1 if attention weights are posteriors; if it is
        above 1.5, they were too concentrated.
    """

    rows: np.ndarray
    posterior: np.ndarray
    entropy: np.ndarray
    ambiguous: np.ndarray
    row_sets: list
    temperature: float | None = None
    none: np.ndarray | None = None

    def _repr_html_(self) -> str:
        """Show the first samples as a table in notebooks."""
        head = ["sample", "head", "row", "posterior", "entropy", "ambiguous"]
        shown = list(np.ndindex(self.rows.shape))[:SHOWN_LINES]
        verdict = np.where(self.ambiguous, "yes", "no")
        lines = [
            [*at, self.rows[at], cell(self.posterior[at]), cell(self.entropy[at]), verdict[at]]
            for at in shown
        ]
        share = f"{percent(self.ambiguous.mean())} of {self.rows.size:,} rows are ambiguous"
        return html_table(f"Certainty: {share}", head, lines, left_out=self.rows.size - len(shown))


def thresholds(weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return, for every level, the weight above which rows have this share of all weight, (99,).

    Parameters
    ----------
    weights : array of shape (N,)
        κ of held-out rows.
    offsets : array of shape (n + 1,)

    Examples
    --------
    >>> thresholds(np.array([0.9, 0.1, 0.6, 0.4]), np.array([0, 2, 4]))[[49, 74, 94]].tolist()
    [0.6, 0.6, 0.4]
    """
    best = -np.sort(-weights)
    mass = np.cumsum(best) / (len(offsets) - 1)
    return best[np.minimum(np.searchsorted(mass, LEVELS - 1e-12), len(best) - 1)]


def threshold_at(kept: np.ndarray, level: float) -> float:
    """Return the threshold of a level between those that are kept; the lower of two neighbours."""
    place = int(np.ceil(level * 100 - 1e-9)) - 1
    return float(kept[min(max(place, 0), len(kept) - 1)])


def labelled_threshold(true_weights: np.ndarray, level: float) -> float:
    """Return the weight that true rows reach in new samples with probability `level` at least.

    Examples
    --------
    >>> labelled_threshold(np.array([0.1, 0.5, 0.7, 0.9]), level=0.8)
    0.1
    """
    m = len(true_weights)
    place = math.floor((m + 1) * (1 - level) + 1e-9)
    return float(np.sort(true_weights)[place - 1]) if place > 0 else 0.0


def sets_above(weights: list[np.ndarray], threshold: float) -> list[np.ndarray]:
    """Return the rows of each sample that reach the threshold, its best row at least."""
    return [np.flatnonzero((w >= threshold) | (w == w.max())) for w in weights]


def sets_of_mass(weights: list[np.ndarray], level: float) -> list[np.ndarray]:
    """Return the fewest rows of each sample whose weights sum to the level.

    Examples
    --------
    >>> sets_of_mass([np.array([0.2, 0.5, 0.3])], 0.75)
    [array([1, 2])]
    """
    found = []
    for w in weights:
        order = np.argsort(-w, kind="stable")
        count = int(np.searchsorted(np.cumsum(w[order]), level - 1e-12)) + 1
        found.append(np.sort(order[:count]))
    return found
