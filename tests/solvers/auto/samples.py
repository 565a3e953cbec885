"""Small problems of every family for the tests of the default."""

import numpy as np
import torch

from diagatt import RaggedRows
from tests.solvers.samples import problem_of


def problem(family="gaussian", n=24, d=2, q=0, seed=0, weights=None, shortest=2, longest=4):
    """Samples whose first row has something to do with the response."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(shortest, longest + 1), d)) for _ in range(n)]
    z = np.array([1.5 * sample[0, 0] for sample in X]) + 0.3 * rng.normal(size=n)
    y = {
        "gaussian": lambda: (z - z.mean()) / z.std(),
        "bernoulli": lambda: (z > 0).astype(float),
        "multinomial": lambda: np.digitize(z, [-0.7, 0.7]).astype(float),
        "poisson": lambda: rng.poisson(np.exp(z / 2)).astype(float),
    }[family]()
    covariates = rng.normal(size=(n, q))
    K = 3 if family == "multinomial" else 1
    return problem_of(RaggedRows.from_samples(X), y, family, K, weights, covariates)


def repeated(samples, counts):
    """Each sample so many times, one after the other."""
    copies = torch.repeat_interleave(torch.arange(samples.n_samples), torch.as_tensor(counts))
    return samples.take(copies)
