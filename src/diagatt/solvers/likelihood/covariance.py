"""Covariances of active rows relative to the background: shrunk, tied, diagonal or of low rank.

In coordinates where the background covariance is the identity, the paper's simulations have
``C_k = σ_k² I``. Uncertain estimates are therefore shrunk towards this form.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diagatt.solvers.glm import OVERFLOW, DivergedError

COVARIANCES = ("full", "tied", "diagonal", "low_rank")
# Lower bound of variances, relative to the largest.
FLOOR = 1e-8
# Lower bound of variances of active rows, relative to the background's.
ACTIVE_FLOOR = 1e-4


def oas_intensity(S: Tensor, n: float) -> float:
    r"""Return the oracle-approximating shrinkage towards (tr S/d)·I.

    By Chen, Wiesel, Eldar and Hero (2010):

    .. math:: α = \min\Bigl\{1, \frac{(1-2/d)\,\mathrm{tr}\,S² + \mathrm{tr}²S}
              {(n+1-2/d)(\mathrm{tr}\,S² - \mathrm{tr}²S/d)}\Bigr\}

    Examples
    --------
    >>> oas_intensity(torch.diag(torch.tensor([1.0, 3.0])), n=1e6) < 1e-4
    True
    >>> oas_intensity(torch.eye(3), n=10)
    1.0
    """
    d = len(S)
    square, trace2 = float((S * S).sum()), float(S.trace()) ** 2
    spread = square - trace2 / d
    if spread <= 1e-14 * square:
        return 1.0
    return min(1.0, ((1 - 2 / d) * square + trace2) / ((n + 1 - 2 / d) * spread))


def structured(S: Tensor, n: float, kind: str, shrinkage: float | None, rank: int) -> Tensor:
    """Return the covariance of this kind that is nearest in likelihood to the moments S of n rows.

    Parameters
    ----------
    S : tensor of shape (d, d)
        In coordinates whitened by the background.
    kind : {"full", "tied", "diagonal", "low_rank"}
        S shrunk to a multiple of the identity; that multiple; the diagonal; or the `rank`
        directions that differ most from an isotropic rest (probabilistic PCA).
    shrinkage : float, optional
        Of "full", in [0, 1]; chosen by `oas_intensity` if None.
    """
    d = len(S)
    level = S.trace() / d
    eye = torch.eye(d, dtype=S.dtype, device=S.device)
    if kind == "tied":
        return level * eye
    if kind == "diagonal":
        return torch.diag(S.diagonal())
    if kind == "low_rank":
        values, vectors = torch.linalg.eigh(S)
        q = min(rank, d - 1)
        order = (values.clamp(min=FLOOR).log() - level.clamp(min=FLOOR).log()).abs().argsort()
        rest = values[order[: d - q]].mean()
        kept = values.new_full((d,), float(rest))
        kept[order[d - q :]] = values[order[d - q :]]
        return vectors * kept @ vectors.T
    alpha = oas_intensity(S, n) if shrinkage is None else shrinkage
    return (1 - alpha) * S + alpha * level * eye


def lifted_above_floor(C: Tensor, floor: float | None = None) -> Tensor:
    """Return C with eigenvalues below the floor raised to it (constant or copied features).

    The floor is relative to the largest eigenvalue if it is not given.
    """
    if not bool(torch.isfinite(C).all()):
        raise DivergedError(OVERFLOW)
    values, vectors = torch.linalg.eigh((C + C.T) / 2)
    if floor is None:
        largest = float(values[-1])
        floor = FLOOR * largest if largest > 0 else 1.0  # no spread at all: any unit will do
    if float(values[0]) >= floor:
        return C
    return vectors * values.clamp(min=floor) @ vectors.T
