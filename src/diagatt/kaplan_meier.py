"""Survival of groups without a model: Kaplan and Meier's curve, and the log-rank test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2


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
