"""Encoders that are trained with the model: a multilayer perceptron, or a torch module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from diagatt.encoders.row_encoder import RowEncoder
from diagatt.encoders.steps import Affine, Dense, Gelu, Relu, Step, Tanh
from diagatt.parameters import Rule, at_least, count, one_of, positive, share

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}
STEP_AFTER: dict[type | None, type[Dense]] = {
    nn.ReLU: Relu,
    nn.Tanh: Tanh,
    nn.GELU: Gelu,
}


@dataclass(eq=False, repr=False)
class MLP(BaseEstimator):
    r"""A multilayer perceptron in front of the rows, trained with the model.

    Standardized rows pass through linear maps with an activation between them,

    .. math:: x ↦ A_L\,σ(A_{L-1} ⋯ σ(A_1 x + b_1) ⋯ + b_{L-1}) + b_L ,

    and the model sees what comes out. Adam minimizes the solver's own objective over the maps and
    the attention together; the epoch with the smallest loss of held-out samples is kept. The solver
    then finishes the attention with the maps fixed.

    Parameters
    ----------
    hidden : tuple of int
        Widths of hidden layers.
    out : int
        Features of encoded rows.
    activation : {"relu", "tanh", "gelu"}
    max_epochs : int
        Passes over the samples.
    learning_rate : float
        Learning rate of Adam.
    ridge : float
        Decay of the maps' weights (AdamW).
    validation_fraction : float
        Share of samples that decide which epoch is kept; with 0 it is the last.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor
    >>> model = DiagAttRegressor(solver="gradient", encoder=MLP(hidden=(32,), out=8))
    >>> model.get_params()["encoder__out"]
    8
    """

    hidden: tuple[int, ...] = (64,)
    out: int = 16
    activation: str = "relu"
    _: KW_ONLY
    max_epochs: int = 50
    learning_rate: float = 3e-3
    ridge: float = 1e-3
    validation_fraction: float = 0.1

    rules: ClassVar[Mapping[str, Rule]] = {
        "hidden": Rule(
            "a tuple of positive whole numbers",
            lambda value: (
                isinstance(value, list | tuple) and all(count(1).accepts(width) for width in value)
            ),
        ),
        "out": count(1),
        "activation": one_of(*ACTIVATIONS),
        "max_epochs": count(1),
        "learning_rate": positive(),
        "ridge": at_least(0),
        "validation_fraction": share(),
    }

    def build(self, n_features: int) -> nn.Sequential:
        """Return the maps with random weights, from torch's generator."""
        widths, layers = [n_features, *self.hidden, self.out], list[nn.Module]()
        for start, end in pairwise(widths):
            layers += [nn.Linear(start, end), ACTIVATIONS[self.activation]()]
        return nn.Sequential(*layers[:-1])


def is_trained(encoder: Any) -> bool:
    """Return whether an encoder is trained with the model."""
    return isinstance(encoder, MLP | nn.Module)


def settings_of(encoder: Any) -> MLP:
    """Return how an encoder is trained: a torch module as `MLP` is by default."""
    return encoder if isinstance(encoder, MLP) else MLP()


def like(module: nn.Module) -> MLP:
    """Return the `MLP` that has the layers of a torch Sequential, for a model file."""
    widths, names = [], []
    for layer in module:  # type: ignore[attr-defined]
        widths += [layer.out_features] if isinstance(layer, nn.Linear) else []
        names += [name for name, kind in ACTIVATIONS.items() if type(layer) is kind]
    made = MLP(tuple(widths[:-1]), widths[-1], names[0] if names else "relu")
    if [type(m) for m in made.build(1)] != [type(m) for m in module]:  # type: ignore[attr-defined]
        raise TypeError(
            "the encoder cannot be saved with the model: its layers are not those of "
            "diagatt.encoders.MLP, a Linear between any two activations of one kind."
        )
    return made


def row_encoder_of(module: nn.Module, shift: Tensor, scale: Tensor) -> RowEncoder:
    """Return a trained module after standardization as an encoder of rows.

    A `Sequential` of Linear, ReLU, Tanh and GELU becomes arrays, which a model file can hold.
    """
    first = Affine(shift=_array(shift), matrix=1 / _array(scale))
    steps = _steps_of(module)
    if steps is None:
        return RowEncoder([], _Unknown(module, first))
    return RowEncoder([first, *steps])


def _steps_of(module: nn.Module) -> list[Step] | None:
    if type(module) is not nn.Sequential:
        return None
    steps, layers = list[Step](), [m for m in module if type(m) is not nn.Identity]
    for k, layer in enumerate(layers):
        if type(layer) is nn.Linear:
            after = layers[k + 1] if k + 1 < len(layers) else None
            kind = STEP_AFTER.get(type(after), Dense) if _is_plain(after) else Dense
            bias = layer.weight.new_zeros(len(layer.weight)) if layer.bias is None else layer.bias
            steps.append(kind(weights=_array(layer.weight).T, bias=_array(bias)))
        elif not (_is_plain(layer) and k > 0 and type(layers[k - 1]) is nn.Linear):
            return None
    return list(steps) or None


def _is_plain(layer: nn.Module | None) -> bool:
    """Whether a layer is one of the activations that a file knows."""
    exact = getattr(layer, "approximate", "none") == "none"
    return type(layer) in STEP_AFTER and exact


def _array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().double().numpy())


class _Unknown:
    """A torch module of the user's own as a transformer of rows; it cannot be saved."""

    def __init__(self, module: nn.Module, first: Affine) -> None:
        self.module, self.first = module.eval(), first
        self.label = f"{type(module).__name__} of torch"

    @torch.no_grad()
    def transform(self, rows: np.ndarray) -> np.ndarray:
        like = next(iter(self.module.parameters()), torch.zeros(()))
        given = torch.from_numpy(np.ascontiguousarray(self.first(rows)))
        return self.module(given.to(like)).cpu().numpy()
