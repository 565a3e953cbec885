"""An encoder of rows that is trained with the model, before the solver finishes."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from diagatt.encoders import RowEncoder
from diagatt.encoders.trained import MLP, row_encoder_of, settings_of
from diagatt.solvers.base import Fitted, Model, Solver
from diagatt.solvers.gradient.adam import train_encoder
from diagatt.solvers.gradient.train import start_at_pooled
from diagatt.solvers.problem import Problem, Samples


def trained_encoder(
    encoder: Any, solver: Solver, samples: Samples, model: Model, seed: int, verbose: bool
) -> tuple[RowEncoder, Fitted]:
    """Train an encoder with the attention of a solver; return both.

    Parameters
    ----------
    encoder : MLP or torch module
    solver : Solver
        One that has `joint`.
    samples : Samples
    model : Model
        With one count of heads.
    seed : int
    verbose : bool
    """
    shift, scale = samples.values.mean(dim=0), samples.values.std(dim=0, correction=0)
    scale = torch.where(scale > 0, scale, 1.0)
    standard = replace(samples, values=(samples.values - shift) / scale, missing=None)
    torch.manual_seed(seed)  # the caller keeps the user's generator as it is
    maps = encoder.build(samples.n_features) if isinstance(encoder, MLP) else deepcopy(encoder)
    maps = maps.to(samples.device, samples.dtype)
    with torch.no_grad():
        encoded = replace(standard, values=maps(standard.values))
    if encoded.values.ndim != 2 or len(encoded.values) != samples.n_rows:
        raise ValueError(
            f"the encoder must map rows (N, d) to rows (N, d'), and maps {samples.n_rows} rows to "
            f"the shape {tuple(encoded.values.shape)}."
        )
    joint = solver.joint(encoded, model, seed)
    start_at_pooled(joint.attention, encoded, model.ridge, model.n_heads)
    names = ("max_epochs", "learning_rate", "ridge", "validation_fraction")
    settings = {name: getattr(settings_of(encoder), name) for name in names}
    train_encoder(maps, joint, standard, seed=seed, verbose=verbose, **settings)
    return row_encoder_of(maps, shift, scale), Fitted(joint.attention, solver, [])


def encode_problem(problem: Problem, encoder: RowEncoder) -> Problem:
    """Return the problem with encoded rows, part by part."""

    def change(part: Samples) -> Samples:
        values = torch.from_numpy(encoder(np.asarray(part.values.cpu())))
        return replace(part, values=values.to(part.values), missing=None)

    return problem.changed(change)
