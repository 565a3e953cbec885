"""How well risks order times to an event; `diagatt.survival_metrics` knows about censoring."""

from __future__ import annotations

import numpy as np

from diagatt.arguments import Numbers, Truths

TIED_RISK = 1e-8  # risks that differ by less are equal, as in scikit-survival


def concordance(
    event: Truths, time: Numbers, risk: Numbers, weights: Numbers | None = None
) -> float:
    """Return Harrell's concordance: how often the earlier event has the higher risk.

    Pairs count whose earlier time is an event; of equal times, an event comes before a censored
    one. Equal risks count one half.

    Parameters
    ----------
    event : bool array of shape (n,)
    time : array of shape (n,)
    risk : array of shape (n,)
    weights : array of shape (n,), optional
        Weight of the pairs in which the sample has the earlier event.

    Returns
    -------
    float
        1 if the order is perfect, ½ if risk says nothing, NaN if no pair can be compared.

    Examples
    --------
    >>> concordance([True, True, False], [1.0, 2.0, 3.0], [0.5, 0.9, 0.1])
    0.6666666666666666
    """
    happened = np.asarray(event, dtype=bool)
    times, risks = (np.asarray(a, dtype=np.float64) for a in (time, risk))
    if not times.shape == risks.shape == happened.shape or times.ndim != 1:
        raise ValueError("event, time and risk must be 1-D and of equal length.")
    own = np.ones(len(times)) if weights is None else np.asarray(weights, dtype=np.float64)
    if own.shape != times.shape:
        raise ValueError(f"weights must be one number per sample, got shape {own.shape}.")
    right = pairs = 0.0
    for block in np.array_split(np.flatnonzero(happened), max(1, len(times) // 500)):
        t, r, w = times[block, None], risks[block, None], own[block]
        later = (times > t) | ((times == t) & ~happened)  # (b, n)
        tied = np.abs(risks - r) <= TIED_RISK
        ahead = (later & (r > risks) & ~tied).sum(axis=1) + 0.5 * (later & tied).sum(axis=1)
        right += float(w @ ahead)
        pairs += float(w @ later.sum(axis=1))
    return right / pairs if pairs else float("nan")
