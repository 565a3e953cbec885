"""Modules that are initialized and trained as `Gradient` does it."""

from dataclasses import replace

import torch

from diagatt import DiagonalAttention
from diagatt.solvers import Gradient, Model
from diagatt.solvers.gradient.adam import train
from diagatt.solvers.gradient.train import Training, start_at_pooled
from tests.models import regressor
from tests.solvers.samples import D


def gradient_regressor(**options):
    return regressor(**{"solver": "gradient", "random_state": 0, **options})


def training(**options) -> Training:
    """Return how to train, as `Gradient` does where nothing else is said."""
    return replace(Gradient().training(Model()), **options)


def adam(**options):
    """Return short training by Adam, without penalties."""
    common = {"optimizer": "adam", "batch_size": 8, "learning_rate": 0.02, "max_epochs": 6}
    return training(**{**common, "ridge": 0.0, "score_ridge": 0.0, **options})


def initialize(module, problem, seed, ridge=0.0, init_scale=0.1):
    """Draw W and start the values at the GLM of mean rows."""
    module.reset_parameters(init_scale, torch.Generator().manual_seed(seed))
    start_at_pooled(module, problem, ridge, module.n_heads)


def trained(problem, how, seed=1, init_scale=0.1, **options):
    """Return a trained module and its history."""
    module = DiagonalAttention(D, **{"n_heads": 2, "score_form": "affine", **options}).double()
    initialize(module, problem, seed, how.ridge, init_scale)
    return module, train(module, problem, how, seed)


def assert_identical(module, other):
    for (name, ours), theirs in zip(
        module.state_dict().items(), other.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name
