"""Samples whose response one row decides, as rows and as a problem for a solver."""

import numpy as np
import torch

from diagatt import RaggedRows
from diagatt.families import get_family
from diagatt.solvers.problem import Samples

D = 3


def ragged(n=40, seed=0, shortest=2, longest=6):
    """Samples whose first row, the largest, decides the response."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(shortest, longest + 1), D)) for _ in range(n)]
    for sample in X:
        sample[0] += 2
    y = np.array([sample[0] @ [1.0, -1.0, 0.5] for sample in X]) + 0.1 * rng.normal(size=n)
    return RaggedRows.from_samples(X), y


def problem_of(X, y, family="gaussian", n_outputs=1, weights=None, covariates=None):
    """The samples as float64 tensors; weights 1 and no covariates by default."""
    n = len(X)
    values, offsets = X.astype(np.float64).to_torch()
    weights = np.ones(n) if weights is None else weights
    covariates = np.zeros((n, 0)) if covariates is None else covariates
    tensors = [torch.as_tensor(np.asarray(a, dtype=float)) for a in (y, weights, covariates)]
    return Samples(get_family(family), values, offsets, *tensors, n_outputs)


def make_problem(n=40, seed=0, weights=None, **options):
    return problem_of(*ragged(n, seed, **options), weights=weights)
