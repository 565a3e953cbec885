r"""The Bayes oracle: what X alone says about y and about the active rows.

It is computed from the log density ratio of a sample with active row j against one without,

    ℓ_j = log p(X | j active) − log p(X | no row active),

which for independent Gaussian rows is ``log N(x_j; μ_1 m, σ_1² Σ) − log N(x_j; m, Σ)``, a quadratic
score with an affine term: diagonalized attention with the true parameters. Rows are whitened,
``u = Σ^(−½) x`` and ``c = Σ^(−½) m``; the ratio then depends on ``‖u‖²`` and ``⟨u, c⟩`` only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import linear_sum_assignment

from diagatt.ragged import RaggedRows
from diagatt.simulate.parameters import ClassificationParameters, Parameters, RegressionParameters
from diagatt.simulate.placement import placement_posterior
from diagatt.simulate.sampling import row_blocks, samples_of

__all__ = ["Oracle", "bayes_oracle", "log_density_ratio"]


@dataclass(frozen=True, eq=False)
class Oracle:
    """What the Bayes oracle says about new samples without seeing their responses.

    Attributes
    ----------
    prediction : ndarray of shape (n,)
        Posterior mean of y; for classification the posterior probability of class 1.
    rows : ndarray of shape (n, s)
        Located rows: the set with the largest expected CRLR, each row assigned to the head to
        which it most likely belongs.
    attention : ndarray of shape (n_rows, s)
        Posterior probability that a row is the active row of each head.
    """

    prediction: np.ndarray
    rows: np.ndarray
    attention: np.ndarray


def bayes_oracle(X: RaggedRows, parameters: Parameters) -> Oracle:
    """Return the exact posterior of the active rows and of the response given X alone.

    Parameters
    ----------
    X : RaggedRows
    parameters : RegressionParameters or ClassificationParameters
    """
    offsets = X.offsets
    ratio = log_density_ratio(X, parameters)  # (N, n_components)
    if isinstance(parameters, ClassificationParameters):
        ratio += np.log([parameters.pi, 1 - parameters.pi])
        joint = _softmax(ratio, offsets)  # (N, 2), jointly over class and row
        attention = joint.sum(axis=1, keepdims=True)
        prediction = np.add.reduceat(joint[:, 0], offsets[:-1])
    elif isinstance(parameters, RegressionParameters):
        one_head = parameters.s == 1
        attention = _softmax(ratio, offsets) if one_head else placement_posterior(ratio, offsets)
        prediction = _posterior_mean(X, attention, parameters.beta)
    else:
        raise TypeError(f"there is no oracle for {type(parameters).__name__}.")
    return Oracle(prediction, _locate(attention, offsets), attention)


def log_density_ratio(X: RaggedRows, parameters: Parameters) -> np.ndarray:
    """Return the log density ratio ``ℓ`` of every row, active against background.

    Returns
    -------
    ndarray of shape (n_rows, n_components)
        One column per entry of ``mu``.
    """
    if parameters.rho > 0:
        no_oracle = (
            "there is no exact oracle for {} that are correlated within a sample: use rho=0 or"
        )
        if parameters.degrees_of_freedom is not None:
            raise ValueError(no_oracle.format("t rows") + " degrees_of_freedom=None.")
        if parameters.s > 1:
            raise ValueError(no_oracle.format("several active rows") + " s=1.")
        return _correlated_ratio(X, parameters)
    root, d, nu = parameters.cholesky(), parameters.d, parameters.degrees_of_freedom
    c, shift = _whiten(parameters.center[None], root)[0], parameters.mu - 1  # (d,), (m,)
    ratio = np.empty((X.n_rows, len(parameters.mu)))
    for block in row_blocks(X.n_rows, d):
        centred = _whiten(X.values[block] - parameters.center, root)  # (b, d), u − c
        background = np.einsum("ij,ij->i", centred, centred)
        # ‖u − μ c‖² from ‖u − c‖² and ⟨u − c, c⟩, for each component: (b, m)
        active = background[:, None] - 2 * np.outer(centred @ c, shift) + shift**2 * (c @ c)
        active /= parameters.sigma2
        ratio[block] = -d / 2 * np.log(parameters.sigma2)
        if nu is None:
            ratio[block] += (background[:, None] - active) / 2
        else:
            tails = np.log1p(background / (nu - 2))[:, None] - np.log1p(active / (nu - 2))
            ratio[block] += (nu + d) / 2 * tails
    return ratio


def _correlated_ratio(X: RaggedRows, parameters: Parameters) -> np.ndarray:
    r"""Return ``ℓ`` if the whitened, standardized rows have correlation ``(1−ρ)I + ρ11ᵀ``.

    The inverse is ``(I − θ 11ᵀ)/(1−ρ)``, ``θ = ρ/(1−ρ+pρ)``. Making row j active replaces its
    residual ``e_j = u_j − c`` by ``r_j = (u_j − μc)/σ`` and the sum T of the sample's residuals by
    ``T + δ``, ``δ = r_j − e_j``, so the quadratic form grows by
    ``[‖r_j‖² − ‖e_j‖² − θ(2⟨T, δ⟩ + ‖δ‖²)]/(1−ρ)``.
    """
    root, d, rho = parameters.cholesky(), parameters.d, parameters.rho
    c = _whiten(parameters.center[None], root)[0]  # (d,)
    sums = _whiten(_residual_sums(X, parameters.center), root)  # (n, d), T
    theta = rho / (1 - rho + X.lengths * rho)  # (n,)
    sigma = np.sqrt(parameters.sigma2)
    ratio = np.empty((X.n_rows, len(parameters.mu)))
    for block in row_blocks(X.n_rows, d):
        sample = samples_of(X.offsets, block)
        residual = _whiten(X.values[block] - parameters.center, root)  # (b, d), e
        norm = np.einsum("ij,ij->i", residual, residual)
        for k, shift in enumerate(parameters.mu - 1):
            active = (residual - shift * c) / sigma[k]  # (b, d), r
            delta = active - residual
            growth = np.einsum("ij,ij->i", active, active) - norm
            cross = np.einsum("ij,ij->i", 2 * sums[sample] + delta, delta)
            growth -= theta[sample] * cross
            ratio[block, k] = -d * np.log(sigma[k]) - growth / (2 * (1 - rho))
    return ratio


def _residual_sums(X: RaggedRows, center: np.ndarray) -> np.ndarray:
    """Return ``Σ_j (x_j − center)`` of each sample, (n, d), always in float64."""
    sums = np.zeros((len(X), X.n_features))
    for block in row_blocks(X.n_rows, X.n_features):
        sample, first = np.unique(samples_of(X.offsets, block), return_index=True)
        sums[sample] += np.add.reduceat(X.values[block] - center, first, axis=0)
    return sums


def _whiten(rows: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    if root is None:
        return rows
    return solve_triangular(root, rows.T, lower=True, check_finite=False).T


def _softmax(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the softmax over all entries of a sample, rows and columns together, (N, m)."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    highest = np.maximum.reduceat(scores.max(axis=1), starts)
    weights = np.exp(scores - np.repeat(highest, lengths)[:, None])
    totals = np.add.reduceat(weights.sum(axis=1), starts)
    return weights / np.repeat(totals, lengths)[:, None]


def _posterior_mean(X: RaggedRows, attention: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return ``E[y | X] = Σ_k Σ_j P(S_k = j | X) ⟨x_j, β_k⟩``."""
    fitted = np.empty(X.n_rows)
    for block in row_blocks(X.n_rows, X.n_features):
        fitted[block] = np.einsum("ij,ij->i", X.values[block] @ beta.T, attention[block])
    return np.add.reduceat(fitted, X.offsets[:-1])


def _locate(attention: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the s rows most likely to be active, (n, s), in the order of the heads.

    The expected number of active rows among them is the sum of their probabilities, so no other s
    rows have a larger expected CRLR; one argmax per head could name a row twice.
    """
    s = attention.shape[1]
    starts, lengths = offsets[:-1], np.diff(offsets)
    chance = attention.sum(axis=1)
    chosen = np.empty((len(lengths), s), dtype=np.int64)  # packed positions
    for k in range(s):
        highest = np.repeat(np.maximum.reduceat(chance, starts), lengths)
        candidates = np.flatnonzero(chance == highest)
        chosen[:, k] = candidates[np.searchsorted(candidates, starts)]  # the first of each sample
        chance[chosen[:, k]] = -1.0  # not again
    if s > 1:
        for i, rows in enumerate(chosen):
            place, head = linear_sum_assignment(attention[rows], maximize=True)
            chosen[i, head] = rows[place]
    return chosen - starts[:, None]
