"""Two Gaussian components over rows: scikit-learn's mixture, kept as arrays."""

from __future__ import annotations

import numpy as np
import torch
from sklearn import config_context
from sklearn.mixture import GaussianMixture
from torch import Tensor

from diagatt.segments import BLOCK_ROWS

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


def fit_mixture(values: np.ndarray, covariance_type: str, max_iter: int, seed: int):
    """scikit-learn's mixture of two Gaussians over all rows, as arrays.

    Its numbering of components is arbitrary and differs between fits to a part of the samples and
    to all; here the rarer component comes first, so that a number means the same in both.

    Returns
    -------
    weights (2,), means (2, d), roots of the precisions (2, d, d) with Σ⁻¹ = P Pᵀ, iterations
    """
    mixture = GaussianMixture(
        2, covariance_type=covariance_type, max_iter=max_iter, random_state=seed
    )
    with config_context(array_api_dispatch=False):  # its k-means start is for NumPy alone
        mixture.fit(values)
    d, root = values.shape[1], mixture.precisions_cholesky_
    if covariance_type == "tied":
        root = np.stack([root, root])
    elif covariance_type != "full":  # (2, d), or (2,) if spherical
        root = root.reshape(2, -1, 1) * np.eye(d)
    order = np.argsort(mixture.weights_, kind="stable")
    return mixture.weights_[order], mixture.means_[order], root[order], mixture.n_iter_


def log_odds(
    values: Tensor, weights: np.ndarray, means: np.ndarray, precision_root: np.ndarray
) -> Tensor:
    """Log odds that a row belongs to component 1 rather than 0, (N,).

    They rank rows as posterior probabilities do, also where those have all become 1.
    """
    log_density = values.new_empty(2, len(values), dtype=torch.float64)
    for c in range(2):
        root = torch.as_tensor(precision_root[c]).double()
        shift = torch.as_tensor(means[c]).double() @ root
        constant = float(np.log(weights[c])) + float(root.diagonal().log().sum())
        for start in range(0, len(values), BLOCK_ROWS):
            block = values[start : start + BLOCK_ROWS].double() @ root - shift  # (B, d)
            log_density[c, start : start + len(block)] = constant - 0.5 * block.square().sum(1)
    return log_density[1] - log_density[0]
