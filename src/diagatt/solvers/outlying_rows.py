r"""Is there any row of interest? A test by outlying rows, which are found without responses.

EM on rows alone (`diagatt.solvers.likelihood`, λ = 0) finds the row of each sample that differs
from its other rows, in the same way in all samples. The pooled row q of a sample then depends on
rows only, so that nothing needs to be held out. Let r be the residual of a regression of q on the
columns of the null model (mean rows, covariates, counts of rows, predictions without attention),
and g the score residual of the GLM on these columns. If there is no row of interest, the sum
:math:`s = \sum_i w_i r_i g_i` has mean 0 and the variance

.. math:: V = \sum_i \frac{w_i^2 g_i^2}{1 - h_i}\, r_i r_i^⊤,

where h are leverages of the columns; the variance of responses need not be constant. If the row
does matter, :math:`V^{-1/2} s` has about the direction of the score of a regression without mean
rows. The part m of that score which mean rows explain is independent of s, so that it indicates the
direction at no cost. The features that matter are often those in which the row differs. With e the
direction of this difference and :math:`u = V^{-1/2} s`,

.. math:: T = ‖u + m‖² + (e^⊤(u + m))²

is compared with its distribution for standard normal u, given m and e. m is shortened to length 2
if it is longer, so that mean rows do not dominate the test. The test is done with and without
predictions among the columns, and the larger p-value counts.

The share of the level that the test deserves beside others depends on whether one row of each
sample differs. Rows tell this without responses: the model with one outlying row must be better
than those in which all rows are alike, and in which each row may differ
(`diagatt.solvers.distinct_rows`).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import expit
from scipy.stats import ncx2, norm
from torch import Tensor

from diagatt.families import get_family
from diagatt.rowmaps import MOST_WIDE, components_of_few_rows, signed, thinned
from diagatt.scores import get_score_form
from diagatt.segments import segment_mean, segment_sum
from diagatt.solvers.base import Model
from diagatt.solvers.distinct_rows import exclusiveness, log_ratios
from diagatt.solvers.existence import (
    SAMPLES_PER_DIRECTION,
    Existence,
    directions,
    score_residual,
)
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.likelihood.em import EM, Expectation
from diagatt.solvers.likelihood.latent_rows import LatentRows
from diagatt.solvers.likelihood.starts import starting_models
from diagatt.solvers.problem import Samples, group_sums, mean_rows

# Shares of the level for this test where another one is made as well: if rows are alike, so that
# only responses tell which of them is active, and if one row of each sample differs.
ALIKE_SHARE, DISTINCT_SHARE = 0.2, 0.85
# Dimensions of rows: at most this many, and at most one for each output and this many samples.
MOST_DIMENSIONS, SAMPLES_PER_DIMENSION = 20, 15
# EM ends after this many passes, or when a sample's log-likelihood gains less than this.
PASSES, TOLERANCE = 40, 1e-3
# Length that m is shortened to, in standard errors.
LONGEST = 2.0
# Longest residual of a pooled row, in units of the median length.
FARTHEST = 2.0
# Leverages are taken as no larger; a sample of leverage 1 has no residual.
MOST_LEVERAGE = 0.95
# Eigenvalues of V below, relative to the largest, are rounding.
LEAST_VARIANCE = 1e-10
# Points at which the distribution of T is integrated.
POINTS = 2000


def outlying_row_test(
    samples: Samples, pooled: Tensor | None, seed: int
) -> tuple[Existence | None, float]:
    """Test whether the outlying row adds to the null model; None if rows do not vary.

    The test comes with its share of the level, which depends on rows only.

    Parameters
    ----------
    samples : Samples
        Their `groups`, if any, are taken as independent of each other.
    pooled : tensor of shape (n, K), optional
        Predictors of models without attention, fitted without the sample.
    seed : int
        Seed of the direction from which EM starts.
    """
    rows = _few_dimensions(samples)
    if rows.n_features == 0:
        return None, ALIKE_SHARE
    probabilities, is_distinct = _outlying(rows, seed)
    share = ALIKE_SHARE + (DISTINCT_SHARE - ALIKE_SHARE) * is_distinct
    q = segment_sum(probabilities * rows.values, rows.offsets)  # (n, m)
    # The longer the sample, the more its most outlying row differs from the others.
    sizes = torch.cat([samples.covariates.double(), samples.row_mass.log()[:, None]], dim=1)
    columns = torch.cat([mean_rows(samples, torch.float64), sizes], dim=1)
    # Predictions out of fold depend on the responses: if rows have outliers, the test with
    # predictions finds rows in noise. The test without them takes nonlinear effects of means for
    # those of a row.
    nulls = [columns] if pooled is None else [columns, torch.cat([columns, pooled.double()], dim=1)]
    without_means, difference = _Regression(samples, sizes), _difference(rows, q)
    p_values = list[float]()
    for null in nulls:
        p_value = _p_value(samples, q, _Regression(samples, null), without_means, difference)
        if p_value is None:
            return None, share
        p_values.append(p_value)
    found = Existence(float(norm.isf(max(p_values))), max(p_values), samples.n_samples, 0)
    return found, share


class _Regression:
    """Regressions on main directions of some columns: of pooled rows, and the responses' GLM."""

    def __init__(self, samples: Samples, columns: Tensor) -> None:
        weights = samples.weights.double()
        F = directions(columns, weights, samples.n_samples // SAMPLES_PER_DIRECTION)
        self._root = weights.sqrt()[:, None]
        self._basis = _basis(self._root * F)
        self.leverage = self._basis.square().sum(dim=1).clamp(max=MOST_LEVERAGE)  # (n,)
        self.residual = score_residual(samples, F)  # (n, K)

    def rest(self, q: Tensor) -> Tensor:
        """Return the residual of q, (n, m)."""
        return q - self._basis @ (self._basis.T @ (self._root * q)) / self._root


def _p_value(
    samples: Samples, q: Tensor, null: _Regression, without_means: _Regression, difference: Tensor
) -> float | None:
    """Return the p-value of T; None if the null model explains pooled rows entirely."""
    s, of_means, V = _scores(samples, q, null, without_means)
    values, vectors = torch.linalg.eigh(V)
    kept = values > LEAST_VARIANCE * values.max().clamp(min=1e-300)
    if not bool(kept.any()):
        return None
    root = vectors[:, kept] * values[kept].sqrt()  # V = root rootᵀ, (mK, k)
    inverse = root / values[kept]
    m = of_means @ inverse
    m = m * min(1.0, LONGEST / max(float(m.norm()), 1e-12))
    outputs = torch.eye(samples.n_outputs).to(root)
    effects = (difference[:, None, None] * outputs).flatten(0, 1)  # (mK, K)
    return _tail(s @ inverse + m, m, _basis(root.T @ effects))


def _few_dimensions(samples: Samples) -> Samples:
    """Return standardized rows, or their main directions where features are many."""
    weights = samples.weights.double()
    most = samples.n_samples // (SAMPLES_PER_DIMENSION * samples.n_outputs)
    values = main_directions(samples.values, max(1, min(MOST_DIMENSIONS, most)))
    none = weights.new_empty(len(weights), 0)
    prior = None if samples.log_prior is None else samples.log_prior.double()
    given = (values, samples.offsets, torch.zeros_like(weights), weights, none)
    return Samples(get_family("gaussian"), *given, log_prior=prior)


def main_directions(values: Tensor, most: int) -> Tensor:
    """Return standardized features of rows, in float64, or their main directions if they are many.

    Examples
    --------
    >>> main_directions(torch.tensor([[0.0, 1.0], [2.0, 1.0]]), 5).shape  # one feature varies
    torch.Size([2, 1])
    """
    if most == 0:
        return values[:, :0].double()
    scale = values.std(dim=0)
    values = ((values - values.mean(dim=0)) / scale)[:, scale > 0]
    if values.shape[1] > min(len(values), MOST_WIDE):
        some = thinned(values, torch.ones(len(values), dtype=torch.float64))[0]
        values = values.double() @ signed(components_of_few_rows(some, most).directions)
    elif values.shape[1] > most:
        first = values.shape[1] - most
        values = values @ torch.linalg.eigh(values.T @ values).eigenvectors[:, first:]
    return values.double()


def _outlying(rows: Samples, seed: int) -> tuple[Tensor, float]:
    """Return the probability of each row to be the outlying one, (N, 1), and if there are any.

    The latter is a weight like Akaike's: the model in which one row differs in its mean and its
    covariance has m + m(m + 1)/2 parameters more than that of rows that are alike, and as many as
    that in which each row may differ.
    """
    em = EM(Expectation(rows, get_score_form("affine")), Likelihood().settings(Model()))
    starts = starting_models(em, rows, np.random.default_rng(seed))
    fits = (_of_rows_alone(em, starts[name][0]) for name in ("outlier", "random"))
    log_likelihood, model = max(fits, key=lambda fit: fit[0])
    alike = em.expect(starts["response"][0], 0.0).log_likelihood
    m = rows.n_features
    gain = (log_likelihood - alike) * rows.n_samples / em.weight  # weights have any unit
    gains = gain - m - m * (m + 1) / 2, exclusiveness(rows, log_ratios(rows, model.rows))
    found = em.expectation.of_part(rows).run(model.rows, model.response, 0.0, keep=True)
    return torch.cat(found.responsibilities), float(expit(min(gains)))


def _of_rows_alone(em: EM, model: LatentRows) -> tuple[float, LatentRows]:
    """Run EM without responses; return the log-likelihood of rows and the model."""
    last = -math.inf
    for _ in range(PASSES):
        expected = em.expect(model, 0.0)
        if expected.log_likelihood - last < TOLERANCE * em.weight:
            break
        last = expected.log_likelihood
        model = em.maximize(expected, model.response)
    return last, model


def _difference(rows: Samples, q: Tensor) -> Tensor:
    """Return the discriminant direction of the rows that differ, (m,)."""
    share = (rows.weights / rows.weights.sum())[:, None]
    mean = segment_mean(rows.values, rows.offsets, log_prior=rows.log_prior)
    shift = (share * (q - mean)).sum(dim=0)[:, None]
    centred = rows.values - (share * mean).sum(dim=0)
    return torch.linalg.lstsq(centred.T @ centred, shift, driver="gelsd").solution[:, 0]


def _scores(
    samples: Samples, q: Tensor, null: _Regression, without_means: _Regression
) -> tuple[Tensor, Tensor, Tensor]:
    """Return s, what it gains in a regression without mean rows, both (mK,), and V."""
    w = samples.weights.double()
    q = _shortened(q, null.rest(q))
    rest = null.rest(q)

    def products(columns: Tensor, g: Tensor) -> Tensor:
        return (w[:, None, None] * columns[:, :, None] * g[:, None]).flatten(1)  # (n, mK)

    scores = products(rest, null.residual)
    of_means = products(without_means.rest(q) - rest, without_means.residual).sum(dim=0)
    spread = scores / (1 - null.leverage).sqrt()[:, None]
    if samples.groups is not None:
        spread = group_sums(spread, samples.groups)
    return scores.sum(dim=0), of_means, spread.T @ spread


def _shortened(q: Tensor, rest: Tensor) -> Tensor:
    """Return pooled rows whose residuals are at most twice as long as the median residual.

    Lengths are in units of the residuals' spread. Sums in which a few terms are large are not
    normally distributed, and any function of rows may be tested.
    """
    reach = (rest @ torch.linalg.pinv(rest.T @ rest, hermitian=True) * rest).sum(dim=1).sqrt()
    return (
        q - rest * (1 - FARTHEST * reach.median() / reach.clamp(min=1e-300)).clamp(min=0)[:, None]
    )


def _basis(columns: Tensor) -> Tensor:
    """Return orthonormal columns that span the same space."""
    U, size, _ = torch.linalg.svd(columns, full_matrices=False)
    return U[:, size > 1e-8 * size.max().clamp(min=1e-300)]


def _tail(moved: Tensor, m: Tensor, E: Tensor) -> float:
    """Return the probability that T is larger than at u + m = `moved`, given m and E."""
    T = float(moved.square().sum() + (E.T @ moved).square().sum())
    along, across = E.shape[1], len(m) - E.shape[1]
    a = max(float((E.T @ m).square().sum()), 1e-9)
    b = max(float(m.square().sum()) - a, 1e-9)
    if along == 0:  # rows differ in their spread only
        return min(max(float(ncx2.sf(T, across, b)), 1e-300), 1 - 1e-16)
    p_value = float(ncx2.sf(T / 2, along, a))
    if across > 0:  # integrate over x = ‖Eᵀ(u + m)‖, at whose square T is reached by itself
        low, high = max(0.0, a**0.5 - 10), min((T / 2) ** 0.5, a**0.5 + along**0.5 + 10)
        step = max(high - low, 0.0) / POINTS
        x = low + step * (np.arange(POINTS) + 0.5)
        density = 2 * x * ncx2.pdf(x**2, along, a)
        p_value += float(np.sum(density * ncx2.sf(T - 2 * x**2, across, b)) * step)
    return min(max(p_value, 1e-300), 1 - 1e-16)
