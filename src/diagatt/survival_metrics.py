r"""Measures of times to an event under censoring: of predictions, and of groups without a model.

Samples that are censored early are missing among the events. Each event therefore counts by the
inverse of the probability Ĝ of not being censored before (Uno et al., 2011), which is Kaplan and
Meier's curve of the censoring times. Groups are compared by their own Kaplan–Meier curves and the
log-rank test. Numbers agree with those of scikit-survival.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from diagatt.arguments import Numbers, Truths, check_arguments
from diagatt.metrics import concordance

__all__ = [
    "CumulativeAUC",
    "brier_scores",
    "cumulative_auc",
    "evaluation_times",
    "integrated_brier_score",
    "survival_scores",
    "uno_concordance",
]

# Quantiles of event times between which scores over time are taken, and how many times at most.
FIRST, LAST, MOST_TIMES = 0.1, 0.9, 50


def kaplan_meier(event: Any, time: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return event times, the estimated survival and its standard error (Greenwood).

    .. math:: \hat S(t) = \prod_{t_k ≤ t} \Bigl(1 - \frac{d_k}{n_k}\Bigr), \quad
              \widehat{\mathrm{Var}} = \hat S(t)² \sum_{t_k ≤ t} \frac{d_k}{n_k (n_k - d_k)}

    Parameters
    ----------
    event : bool array of shape (n,)
    time : array of shape (n,)

    Examples
    --------
    >>> kaplan_meier([True, False, True], [1.0, 2.0, 3.0])[1].round(3)
    array([0.667, 0.   ])
    """
    happened, times = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    at, deaths = np.unique(times[happened], return_counts=True)
    at_risk = len(times) - np.searchsorted(np.sort(times), at, side="left")
    survival = np.cumprod(1 - deaths / at_risk)
    left = np.maximum(at_risk - deaths, 1e-12)
    error = survival * np.sqrt(np.cumsum(deaths / (at_risk * left)))
    return at, survival, error


class LogRank(NamedTuple):
    """Result of a log-rank test: its χ² and its p-value."""

    statistic: float
    p: float


def log_rank(event: Any, time: Any, group: Any) -> LogRank:
    r"""Test whether groups have the same hazard (Mantel and Haenszel).

    At every event time the events of a group are compared with their share of those at risk;
    :math:`χ² = (O - E)^⊤ V^- (O - E)` has as many degrees of freedom as groups less one.

    Parameters
    ----------
    event : bool array of shape (n,)
    time : array of shape (n,)
    group : array of shape (n,)

    Examples
    --------
    >>> log_rank([True] * 4, [1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"]).p < 0.1
    True
    """
    happened, times = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    _, codes = np.unique(np.asarray(group), return_inverse=True)
    count = int(codes.max()) + 1
    at = np.unique(times[happened])
    at_risk = np.empty((len(at), count))
    deaths = np.empty((len(at), count))
    for k in range(count):
        own, seen = np.sort(times[codes == k]), np.sort(times[(codes == k) & happened])
        at_risk[:, k] = len(own) - np.searchsorted(own, at, side="left")
        deaths[:, k] = np.searchsorted(seen, at, "right") - np.searchsorted(seen, at, "left")
    n, d = at_risk.sum(axis=1), deaths.sum(axis=1)
    share = at_risk / n[:, None]  # (times, groups)
    excess = (deaths - d[:, None] * share).sum(axis=0)
    factor = d * (n - d) / np.maximum(n - 1, 1)
    variance = np.diag(factor @ share) - share.T @ (factor[:, None] * share)
    statistic = float(excess @ np.linalg.pinv(variance, hermitian=True) @ excess)
    return LogRank(statistic, float(chi2.sf(statistic, count - 1)))


