"""The parameters of a simulated population, checked once.

Symbols compared with the paper: ``center`` is the bold μ, ``mu`` and ``sigma2`` the scalars μ_j and
σ_j² of the active rows, ``covariance`` is Σ, ``beta`` the rows β_j.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import toeplitz


@dataclass(frozen=True, eq=False, kw_only=True)
class Parameters:
    """The distribution of rows: ``N(center, Σ)``, or ``N(mu_j·center, sigma2_j·Σ)`` if active.

    Attributes
    ----------
    p : tuple of int
        Lengths of the shortest and the longest sample; lengths are uniform between them.
    center : ndarray of shape (d,)
    mu, sigma2 : ndarray of shape (n_components,)
        One entry per kind of active row.
    covariance : ndarray of shape (d, d)
    rho : float
        Correlation between the rows of a sample.
    degrees_of_freedom : float or None
        Degrees of freedom of multivariate t rows with this covariance; None for Gaussian rows.
    """

    p: tuple[int, int]
    center: np.ndarray = field(repr=False)
    mu: np.ndarray
    sigma2: np.ndarray
    covariance: np.ndarray = field(repr=False)
    rho: float
    degrees_of_freedom: float | None

    @property
    def d(self) -> int:
        """Count of features per row."""
        return len(self.center)

    @property
    def s(self) -> int:
        """Count of active rows per sample."""
        return 1

    def cholesky(self) -> np.ndarray | None:
        """Return the lower Cholesky factor of the covariance; None if it is the identity."""
        if np.array_equal(self.covariance, np.eye(self.d)):
            return None
        return np.linalg.cholesky(self.covariance)


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionParameters(Parameters):
    """Parameters of ``y = Σ_j ⟨x_{S_j}, beta_j⟩ + noise·ε`` (paper, equation (DGP-reg)).

    Attributes
    ----------
    beta : ndarray of shape (s, d)
    noise : float
        Standard deviation of the response's noise.
    """

    beta: np.ndarray = field(repr=False)
    noise: float

    @property
    def s(self) -> int:
        """Count of active rows per sample."""
        return len(self.beta)


@dataclass(frozen=True, eq=False, kw_only=True)
class SurvivalParameters(RegressionParameters):
    """Parameters of times with the hazard ``shape·t^(shape − 1)·exp(Σ_j ⟨x_{S_j}, beta_j⟩)``.

    Attributes
    ----------
    shape : float
        Shape of the Weibull law; 1 means a constant hazard.
    censoring_rate : float
        Censoring has the hazard ``censoring_rate·shape·t^(shape − 1)``; 0 means no censoring.
    """

    shape: float
    censoring_rate: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassificationParameters(Parameters):
    """Parameters of the mixture classification (paper, equation (data-generation-cla)).

    Attributes
    ----------
    pi : float
        Probability of class 1, whose active row has ``mu[0]``, ``sigma2[0]``.
    """

    pi: float


def ar1(d: int, r: float) -> np.ndarray:
    """Return the autoregressive correlation matrix, ``Σ_jk = r^|j−k|``.

    Examples
    --------
    >>> ar1(3, 0.5)
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    if not -1 < r < 1:
        raise ValueError(f"r must lie strictly between -1 and 1, got {r}.")
    return toeplitz(float(r) ** np.arange(d))


def check_rows(
    p: int | tuple[int, int],
    d: int,
    components: int,
    mu: Any,
    sigma2: Any,
    rho: float,
    covariance: Any,
    degrees_of_freedom: float | None,
) -> dict[str, Any]:
    """Check and return the fields of `Parameters`, all but ``center``."""
    low, high = p if isinstance(p, tuple | list) else (p, p)
    if not 1 <= low <= high or int(low) != low or int(high) != high:
        raise ValueError(f"p must be a positive int or a (low, high) range of them, got {p}.")
    if d < 1 or int(d) != d:
        raise ValueError(f"d must be a positive int, got {d}.")
    if not 0 <= rho < 1:
        raise ValueError(f"rho must lie in [0, 1), got {rho}.")
    if degrees_of_freedom is not None and not degrees_of_freedom > 2:
        raise ValueError(
            f"degrees_of_freedom must exceed 2 for rows to have a covariance, "
            f"got {degrees_of_freedom}."
        )
    sigma2 = _component_values(sigma2, components, "sigma2")
    if np.any(sigma2 <= 0):
        raise ValueError(f"sigma2 must be positive, got {sigma2}.")
    return {
        "p": (int(low), int(high)),
        "mu": _component_values(mu, components, "mu"),
        "sigma2": sigma2,
        "rho": float(rho),
        "covariance": _check_covariance(covariance, d),
        "degrees_of_freedom": degrees_of_freedom,
    }


def check_array(array: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return a read-only float64 copy, which must be finite and have this shape."""
    checked = np.array(array, dtype=np.float64)
    if checked.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {checked.shape}.")
    if not np.all(np.isfinite(checked)):
        raise ValueError(f"{name} contains NaN or infinity.")
    checked.setflags(write=False)
    return checked


def _component_values(given: Any, components: int, name: str) -> np.ndarray:
    values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.ndim != 1 or len(values) not in (1, components):
        raise ValueError(
            f"{name} must be one number or {components}, one per kind of active row; got {given}."
        )
    return check_array(np.broadcast_to(values, components), (components,), name)


def _check_covariance(covariance: Any, d: int) -> np.ndarray:
    if covariance is None:
        return check_array(np.eye(d), (d, d), "covariance")
    matrix = check_array(covariance, (d, d), "covariance")
    if not np.allclose(matrix, matrix.T):
        raise ValueError("covariance must be symmetric.")
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be positive definite.") from None
    return matrix
