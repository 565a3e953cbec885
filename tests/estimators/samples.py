"""Small samples for the tests of estimators."""

import numpy as np
import torch

from diagatt import RaggedRows


def ragged(n=60, d=3, longest=5, seed=0):
    """Samples of 1 to `longest` rows, at least one of them that long."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=n)
    lengths[0] = longest
    return RaggedRows.from_samples([rng.normal(size=(p, d)) for p in lengths])


def responses(X, kind="gaussian", seed=0):
    """Responses that depend on the mean row, of a family."""
    rng = np.random.default_rng(seed + 100)
    z = np.array([sample.mean(axis=0).sum() for sample in X])
    draws = {
        "gaussian": lambda: z + 0.3 * rng.normal(size=len(X)),
        "poisson": lambda: rng.poisson(np.exp(z / 2)).astype(float),
        "gamma": lambda: rng.gamma(2.0, np.exp(z / 2)),
        "two": lambda: np.where(z + 0.3 * rng.normal(size=len(X)) > 0, "yes", "no"),
        "three": lambda: np.digitize(z + 0.1 * rng.normal(size=len(X)), [-0.4, 0.4]),
    }
    return draws[kind]()


def skewed(n, seed):
    """Rows, responses and active rows; a model of Gaussian rows takes far rows as active."""
    rng = np.random.default_rng(seed)
    X, line, place = rng.exponential(size=(n, 8, 3)) - 1, np.arange(n), rng.integers(8, size=n)
    X[line, place] = 1.3 * X[line, place] + np.array([1.2, -0.8, 0.0])
    return X, X[line, place] @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=n), place


def with_random_parameters(module):
    """A module in float64 whose parameters are all drawn from N(0, 1)."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module
