"""Data-generating processes: the paper's regression and mixture classification, and survival."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from diagatt.arguments import Count, Seed
from diagatt.coerce import offsets_from
from diagatt.ragged import RaggedRows
from diagatt.simulate.oracle import Oracle, bayes_oracle
from diagatt.simulate.parameters import (
    ClassificationParameters,
    Parameters,
    RegressionParameters,
    SurvivalParameters,
    check_array,
    check_rows,
)
from diagatt.simulate.sampling import (
    distinct_rows,
    draw_rows,
    draw_times,
    rate_of_censoring,
    stream,
)


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated samples with the truth about them.

    Attributes
    ----------
    X : RaggedRows
    y : ndarray of shape (n,)
        Numbers of the type of X for regression, integers 0 and 1 for classification, and a
        structured array of events and times for survival.
    rows : ndarray of shape (n, s)
        Active rows; column k belongs to ``parameters.beta[k]``.
    parameters : RegressionParameters or ClassificationParameters
    """

    X: RaggedRows
    y: np.ndarray = field(repr=False)
    rows: np.ndarray = field(repr=False)
    parameters: Parameters

    def draw(self, n: int, seed: Seed) -> Simulation:
        """Draw n further samples from the same population, for instance a test set.

        A seed other than that of these samples gives independent samples; the same seed and n give
        the same samples again.
        """
        return draw(self.parameters, n, seed, self.X.dtype)

    def oracle(self) -> Oracle:
        """Return the exact Bayes oracle's prediction and location for these samples."""
        return bayes_oracle(self.X, self.parameters)


def regression(
    n: int,
    p: int | tuple[int, int] = 100,
    d: int = 70,
    s: Count | None = None,
    mu: Any = (2.0,),
    sigma2: Any = (2.0,),
    rho: float = 0.0,
    noise: float = 1.0,
    covariance: Any = None,
    beta: Any = None,
    center: Any = None,
    degrees_of_freedom: float | None = None,
    dtype: Any = np.float32,
    seed: Seed = 0,
) -> Simulation:
    r"""Simulate individualized sparse regression (paper, equation (DGP-reg)).

    ``y = Σ_{j=1}^s ⟨x_{S_j}, β_j⟩ + noise·ε`` with distinct active rows ``S_j`` drawn uniformly;
    background rows are ``N(m, Σ)``, the j-th active row is ``N(μ_j m, σ_j² Σ)``.

    Parameters
    ----------
    n : int
        Count of samples.
    p : int or (low, high)
        Count of rows per sample; for a range, uniform on it with both ends included.
    d : int
        Count of features per row.
    s : int, optional
        Count of active rows per sample; by default the count of entries of ``mu``.
    mu, sigma2 : float or sequence of s floats
        ``μ_j`` and ``σ_j²``.
    rho : float
        Within-sample correlation, ``Cov(x_j, x_k) = ρ Var(x_j)^½ Var(x_k)^½`` (supplement S5.1).
    noise : float
        Standard deviation of the response's noise.
    covariance : array of shape (d, d), optional
        ``Σ``; by default the identity. See also `ar1`.
    beta : array of shape (s, d), or (d,) if s = 1, optional
        Coefficients; by default entries from N(1, 1).
    center : array of shape (d,), optional
        ``m``, the paper's bold μ; by default entries from N(0, 0.1²).
    degrees_of_freedom : float > 2, optional
        Draw multivariate t rows with the same mean and covariance instead of Gaussian ones.
    dtype : float32 or float64
        Type of X and y.
    seed : int or sequence of int

    Returns
    -------
    Simulation

    Examples
    --------
    >>> from diagatt import metrics, simulate
    >>> train = simulate.regression(200, p=(5, 9), d=30, sigma2=3.0, seed=1)
    >>> train.X
    RaggedRows(n_samples=200, n_rows=1382, n_features=30, dtype=float32)
    >>> test = train.draw(50, seed=2)
    >>> metrics.crlr(test.rows, test.oracle().rows)
    0.96
    """
    s = int(np.size(mu) if s is None else s)
    fields = check_rows(p, d, s, mu, sigma2, rho, covariance, degrees_of_freedom)
    if not 1 <= s <= fields["p"][0]:
        raise ValueError(
            f"s={s} must be at least 1 and at most the count of rows of every sample; p is {p}."
        )
    if not noise >= 0:
        raise ValueError(f"noise must be 0 or more, got {noise}.")
    if beta is None:
        beta = stream(seed, "beta").normal(1.0, 1.0, size=(s, d))
    elif s == 1 and np.ndim(beta) == 1:
        beta = np.asarray(beta)[None]
    parameters = RegressionParameters(
        **fields,
        center=_center(center, d, seed),
        beta=check_array(beta, (s, d), "beta"),
        noise=float(noise),
    )
    return draw(parameters, n, seed, dtype)


