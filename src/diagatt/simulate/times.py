"""Times to an event: Weibull hazards, with censoring of a chosen share."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, roots_hermitenorm

from diagatt.lifetimes import make_times
from diagatt.simulate.parameters import SurvivalParameters


def draw_times(
    eta: np.ndarray, parameters: SurvivalParameters, rng: np.random.Generator
) -> np.ndarray:
    """Draw when observation ends and whether by an event, given log hazard ratios (n,)."""
    waited = rng.exponential(size=(2, len(eta)))  # on the scale of the cumulative hazard
    with np.errstate(divide="ignore"):
        until = waited / np.stack([np.exp(eta), np.full(len(eta), parameters.censoring_rate)])
    times = until.min(axis=0) ** (1 / parameters.shape)
    return make_times(until[0] <= until[1], np.maximum(times, np.finfo(np.float32).tiny))


def rate_of_censoring(share: float, mean: float, variance: float) -> float:
    r"""Return the rate c with :math:`\mathrm E\, c/(c + e^η)` = share, for normal η.

    Examples
    --------
    >>> rate_of_censoring(0.5, 0.0, 1.0)
    1.0
    """
    if share == 0:
        return 0.0
    nodes, weights = roots_hermitenorm(64)
    eta, mass = mean + variance**0.5 * nodes, weights / weights.sum()

    def excess(log_rate: float) -> float:
        return float(mass @ expit(log_rate - eta)) - share

    reach = 10 + 10 * variance**0.5
    return float(round(np.exp(brentq(excess, mean - reach, mean + reach)), 12))
