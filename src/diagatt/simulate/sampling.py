"""Random rows, drawn in place without a second copy or float64, and times to an event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, roots_hermitenorm

from diagatt.arguments import Seed
from diagatt.lifetimes import make_times
from diagatt.simulate.parameters import Parameters, SurvivalParameters

_BLOCK_ELEMENTS = 2**20  # 8 MB in float64

# One independent stream per random quantity: none depends on how much another one draws.
_STREAMS = ("center", "beta", "lengths", "positions", "rows", "shared", "tails", "response")


def stream(seed: Seed, name: str) -> np.random.Generator:
    """Return the random generator of one of the streams above."""
    key = (_STREAMS.index(name),)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def row_blocks(n_rows: int, d: int) -> Iterator[slice]:
    """Yield slices of a few megabytes that cover n_rows rows of d features."""
    step = max(1, _BLOCK_ELEMENTS // d)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def distinct_rows(rng: np.random.Generator, lengths: np.ndarray, s: int) -> np.ndarray:
    """Draw s distinct row indices per sample, (n, s); every ordered choice is equally likely.

    The k-th index is uniform on the ``p − k`` remaining rows: a draw moves up by one for every
    earlier index that it reaches or passes.
    """
    rows = np.empty((len(lengths), s), dtype=np.int64)
    for k in range(s):
        draw = rng.integers(0, lengths - k)  # (n,)
        for earlier in np.sort(rows[:, :k], axis=1).T:
            draw += draw >= earlier
        rows[:, k] = draw
    return rows


def draw_rows(
    parameters: Parameters,
    offsets: np.ndarray,
    active: np.ndarray,
    component: np.ndarray,
    seed: Seed,
    dtype: Any,
) -> np.ndarray:
    """Draw all rows of all samples, (N, d).

    ``x_j = mu_j·center + sigma_j·Σ^½ (√ρ g_i + √(1−ρ) e_j)`` with one ``g_i`` per sample, and
    ``mu_j = sigma_j = 1`` for a background row. With ν degrees of freedom, ``e_j`` is multivariate
    t, scaled to unit covariance; the correlation between rows remains ρ.

    Parameters
    ----------
    parameters : Parameters
    offsets : ndarray of shape (n + 1,)
    active : ndarray of shape (n, s)
        Active rows, as positions among all N rows.
    component : ndarray of shape (n, s)
        Which entry of ``mu`` and ``sigma2`` each active row follows.
    seed, dtype
        As in `regression`.
    """
    n, d, rho, nu = len(offsets) - 1, parameters.d, parameters.rho, parameters.degrees_of_freedom
    normal, tails = stream(seed, "rows"), stream(seed, "tails")
    shared = None
    if rho > 0:
        shared = stream(seed, "shared").standard_normal((n, d), dtype=dtype)
        shared *= np.sqrt(rho)
    root = parameters.cholesky()
    root = None if root is None else root.astype(dtype)
    center = parameters.center.astype(dtype)
    order = np.argsort(active, axis=None)
    position, kind = active.ravel()[order], component.ravel()[order]  # (n s,) in packed order
    spread = np.sqrt(parameters.sigma2).astype(dtype)[kind]
    shift = (parameters.mu - 1).astype(dtype)[kind]

    values = np.empty((offsets[-1], d), dtype=dtype)
    for block in row_blocks(len(values), d):
        rows = values[block]  # a view, changed in place below
        normal.standard_normal(out=rows, dtype=dtype)
        if nu is not None:
            rows *= np.sqrt((nu - 2) / tails.chisquare(nu, len(rows))).astype(dtype)[:, None]
        if shared is not None:
            rows *= np.sqrt(1 - rho)
            rows += shared[samples_of(offsets, block)]
        if root is not None:
            rows[:] = rows @ root.T
        part = slice(*np.searchsorted(position, (block.start, block.stop)))
        here = position[part] - block.start
        rows[here] *= spread[part, None]
        rows += center
        rows[here] += shift[part, None] * center
    return values


def samples_of(offsets: np.ndarray, block: slice) -> np.ndarray:
    """Return the sample of each row of the block."""
    return np.searchsorted(offsets, np.arange(block.start, block.stop), side="right") - 1


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
