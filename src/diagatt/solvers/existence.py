r"""Is there any row of interest? A test of what attention adds to a regression on mean rows.

Let η be the predictor of samples that a fit has not seen, freed of what mean rows and covariates
explain within its fold and scaled there, and g the score residual of the GLM on mean rows. If mean
rows say all that rows say about the response, then g has mean 0 given the rows, and

.. math:: T = \frac{1}{\sqrt 2} \frac{\sum_i w_i η_i g_i}{\sqrt{\sum_i (w_i η_i g_i)^2}}

is compared with the standard normal distribution, on one side. The factor :math:`1/\sqrt 2` pays
for cross-fitting: products of different folds are correlated, since each fold helps to fit the
others' η. Rows may have any distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from scipy.stats import norm
from torch import Tensor

from diagatt.segments import map_blocks, segment_mean
from diagatt.solvers.glm import fit_glm
from diagatt.solvers.problem import Samples

# One side of the normal distribution on which a row of interest is believed in.
LEVEL = 0.05
# Cross-fitting correlates the products: their sum varies up to twice as much as if it did not.
INFLATION = math.sqrt(2.0)
# Directions of mean rows that are taken out: at most one per so many samples.
SAMPLES_PER_DIRECTION = 4
# Ridge of the GLM on standardized mean rows: separable classes have no other minimum.
RIDGE = 1.0
# What is left of η after mean rows are taken out, relative to η: below, it is rounding.
LEAST_REST = 1e-6


@dataclass(frozen=True)
class Existence:
    """Whether there is any row of interest.

    Attributes
    ----------
    statistic : float
        T, which is near 0 if attention adds nothing out of fold, and large if it does.
    p_value : float
        p-value of the null hypothesis that mean rows and covariates explain all that rows explain.
    n_samples : int
        Count of samples on which the test is based.
    n_folds : int
    """

    statistic: float
    p_value: float
    n_samples: int
    n_folds: int

    @property
    def is_found(self) -> bool:
        """Whether the null hypothesis is rejected at 5 %."""
        return self.p_value < LEVEL

    def __str__(self) -> str:
        verdict = "found" if self.is_found else "none"
        p = "p < 0.001" if self.p_value < 1e-3 else f"p = {self.p_value:.3f}"
        return f"{verdict} (T = {self.statistic:.2f}, {p}, {self.n_folds} folds)"


def existence_test(
    samples: Samples,
    folds: Tensor,
    attending: Tensor,
    pooled: Tensor | None = None,
    explained: bool = False,
) -> Existence:
    """Test whether attention adds to mean rows and covariates.

    Parameters
    ----------
    samples : Samples
        Their `groups`, if any, are taken as independent of each other.
    folds : tensor of shape (n,)
    attending : tensor of shape (n, K)
        Predictors of models with attention that have not seen the sample's fold.
    pooled : tensor of shape (n, K), optional
        Predictors of models without attention, or with fewer heads, that have not seen it either.
        The test then asks what attention adds to these as well.
    explained : bool
        Whether g is the residual of these, too: what fewer heads explain is no row of another.
    """
    y, w = samples.y.double(), samples.weights.double()
    known = _known(samples)
    columns = _beside(known, pooled) if pooled is not None and explained else known
    g = _score_residual(samples, columns)  # (n, K)
    eta = torch.zeros_like(attending, dtype=torch.float64)
    for fold in range(int(folds.max()) + 1):
        held_out = folds == fold
        beside = known[held_out] if pooled is None else _beside(known, pooled)[held_out]
        eta[held_out] = _rest(attending[held_out].double(), beside, w[held_out])
    products = w * (eta * g).sum(dim=1)  # (n,)
    if samples.groups is not None:
        codes = torch.unique(samples.groups, return_inverse=True)[1]
        products = products.new_zeros(int(codes.max()) + 1).index_add(0, codes, products)
    size = float(products.square().sum().sqrt())
    statistic = float(products.sum()) / (INFLATION * size) if size > 0 else 0.0
    return Existence(statistic, float(norm.sf(statistic)), len(y), int(folds.max()) + 1)


def either(first: Existence, second: Existence | None, share: float) -> Existence:
    """Return the more convincing of two tests, at the level of one.

    Parameters
    ----------
    first, second : Existence
    share : float
        Part of the level that the second has: its p-value is divided by it, the other's by 1 − it.

    Examples
    --------
    >>> weak, strong = Existence(1.0, 0.16, 100, 5), Existence(4.0, 3e-5, 60, 3)
    >>> either(weak, strong, 0.2)
    Existence(statistic=4.0, p_value=0.00015, n_samples=60, n_folds=3)
    """
    if second is None:
        return first
    tests = [(first, first.p_value / (1 - share)), (second, second.p_value / share)]
    best, p_value = min(tests, key=lambda pair: pair[1])
    return replace(best, p_value=min(1.0, p_value))


def _known(samples: Samples) -> Tensor:
    """Return mean rows and covariates, (n, d + q)."""
    rows = (samples.values.double(), samples.offsets)
    mean = map_blocks(segment_mean, *rows, log_prior=samples.log_prior)
    return torch.cat([mean, samples.covariates.double()], dim=1)


def _beside(known: Tensor, pooled: Tensor) -> Tensor:
    return torch.cat([pooled.double(), known], dim=1)


def _directions(columns: Tensor, weights: Tensor, most: int) -> Tensor:
    """Return standardized main directions of columns, with a constant first, (n, m)."""
    share = (weights / weights.sum())[:, None]
    centred = columns - (share * columns).sum(dim=0)
    scale = (share * centred.square()).sum(dim=0).sqrt()
    centred = centred[:, scale > 0] / scale[scale > 0]
    if centred.shape[1] > most:
        basis = torch.linalg.svd(share.sqrt() * centred, full_matrices=False).Vh[:most]
        centred = centred @ basis.T
        scale = (share * centred.square()).sum(dim=0).sqrt()
        centred = centred[:, scale > 1e-12] / scale[scale > 1e-12]
    return torch.cat([torch.ones_like(share), centred], dim=1)


def _score_residual(samples: Samples, known: Tensor) -> Tensor:
    """Return −∂ℓ/∂z at the GLM on what is known, (n, K): y − μ for canonical links."""
    y, w = samples.y.double(), samples.weights.double()
    F = _directions(known, w, len(y) // SAMPLES_PER_DIRECTION)
    penalty = torch.full((F.shape[1],), RIDGE / float(w.sum()), dtype=torch.float64)
    penalty[0] = 0.0
    offset = None if samples.offset is None else samples.offset.double()
    beta = fit_glm(samples.family, F, y, w, penalty.to(F), samples.n_outputs, offset=offset)
    z = F @ beta if offset is None else F @ beta + offset
    return -samples.family.gradient(y, z)


def _rest(eta: Tensor, beside: Tensor, weights: Tensor) -> Tensor:
    """Return what is left of η after a regression on the columns beside it, of unit size."""
    F = _directions(beside, weights, len(eta) // SAMPLES_PER_DIRECTION)
    root = weights.sqrt()[:, None]
    rest = eta - F @ torch.linalg.lstsq(root * F, root * eta, driver="gelsd").solution
    share = (weights / weights.sum())[:, None]
    spread = (share * (eta - (share * eta).sum(dim=0)).square()).sum().sqrt()
    size = (share * rest.square()).sum().sqrt()
    return rest / size if float(size) > LEAST_REST * float(spread) else torch.zeros_like(rest)
