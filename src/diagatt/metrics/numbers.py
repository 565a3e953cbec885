r"""Measures of predicted means.

Regressions predict means only. The density is that of the family, with the dispersion estimated
from the *other* half of the samples, so that no method profits from fitting its training samples
closely.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn  # its metrics, which take 0.2 s, are imported when they are first used
import torch

from diagatt.arguments import Numbers
from diagatt.families import counts_trials, get_family
from diagatt.metrics.classes import FLOOR


def number_scores(y: Numbers, mean: Numbers, family: str = "gaussian") -> dict[str, float]:
    """Return R² (of responses that vary), RMSE, mean absolute error and log score.

    Parameters
    ----------
    y, mean : array of shape (n,)
        Responses and predicted means; of a binomial response, successes and failures (n, 2) and
        predicted shares of successes, which count in proportion to their trials.
    family : str
        Distribution of the log score; "auto" is gaussian.

    Examples
    --------
    >>> found = number_scores(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0]))
    >>> round(found["r2"], 3), round(found["rmse"], 3), round(found["mae"], 3)
    (0.786, 0.577, 0.333)
    """
    if counts_trials(family):
        return _share_scores(y, mean)
    y, mean = _pair(y, mean, "mean")
    found = {"r2": float(sklearn.metrics.r2_score(y, mean))} if np.ptp(y) > 0 else {}
    found |= {"rmse": rmse(y, mean), "mae": float(sklearn.metrics.mean_absolute_error(y, mean))}
    # The dispersion is estimated from the other half of the samples, so there must be one.
    return (
        found if len(y) < 2 else found | {"log_score": float(log_density(y, mean, family).mean())}
    )


def shares(y: Numbers) -> np.ndarray:
    """Return the share of successes, (n,), of successes and failures, (n, 2).

    Examples
    --------
    >>> shares([[1, 3], [2, 0]])
    array([0.25, 1.  ])
    """
    y = np.asarray(y, dtype=np.float64)
    return y[:, 0] / y.sum(axis=1)


def _share_scores(y: Numbers, mean: Numbers) -> dict[str, float]:
    """Return scores of shares weighted by trials, and the mean log-likelihood of samples."""
    observed, mean = _pair(shares(y), mean, "mean")
    trials = np.asarray(y, dtype=np.float64).sum(axis=1)
    how = {"sample_weight": trials}
    r2 = sklearn.metrics.r2_score
    found = {"r2": float(r2(observed, mean, **how))} if np.ptp(observed) > 0 else {}
    found["rmse"] = float(sklearn.metrics.root_mean_squared_error(observed, mean, **how))
    found["mae"] = float(sklearn.metrics.mean_absolute_error(observed, mean, **how))
    family = get_family("binomial")
    z = family.link(torch.from_numpy(np.clip(mean, FLOOR, 1 - FLOOR))[:, None])
    response = torch.as_tensor(np.asarray(y, dtype=np.float64))
    return found | {"log_score": float(family.log_density(response, z, 1.0).mean())}


def rmse(y: Numbers, prediction: Numbers) -> float:
    """Return the root mean squared error ``‖y − ŷ‖₂ / √n``, in float64 (paper, Section 5.1).

    Parameters
    ----------
    y, prediction : array of shape (n,)

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """
    return float(sklearn.metrics.root_mean_squared_error(*_pair(y, prediction, "prediction")))


def mean_deviance(family_name: str, y: Numbers, mean: Numbers) -> float:
    """Return the mean unit deviance: twice the log-likelihood lost to a perfect prediction.

    It is ``2(ℓ(y, g(m)) − min ℓ(y, ·))`` with the family's link g and loss ℓ, such as
    ``(y − m)²`` for gaussian responses, and ``−2 log P(y)`` for classes.

    Parameters
    ----------
    family_name : str
        "gaussian", "bernoulli", "multinomial", "poisson", "gamma" or another registered family.
    y : array of shape (n,)
        Responses; 0 or 1 for bernoulli, the column of ``mean`` for multinomial.
    mean : array of shape (n,), or (n, n_classes) for multinomial
        Predicted means; probabilities for bernoulli and multinomial.

    Examples
    --------
    >>> mean_deviance("gaussian", [1.0, 2.0], [1.0, 4.0])
    2.0
    >>> round(mean_deviance("multinomial", [0, 2], [[0.5, 0.2, 0.3], [0.1, 0.4, 0.5]]), 3)
    1.386
    """
    family = get_family(family_name)
    response, given = map(torch.from_numpy, _pair(y, mean, "mean", family.predicts_classes))
    _require(family.is_valid(response), "y", family.response_range)
    if not family.classifies:
        z = family.link(given)
        _require(z.isfinite(), "mean", f"inside the range of the family ({family.response_range})")
        return float(family.deviance(response, z[:, None]).mean())
    # The link of a probability of 0 or 1 is infinite, the deviance need not be.
    chances = given if given.ndim == 2 else torch.stack([1 - given, given], dim=1)  # (n, K)
    _require(response < chances.shape[1], "y", f"a column of mean, 0..{chances.shape[1] - 1}")
    _require(((chances >= 0) & (chances <= 1)).all(dim=1), "mean", "between 0 and 1")
    return float(2 * chances.gather(1, response.long()[:, None]).log().mean().abs())


def log_density(y: Numbers, mean: Numbers, family: str) -> np.ndarray:
    """Return the log density of each response, (m,), given predicted means.

    Gaussian or gamma dispersion comes from the samples of the other half: even ones for odd ones
    and the other way round.
    """
    distribution = get_family("gaussian" if family == "auto" else family)
    y, mean = _pair(y, mean, "mean")
    if not distribution.has_identity_link:  # positive means, whatever a method predicts
        mean = np.maximum(mean, 0.01 * y.mean())
    response = torch.as_tensor(np.asarray(y, dtype=np.float64))
    z = distribution.link(torch.as_tensor(np.asarray(mean, dtype=np.float64))[:, None])
    density = np.empty(len(y))
    even = np.arange(len(y)) % 2 == 0
    for half in (even, ~even):
        other = torch.from_numpy(~half)
        phi = distribution.unit_dispersion(response[other], z[other]).mean().item()
        here = torch.from_numpy(half)
        floor = 1e-12 + (1e-4 * float(np.var(y)) if distribution.is_quadratic else 0.0)
        found = distribution.log_density(response[here], z[here], max(phi, floor))
        density[half] = found.numpy()
    return density


def _require(valid: torch.Tensor, name: str, what: str) -> None:
    if not valid.all():
        raise ValueError(f"{name} of sample {int((~valid).nonzero()[0])} must be {what}.")


def _pair(y: Any, other: Any, name: str, columns: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 arrays of equal, positive length."""
    y, other = np.asarray(y, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if y.ndim != 1 or other.ndim != 1 + columns:
        raise ValueError(
            f"y must be 1-D and {name} {1 + columns}-D, got {y.ndim}-D and {other.ndim}-D."
        )
    if len(y) != len(other):
        raise ValueError(f"y has {len(y)} samples, {name} has {len(other)}: pass equally many.")
    if len(y) == 0:
        raise ValueError("y is empty: pass at least one sample.")
    return y, other
