"""A latent-row model with drawn parameters, and settings of EM."""

from dataclasses import replace

import torch

from diagatt.solvers import Likelihood, Model
from diagatt.solvers.likelihood.em import EMSettings
from diagatt.solvers.likelihood.latent_rows import LatentRows, ResponseModel, RowModel


def em_settings(**options) -> EMSettings:
    """Return settings of EM, those of `Likelihood` where nothing else is said."""
    return replace(Likelihood().settings(Model()), **options)


def random_model(rng, R, d, q, K=1) -> LatentRows:
    A = torch.from_numpy(rng.standard_normal((R + 1, d, q)))
    half = rng.standard_normal((R + 1, d, d + 2))
    C = torch.from_numpy(half @ half.transpose(0, 2, 1) / d)
    value = torch.from_numpy(rng.standard_normal((R, d, K)))
    return LatentRows(RowModel(A, C), ResponseModel(value, torch.zeros(1, K).double() + 0.3, 0.7))
