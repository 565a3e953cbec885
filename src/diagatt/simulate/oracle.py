r"""The Bayes oracle: the posterior of y and of the active rows given X alone.

It is computed from the log density ratio of a sample with active row j against one without,

    ℓ_j = log p(X | j active) − log p(X | no row active),

which for independent Gaussian rows is ``log N(x_j; μ_1 m, σ_1² Σ) − log N(x_j; m, Σ)``, a quadratic
score with an affine term: diagonalized attention with the true parameters. Rows are whitened,
``u = Σ^(−½) x`` and ``c = Σ^(−½) m``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import solve_triangular
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diagatt.localization import top_rows
from diagatt.ragged import RaggedRows
from diagatt.segments import sample_blocks
from diagatt.simulate.parameters import ClassificationParameters, Parameters, RegressionParameters
from diagatt.simulate.sampling import row_blocks, samples_of

_BLOCK_STATES = 2**20  # states in one block: about 50 MB, including what the gradient keeps
_NEVER = -1e30  # log weight of impossible states; unlike −∞, it can be subtracted


@dataclass(frozen=True, eq=False)
class Oracle:
    """Predictions and locations of the Bayes oracle for new samples, without their responses.

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
    ratio = log_density_ratio(X, parameters)  # (N, n_components)
    if isinstance(parameters, ClassificationParameters):
        ratio += np.log([parameters.pi, 1 - parameters.pi])
        # One head on the pairs of row and class: every row counts twice.
        joint = placement_posterior(ratio.reshape(-1, 1), 2 * X.offsets).reshape(-1, 2)
        attention = joint.sum(axis=1, keepdims=True)
        prediction = np.add.reduceat(joint[:, 0], X.offsets[:-1])
    elif isinstance(parameters, RegressionParameters):
        attention = placement_posterior(ratio, X.offsets)
        prediction = _posterior_mean(X, attention, parameters.beta)
    else:
        raise TypeError(f"there is no oracle for {type(parameters).__name__}.")
    return Oracle(prediction, _locate(attention, X.offsets), attention)


def log_density_ratio(X: RaggedRows, parameters: Parameters) -> np.ndarray:
    r"""Return the log density ratio ``ℓ`` of every row and component, (n_rows, n_components).

    Whitened, standardized rows of a sample have correlation ``(1−ρ)I + ρ11ᵀ``, whose inverse is
    ``(I − θ 11ᵀ)/(1−ρ)``, ``θ = ρ/(1−ρ+pρ)``. Making row j active replaces its residual
    ``e_j = u_j − c`` by ``r_j = (u_j − μc)/σ`` and the sum T of the sample's residuals by
    ``T + δ``, ``δ = r_j − e_j``, so the quadratic form grows by
    ``[‖r_j‖² − ‖e_j‖² − θ(2⟨T, δ⟩ + ‖δ‖²)]/(1−ρ)``.
    """
    d, rho, nu = parameters.d, parameters.rho, parameters.degrees_of_freedom
    for what, wrong, remedy in (
        ("t rows", nu is not None, "degrees_of_freedom=None"),
        ("several active rows", parameters.s > 1, "s=1"),
    ):
        if rho > 0 and wrong:
            raise ValueError(
                f"there is no exact oracle for {what} that are correlated within a sample: use "
                f"rho=0 or {remedy}."
            )
    root, sigma = parameters.cholesky(), np.sqrt(parameters.sigma2)
    c = _whiten(parameters.center[None], root)[0]  # (d,)
    if rho > 0:
        total = np.add.reduceat(X.values, X.offsets[:-1], axis=0, dtype=np.float64)
        sums = _whiten(total - np.outer(X.lengths, parameters.center), root)  # (n, d), T
        theta = rho / (1 - rho + X.lengths * rho)  # (n,)
    ratio = np.empty((X.n_rows, len(sigma)))
    for block in row_blocks(X.n_rows, d):
        residual = _whiten(X.values[block] - parameters.center, root)  # (b, d), e
        background = np.einsum("ij,ij->i", residual, residual)
        for k, shift in enumerate(parameters.mu - 1):
            moved = (residual - shift * c) / sigma[k]  # (b, d), r
            active = np.einsum("ij,ij->i", moved, moved)
            if nu is None:
                gain = (background - active) / 2
            else:
                tails = np.log1p(background / (nu - 2)) - np.log1p(active / (nu - 2))
                gain = (nu + d) / 2 * tails
            if rho > 0:
                sample, delta = samples_of(X.offsets, block), moved - residual
                gain += theta[sample] / 2 * np.einsum("ij,ij->i", 2 * sums[sample] + delta, delta)
            ratio[block, k] = gain / (1 - rho) - d * np.log(sigma[k])
    return ratio