def classification(
    n: int,
    p: int | tuple[int, int] = 100,
    d: int = 70,
    pi: float = 0.5,
    mu: Any = (3.0, -3.0),
    sigma2: Any = (2.0, 2.0),
    rho: float = 0.0,
    covariance: Any = None,
    center: Any = None,
    degrees_of_freedom: float | None = None,
    dtype: Any = np.float32,
    seed: Seed = 0,
) -> Simulation:
    r"""Simulate mixture classification (paper, equation (data-generation-cla)).

    ``y ~ Ber(π)``; background rows are ``N(m, Σ)``, the one active row is ``N(μ_P m, σ_P² Σ)`` if
    y = 1 and ``N(μ_N m, σ_N² Σ)`` if y = 0.

    Parameters
    ----------
    n, p, d, rho, covariance, center, degrees_of_freedom, dtype, seed
        As in `regression`.
    pi : float
        Probability of class 1.
    mu, sigma2 : float or pair of float
        ``(μ_P, μ_N)`` and ``(σ_P², σ_N²)``.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> from diagatt import metrics, simulate
    >>> data = simulate.classification(300, p=20, seed=1)
    >>> probability = data.oracle().prediction
    >>> metrics.accuracy(data.y, probability > 0.5) > 0.9
    True
    """
    fields = check_rows(p, d, 2, mu, sigma2, rho, covariance, degrees_of_freedom)
    if not 0 < pi < 1:
        raise ValueError(f"pi must lie strictly between 0 and 1, got {pi}.")
    parameters = ClassificationParameters(**fields, center=_center(center, d, seed), pi=float(pi))
    return draw(parameters, n, seed, dtype)


def draw(parameters: Parameters, n: int, seed: Seed, dtype: Any = np.float32) -> Simulation:
    """Draw n samples from a population.

    Parameters
    ----------
    parameters : RegressionParameters or ClassificationParameters
    n, seed, dtype
        As in `regression`.
    """
    if n < 1 or int(n) != n:
        raise ValueError(f"n must be a positive int, got {n}.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}.")
    lengths = stream(seed, "lengths").integers(*parameters.p, size=int(n), endpoint=True)
    offsets = offsets_from(lengths)
    rows = distinct_rows(stream(seed, "positions"), lengths, parameters.s)  # (n, s)
    active = offsets[:-1, None] + rows  # (n, s) positions among all rows
    rng = stream(seed, "response")
    if isinstance(parameters, RegressionParameters):
        component = np.broadcast_to(np.arange(parameters.s), rows.shape)
        values = draw_rows(parameters, offsets, active, component, seed, dtype)
        y = rng.normal(scale=parameters.noise, size=n)
        for k, beta in enumerate(parameters.beta):
            y += values[active[:, k]] @ beta
        y = y.astype(dtype)
        if isinstance(parameters, SurvivalParameters):
            y = draw_times(y, parameters, rng)
    elif isinstance(parameters, ClassificationParameters):
        y = (rng.random(n) < parameters.pi).astype(np.int64)
        values = draw_rows(parameters, offsets, active, (1 - y)[:, None], seed, dtype)
    else:
        raise TypeError(f"cannot draw from {type(parameters).__name__}.")
    return Simulation(RaggedRows(values, offsets), y, rows, parameters)


def _center(center: Any, d: int, seed: Seed) -> np.ndarray:
    if center is None:
        center = stream(seed, "center").normal(0.0, 0.1, size=d)
    return check_array(center, (d,), "center")


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
        Expected share of samples whose event is not observed, in [0, 1).
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