def evaluation_times(event: Truths, time: Numbers) -> np.ndarray:
    """Return event times, from the first to the last tenth, at which scores are averaged.

    Examples
    --------
    >>> evaluation_times([True] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    array([2., 3., 4., 5.])
    """
    happened, times = _read(event, time)
    seen = np.unique(times[happened])
    if not len(seen):
        return seen
    low, high = np.quantile(seen, [FIRST, LAST])
    inside = seen[(seen >= low) & (seen <= high)]
    step = max(1, -(-len(inside) // MOST_TIMES))
    return inside[::step]


def uno_concordance(
    event: Truths, time: Numbers, risk: Numbers, *, tau: float | None = None, train: Any = None
) -> float:
    r"""Return Uno's concordance: Harrell's, each event weighted by :math:`1/\hat G(t)^2`.

    Parameters
    ----------
    event : bool array of shape (n,)
    time, risk : arrays of shape (n,)
    tau : float, optional
        Events from this time on do not count: late ones have large weights.
    train : pair of event and time, optional
        Samples that say how likely censoring is; those that are scored by default.

    Examples
    --------
    >>> uno_concordance([True, True, False], [1.0, 2.0, 3.0], [0.5, 0.9, 0.1])
    0.6666666666666666
    """
    happened, times = _read(event, time)
    weights = _inverse(_censoring(train, happened, times), happened, times, tau) ** 2
    return concordance(happened, times, risk, weights)


def brier_scores(
    event: Truths, time: Numbers, survival: Numbers, times: Numbers, *, train: Any = None
) -> np.ndarray:
    """Return the mean squared error of predicted survival at some times, (T,) (Graf, 1999).

    Parameters
    ----------
    event : bool array of shape (n,)
    time : array of shape (n,)
    survival : array of shape (n, T)
        Predicted P(T > t).
    times : array of shape (T,)
    train : pair of event and time, optional
        As in `uno_concordance`.
    """
    happened, ends = _read(event, time)
    at, curves = np.asarray(times, dtype=np.float64), np.asarray(survival, dtype=np.float64)
    if curves.shape != (len(ends), len(at)):
        raise ValueError(
            f"survival must have the shape ({len(ends)}, {len(at)}), a line per sample and a "
            f"column per time, got {curves.shape}."
        )
    free = _censoring(train, happened, ends)
    of_samples, of_times = (np.where(g > 0, g, np.inf) for g in (free(ends), free(at)))
    case = (ends[:, None] <= at) & happened[:, None]
    loss = curves**2 * case / of_samples[:, None]
    return (loss + (1 - curves) ** 2 * (ends[:, None] > at) / of_times).mean(axis=0)


def integrated_brier_score(
    event: Truths, time: Numbers, survival: Numbers, times: Numbers, *, train: Any = None
) -> float:
    """Return the mean of `brier_scores` over time, by trapezoids; smaller is better.

    Examples
    --------
    >>> event, time = [True, True, False], [1.0, 3.0, 4.0]
    >>> integrated_brier_score(event, time, [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]], [1.0, 2.0])
    0.0
    """
    at = np.asarray(times, dtype=np.float64)
    if len(at) < 2 or not (np.diff(at) > 0).all():
        raise ValueError("times must be two or more, in ascending order.")
    scores = brier_scores(event, time, survival, at, train=train)
    return float((scores[1:] + scores[:-1]) @ np.diff(at) / (2 * (at[-1] - at[0])))


class CumulativeAUC(NamedTuple):
    """Areas under the curve at some times, and their mean, weighted by events at these times."""

    at: np.ndarray  # (T,)
    mean: float


def cumulative_auc(
    event: Truths, time: Numbers, risk: Numbers, times: Numbers, *, train: Any = None
) -> CumulativeAUC:
    """Return how well risks separate samples with an event by a time from those with a later one.

    Parameters
    ----------
    event : bool array of shape (n,)
    time, risk : arrays of shape (n,)
    times : array of shape (T,)
        Ascending, with samples that end later.
    train : pair of event and time, optional
        As in `uno_concordance`.

    Examples
    --------
    >>> found = cumulative_auc([True] * 4, [1.0, 2.0, 3.0, 4.0], [4.0, 2.0, 3.0, 1.0], [2.0, 3.0])
    >>> found.at, round(found.mean, 4)
    (array([0.75, 1.  ]), 0.8333)
    """
    happened, ends = _read(event, time)
    risks, at = np.asarray(risk, dtype=np.float64), np.asarray(times, dtype=np.float64)
    if risks.shape != ends.shape or at.ndim != 1 or not len(at):
        raise ValueError(
            "risk must be one number per sample, and times a list of one or more, got shapes "
            f"{risks.shape} and {at.shape}."
        )
    beyond = np.nextafter(at.max(), np.inf)
    weights = _inverse(_censoring(train, happened, ends), happened, ends, beyond)
    found = np.empty(len(at))
    for k, t in enumerate(at):
        case, later = (ends <= t) & happened, np.sort(risks[ends > t])
        total = weights[case].sum() * len(later)
        below, upto = (np.searchsorted(later, risks[case], side) for side in ("left", "right"))
        right = (weights[case] * (below + upto)).sum() / 2  # ties count one half
        found[k] = right / total if total > 0 else np.nan
    alive = _curve(*kaplan_meier(happened, ends)[:2])(at)
    share = -np.diff(np.concatenate([[1.0], alive]))
    mean = float((found * share).sum() / (1 - alive[-1])) if alive[-1] < 1 else float("nan")
    return CumulativeAUC(found, float(found[0]) if len(at) == 1 else mean)


def survival_scores(
    event: Truths,
    time: Numbers,
    risk: Numbers,
    survival: Numbers | None = None,
    times: Numbers | None = None,
) -> dict[str, float]:
    """Return Harrell's and Uno's concordance, mean AUC and integrated Brier score.

    Scores over time are left out without predicted survival, (n, T), at two or more times.
    """
    happened, ends = _read(event, time)
    found = {
        "concordance": concordance(happened, ends, risk),
        "uno_concordance": uno_concordance(happened, ends, risk, tau=ends.max()),
    }
    if survival is None or times is None:
        return found
    at = np.asarray(times, dtype=np.float64)
    inside = at < ends.max()
    if inside.sum() < 2 or not happened.any():
        return found
    found["cumulative_auc"] = cumulative_auc(happened, ends, risk, at[inside]).mean
    curves = np.asarray(survival)[:, inside]
    found["integrated_brier"] = integrated_brier_score(happened, ends, curves, at[inside])
    return found


# ---------------------------------------------------------------------- censoring


def _read(event: Any, time: Any) -> tuple[np.ndarray, np.ndarray]:
    happened, times = np.asarray(event, dtype=bool), np.asarray(time, dtype=np.float64)
    if happened.ndim != 1 or happened.shape != times.shape:
        raise ValueError("event and time must be 1-D and of equal length.")
    if not len(times):
        raise ValueError("there is no sample: pass at least one.")
    return happened, times


def _curve(at: np.ndarray, values: np.ndarray) -> Any:
    """Return the step function that is 1 before the first time."""
    steps = np.concatenate([[1.0], values])
    return lambda t: steps[np.searchsorted(at, t, side="right")]


def _censoring(train: Any, event: np.ndarray, time: np.ndarray) -> Any:
    """Return Ĝ; of equal times, events come before censoring."""
    event, time = (event, time) if train is None else _read(*train)
    at, counts = np.unique(time[~event], return_counts=True)
    if not len(at):
        return lambda t: np.ones(np.shape(t))
    ordered, seen = np.sort(time), np.sort(time[event])
    at_risk = len(time) - np.searchsorted(ordered, at, side="left")
    at_risk = at_risk - (np.searchsorted(seen, at, "right") - np.searchsorted(seen, at, "left"))
    return _curve(at, np.cumprod(1 - counts / at_risk))


def _inverse(
    free: Any, event: np.ndarray, time: np.ndarray, tau: float | None = None
) -> np.ndarray:
    """Return 1/Ĝ of events before tau, and 0 of other samples, (n,)."""
    counted = event if tau is None else event & (time < tau)
    weights = np.zeros(len(time))
    left = free(time[counted])
    if (left <= 0).any():
        raise ValueError(
            "an event lies beyond the last time at which censoring is known: pass a smaller tau, "
            "or leave late samples out."
        )
    weights[counted] = 1 / left
    return weights


check_arguments(globals())
