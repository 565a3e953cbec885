"""Simulated times to an event, decided by a few rows of each sample."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from diagatt.arguments import Seed
from diagatt.simulate.parameters import SurvivalParameters
from diagatt.simulate.processes import Simulation, draw, regression
from diagatt.simulate.times import rate_of_censoring


def survival(
    n: int,
    p: int | tuple[int, int] = 100,
    d: int = 70,
    *,
    shape: float = 1.0,
    censoring: float = 0.3,
    dtype: Any = np.float32,
    seed: Seed = 0,
    **rows: Any,
) -> Simulation:
    r"""Simulate times to an event whose hazard a few rows decide.

    The hazard is :math:`k t^{k-1} \exp(\sum_j ⟨x_{S_j}, β_j⟩)`, with rows as in `regression`.
    Censoring is independent of it.

    Parameters
    ----------
    n, p, d, dtype, seed
        As in `regression`.
    shape : float
        k of the Weibull law.
    censoring : float
        Expected share of samples whose event is not seen, in [0, 1).
    **rows
        ``s``, ``mu``, ``sigma2``, ``rho``, ``covariance``, ``beta``, ``center`` and
        ``degrees_of_freedom`` of `regression`.

    Returns
    -------
    Simulation
        ``y`` is a structured array of ``event`` and ``time``. The prediction of its oracle is the
        expected log hazard ratio given X: a risk score.

    Examples
    --------
    >>> from diagatt import simulate
    >>> from diagatt.metrics import concordance
    >>> data = simulate.survival(500, p=5, d=4, mu=(3,), sigma2=(4,), censoring=0.3, seed=0)
    >>> float(round(1 - data.y["event"].mean(), 1))
    0.3
    >>> concordance(data.y["event"], data.y["time"], data.oracle().prediction) > 0.7
    True
    """
    if not 0 <= censoring < 1:
        raise ValueError(f"censoring is a share in [0, 1), got {censoring}.")
    if not shape > 0:
        raise ValueError(f"shape must be positive, got {shape}.")
    known = regression(1, p, d, noise=0.0, seed=seed, **rows).parameters
    beta, mu, sigma2 = known.beta, known.mu, known.sigma2  # type: ignore[attr-defined]
    mean = float(mu @ (beta @ known.center))
    variance = float(sigma2 @ np.einsum("sd,de,se->s", beta, known.covariance, beta))
    parameters = SurvivalParameters(
        **{f.name: getattr(known, f.name) for f in fields(known)},
        shape=float(shape),
        censoring_rate=rate_of_censoring(censoring, mean, variance),
    )
    return draw(parameters, n, seed, dtype)
