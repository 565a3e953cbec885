"""Rows that may be named with a stated false discovery rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from diagatt.tables import html_table

SHOWN_LINES = 40  # of a table in a notebook
# Half of the 90 % quantile of χ² with one parameter.
LEAST_GAIN = 1.353


class Discovery(NamedTuple):
    """One named row, with the probability that it is not the active one."""

    sample: int
    row: int
    head: int
    local_fdr: float


class Discoveries(Sequence[Discovery]):
    """Rows that are named as active, surest first.

    Attributes
    ----------
    fdr : float
        The largest share of wrong rows that was allowed.
    is_trusted : bool
        Whether the rate can be relied on, because labelled samples decided or because held-out
        responses agree with weights as posteriors.
    note : str
        What the rate is based on.
    """

    def __init__(self, lines: Sequence[Discovery], fdr: float, is_trusted: bool, note: str) -> None:
        self._lines, self.fdr = list(lines), fdr
        self.is_trusted, self.note = is_trusted, note

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index):
        return self._lines[index]

    def __repr__(self) -> str:
        return f"{len(self)} rows at a false discovery rate of {self.fdr:g}; {self.note}"

    def _repr_html_(self) -> str:
        lines = [(*line[:3], f"{line.local_fdr:.3f}") for line in self._lines[:SHOWN_LINES]]
        head = ["sample", "row", "head", "local fdr"]
        return html_table(repr(self), head, lines, left_out=len(self) - len(lines))


def labelled_cut(best: np.ndarray, is_hit: np.ndarray, fdr: float) -> float:
    """Return the least weight λ of named rows with (1 + wrong)/count ≤ fdr among labelled ones.

    Infinite if there is none.

    Examples
    --------
    >>> labelled_cut(np.array([0.9, 0.8, 0.7, 0.3]), np.array([True, True, True, False]), 0.4)
    0.7
    """
    order = np.argsort(-best, kind="stable")
    wrong = np.cumsum(~is_hit[order])
    allowed = np.flatnonzero((1 + wrong) / np.arange(1, len(best) + 1) <= fdr)
    return float(best[order[allowed[-1]]]) if len(allowed) else float("inf")


def mean_cut(best: np.ndarray, fdr: float) -> float:
    """Return the least weight λ for which the mean of 1 − weight of named rows is at most fdr.

    Examples
    --------
    >>> mean_cut(np.array([0.99, 0.95, 0.8, 0.2]), 0.1)
    0.8
    """
    order = -np.sort(-best)
    rates = np.cumsum(1 - order) / np.arange(1, len(best) + 1)
    allowed = np.flatnonzero(rates <= fdr)
    return float(order[allowed[-1]]) if len(allowed) else float("inf")


def is_confirmed(held_out: np.ndarray, cut: float, fdr: float) -> bool:
    r"""Return whether held-out responses reject that half of the rows that reach the cut are wrong.

    With r the density of a response given the other rows, relative to that given the located row,
    the share q of wrong rows has the log-likelihood :math:`\sum w \log(1 - q + q r)`. It has to be
    larger by 1.35 at q = fdr than at ½, which is a test at 5 %, on one side.

    Parameters
    ----------
    held_out : array of shape (m, 3)
        Weights of located rows, log r, and weights w of samples.
    cut, fdr : float

    Examples
    --------
    >>> is_confirmed(np.array(20 * [[0.95, -2.0, 1.0]]), cut=0.9, fdr=0.1)
    True
    >>> is_confirmed(np.array(20 * [[0.95, 0.0, 1.0]]), cut=0.9, fdr=0.1)
    False
    """
    log_ratios, weights = held_out[held_out[:, 0] >= cut, 1:].T
    few, half = (
        weights @ np.logaddexp(math.log1p(-share), math.log(share) + log_ratios)
        for share in (min(fdr, 0.5), 0.5)
    )
    return bool(fdr >= 0.5 or few - half >= LEAST_GAIN)


def discovered(rows: np.ndarray, best: np.ndarray, cut: float) -> list[Discovery]:
    """Return rows (n, R) whose weights (n, R) reach the cut, surest first."""
    places = [(i, r) for i, r in np.ndindex(rows.shape) if best[i, r] >= cut]
    places.sort(key=lambda place: -best[place])
    return [Discovery(i, int(rows[i, r]), r, float(1 - best[i, r])) for i, r in places]