def _whiten(rows: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    if root is None:
        return rows
    return solve_triangular(root, rows.T, lower=True, check_finite=False).T


def _posterior_mean(X: RaggedRows, attention: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return ``E[y | X] = Σ_k Σ_j P(S_k = j | X) ⟨x_j, β_k⟩``."""
    fitted = np.empty(X.n_rows)
    for block in row_blocks(X.n_rows, X.n_features):
        fitted[block] = np.einsum("ij,ij->i", X.values[block] @ beta.T, attention[block])
    return np.add.reduceat(fitted, X.offsets[:-1])


def _locate(attention: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the s rows most likely to be active, (n, s), in the order of the heads.

    The expected count of active rows among them is the sum of their probabilities, so no other s
    rows have a larger expected CRLR; one argmax per head could give a row twice.
    """
    s = attention.shape[1]
    located = top_rows(attention.sum(axis=1), offsets, s)
    if s > 1:
        for rows, start in zip(located, offsets[:-1], strict=True):
            place, head = linear_sum_assignment(attention[start + rows], maximize=True)
            rows[head] = rows[place]
    return located


# ---------------------------------------------------------------------- heads on distinct rows


def placement_posterior(log_weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the exact posterior of each head's row, given that heads sit on distinct rows.

    The placement ``(j_1, …, j_s)`` has weight ``exp(Σ_k ℓ[j_k, k])``. If rows are read one after
    the other, the state is the set A of heads already placed: ``2^s`` states instead of ``p^s``
    placements, ``F_t[A] = F_{t−1}[A] + Σ_{k ∈ A} F_{t−1}[A∖k] · exp(ℓ[t, k])``. The posterior is
    the gradient of ``log F_p[all heads]`` by ℓ. All sums have positive terms and are kept as
    logarithms: nothing cancels, nothing overflows.

    Parameters
    ----------
    log_weights : ndarray of shape (n_rows, s)
        ``ℓ``, the log density ratio of each row under each head against the background.
    offsets : ndarray of shape (n_samples + 1,)

    Returns
    -------
    ndarray of shape (n_rows, s)
        Sums to one within each sample and head.

    Examples
    --------
    Row 0 has the largest weight under both heads, and more so under head 1, so that head 0 is
    mostly on another row.

    >>> weights = np.log([[8.0, 64.0], [1.0, 1.0], [1.0, 1.0]])
    >>> placement_posterior(weights, np.array([0, 3])).round(3)
    array([[0.11 , 0.877],
           [0.445, 0.062],
           [0.445, 0.062]])
    """
    posterior = np.empty(log_weights.shape)
    cuts = torch.tensor(offsets)
    for samples, rows in sample_blocks(cuts, max(1, _BLOCK_STATES >> log_weights.shape[1])):
        weights = torch.tensor(log_weights[rows], requires_grad=True)  # (N_b, s)
        total = _log_total(weights, cuts[samples.start : samples.stop + 1] - rows.start)
        posterior[rows] = torch.autograd.grad(total, weights)[0].numpy()
    return posterior


def _log_total(weights: Tensor, offsets: Tensor) -> Tensor:
    """Return the sum over samples of the log weight of all placements of all heads."""
    lengths, order = offsets.diff().sort(descending=True, stable=True)
    starts, s = offsets[:-1][order], weights.shape[1]  # longest first
    states = weights.new_full((2**s, len(lengths)), _NEVER)  # bit k of a state: head k is placed
    states[0] = 0.0
    total = weights.new_zeros(())
    reach = [int((lengths > t).sum()) for t in range(int(lengths[0]))]  # samples with a row t
    by_row = weights[torch.cat([starts[:n] + t for t, n in enumerate(reach)])].split(reach)
    for n, here in zip(reach, by_row, strict=True):  # (n, s)
        total = total + states[-1, n:].sum()
        states = states[:, :n]
        after = [states[0]]
        for placed in range(1, 2**s):
            heads = [k for k in range(s) if placed >> k & 1]
            ways = [states[placed], *(states[placed ^ (1 << k)] + here[:, k] for k in heads)]
            after.append(torch.logsumexp(torch.stack(ways), dim=0))
        states = torch.stack(after)
    return total + states[-1].sum()
