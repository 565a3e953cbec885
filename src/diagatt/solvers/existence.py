r"""Is there any row of interest? A test of what attention adds to a regression on mean rows.

Let η be the predictor of held-out samples, more precisely its residual in a regression on mean rows
and covariates within the fold, scaled there, and g the score residual of the GLM on mean rows.
If the response depends on the rows through their mean alone, then g has mean 0 given the rows, and

.. math:: T = \frac{1}{\sqrt 2} \frac{\sum_i w_i η_i g_i}{\sqrt{\sum_i (w_i η_i g_i)^2}}

is compared with the standard normal distribution, on one side. The factor :math:`1/\sqrt 2` pays
for cross-fitting: products of different folds are correlated, since each fold helps to fit the
others' η. Rows may have any distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from scipy.stats import norm
from torch import Tensor

from diagatt.solvers.glm import fit_glm
from diagatt.solvers.problem import Samples, group_sums, mean_rows

# The level of the test, on one side of the normal distribution.
LEVEL = 0.05
# Cross-fitting correlates the products: their sum varies up to twice as much as if it did not.
INFLATION = math.sqrt(2.0)
# Directions of mean rows in the regressions: at most one per this many samples.
SAMPLES_PER_DIRECTION = 4
# Counts of groups from which their sums are compared with the normal distribution.
FEWEST_GROUPS = 20
# Ridge of the GLM on standardized mean rows: separable classes have no other minimum.
RIDGE = 1.0
# Size of the residual of η, relative to η, below which it is rounding.
LEAST_RESIDUAL = 1e-6


@dataclass(frozen=True)
class Existence:
    """Whether there is any row of interest.

    Attributes
    ----------
    statistic : float
        T, which is near 0 if attention adds nothing out of fold, and large if it does. It is
        compared with the standard normal distribution.
    p_value : float
        p-value of the null hypothesis that mean rows and covariates explain all that rows explain.
    n_samples : int
        Count of samples on which the test is based.
    n_folds : int
        0 if rows were found without responses (`diagatt.solvers.outlying_rows`), so that nothing
        was held out.
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
        verdict = "found" if self.is_found else "none found"
        p = "p < 0.001" if self.p_value < 1e-3 else f"p = {self.p_value:.3f}"
        how = f"{self.n_folds} folds" if self.n_folds else "from rows alone"
        return f"{verdict} (T = {self.statistic:.2f}, {p}, {how})"


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
        Their `groups`, if any, are taken as independent of each other. Fewer than 20 of them could
        reject nothing: samples are then the units, and η is centred within each group, so that
        what samples of a group have in common does not count.
    folds : tensor of shape (n,)
    attending : tensor of shape (n, K)
        Predictors of models with attention, fitted without the sample's fold.
    pooled : tensor of shape (n, K), optional
        Predictors of models without attention, or with fewer heads, fitted without it, too. The
        test is then whether attention adds to these as well.
    explained : bool
        Whether g is the residual of a regression on these, too, as for tests of a further head.
    """
    y, w = samples.y.double(), samples.weights.double()
    columns = torch.cat(
        [mean_rows(samples, torch.float64), samples.covariates.double()], dim=1
    )  # (n, d + q)
    both = columns if pooled is None else torch.cat([pooled.double(), columns], dim=1)
    columns = both if explained else columns
    g = score_residual(samples, directions(columns, w, len(y) // SAMPLES_PER_DIRECTION))  # (n, K)
    eta = torch.zeros_like(attending, dtype=torch.float64)
    for fold in range(int(folds.max()) + 1):
        held_out = folds == fold
        eta[held_out] = _residual(attending[held_out].double(), both[held_out], w[held_out])
    group = None if samples.groups is None else torch.unique(samples.groups, return_inverse=True)[1]
    if group is not None and int(group.max()) + 1 < FEWEST_GROUPS:
        eta, group = _centred(eta, w, group), None
    products = w * (eta * g).sum(dim=1)  # (n,)
    if group is not None:
        products = group_sums(products, group)
    size = float(products.square().sum().sqrt())
    statistic = float(products.sum()) / (INFLATION * size) if size > 0 else 0.0
    return Existence(statistic, float(norm.sf(statistic)), len(y), int(folds.max()) + 1)


def _centred(eta: Tensor, weights: Tensor, group: Tensor) -> Tensor:
    """Return η less its mean in every group, (n, K)."""
    mass = group_sums(weights, group).clamp(min=1e-300)
    means = group_sums(weights[:, None] * eta, group) / mass[:, None]
    return eta - means[group]


def together(tests: Sequence[tuple[Existence | None, float]]) -> Existence:
    r"""Return the most convincing of several tests, with a p-value for all of them together.

    p-values are combined as Cauchy variables (Liu and Xie, 2020), which may depend on each other:

    .. math:: p = \frac12 - \frac1π \arctan \sum_k ω_k \tan(π(½ - \min(p_k, ½))).

    At 5 % the size of normal statistics is then .05 to .056, whatever their correlation. A small
    p-value among large ones becomes p/ω, as with Bonferroni; several small ones reinforce each
    other.

    Parameters
    ----------
    tests : sequence of (Existence or None, float)
        Each with its share ω of the level. The shares of tests that are None go to the others.

    Examples
    --------
    >>> weak, strong = Existence(0.0, 0.5, 100, 5), Existence(4.0, 3e-5, 60, 3)
    >>> found = together([(weak, 0.8), (strong, 0.2), (None, 0.5)])
    >>> found.statistic, round(found.p_value, 6)
    (4.0, 0.00015)
    """
    held = [(test, share) for test, share in tests if test is not None]
    total = sum(share for _, share in held)
    found = min(held, key=lambda pair: pair[0].p_value / pair[1])[0]
    least = [(max(test.p_value, 1e-300), share / total) for test, share in held]
    cotangents = (share / math.tan(math.pi * p) for p, share in least if p < 0.5)
    p_value = math.atan2(1.0, sum(cotangents)) / math.pi
    return replace(found, p_value=p_value)


def directions(columns: Tensor, weights: Tensor, most: int) -> Tensor:
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


def score_residual(samples: Samples, F: Tensor) -> Tensor:
    """Return −∂ℓ/∂z at the GLM on directions F, (n, K): y − μ for canonical links."""
    y, w = samples.y.double(), samples.weights.double()
    penalty = torch.full((F.shape[1],), RIDGE / float(w.sum()), dtype=torch.float64)
    penalty[0] = 0.0
    offset = None if samples.offset is None else samples.offset.double()
    beta = fit_glm(samples.family, F, y, w, penalty.to(F), samples.n_outputs, offset=offset)
    z = F @ beta if offset is None else F @ beta + offset
    return -samples.family.gradient(y, z)


def _residual(eta: Tensor, columns: Tensor, weights: Tensor) -> Tensor:
    """Return the residual of a regression of η on the columns, scaled to unit size."""
    F = directions(columns, weights, len(eta) // SAMPLES_PER_DIRECTION)
    root = weights.sqrt()[:, None]
    found = eta - F @ torch.linalg.lstsq(root * F, root * eta, driver="gelsd").solution
    share = (weights / weights.sum())[:, None]
    spread = (share * (eta - (share * eta).sum(dim=0)).square()).sum().sqrt()
    size = (share * found.square()).sum().sqrt()
    return found / size if float(size) > LEAST_RESIDUAL * float(spread) else torch.zeros_like(found)
