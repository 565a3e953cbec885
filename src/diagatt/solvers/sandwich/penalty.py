"""The penalty of a fit, and its gradient and Hessian in all parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.sandwich.parameters import pairs, places_of

#: Penalty of a module and φ, added to the summed loss.
Penalty = Callable[[DiagonalAttention, Tensor], Tensor]


@dataclass(frozen=True)
class Objective:
    """What a fit minimizes besides the loss that its module's readout implies.

    Attributes
    ----------
    penalty : callable
        Of the module and φ, on the scale of the summed loss.
    scores : {"all", "linear", "none"}
        Which parameters of scores were fitted.
    """

    penalty: Penalty
    scores: str = "all"


class _Penalized(nn.Module):
    """Calls the penalty as `functional_call` wants it."""

    def __init__(self, attention: DiagonalAttention, penalty: Penalty) -> None:
        super().__init__()
        self.attention, self.penalty = attention, penalty

    def forward(self, phi: Tensor) -> Tensor:
        return self.penalty(self.attention, phi)


def penalty_of(
    module: DiagonalAttention, log_phi: Tensor, objective: Objective, names: list[tuple], q: int
) -> tuple[Tensor, Tensor]:
    """Return gradient and Hessian of the penalty, (q,) and (q, q)."""
    called = _Penalized(module, objective.penalty)
    state = {name: tensor.detach() for name, tensor in called.named_parameters()}
    places = places_of(names)

    def total(change: Tensor) -> Tensor:
        tensors = {name: tensor.clone() for name, tensor in state.items()}
        phi = log_phi
        for (name, index, _, *kind), place in zip(names, places, strict=True):
            part = change[place]
            if name == "log_phi":
                phi = log_phi + part[0]
            elif name == "value":
                r, k = index
                tensors["attention.value"][r, :, k] = tensors["attention.value"][r, :, k] + part
            elif name == "none_value":
                own = torch.zeros_like(tensors["attention.none_value"])
                own[0, index] = 1.0
                tensors["attention.none_value"] = tensors["attention.none_value"] + part * own
            elif name == "weight":
                a, b = pairs(module, kind[0])
                W = tensors["attention.query_key.weight"]
                flat = torch.zeros_like(W[index]).index_put((a, b), part)
                both = flat + flat.T - torch.diag(flat.diagonal())
                tensors["attention.query_key.weight"] = torch.cat(
                    [W[:index], (W[index] + both)[None], W[index + 1 :]]
                )
            elif name in ("query", "key", "factor"):
                key = f"attention.query_key.{name}"
                W = tensors[key]
                moved = W[index] + part.reshape(W[index].shape)
                tensors[key] = torch.cat([W[:index], moved[None], W[index + 1 :]])
        return functional_call(called, tensors, (phi.exp(),))

    zero = torch.zeros(q, dtype=torch.float64, device=log_phi.device, requires_grad=True)
    value = total(zero)
    if not value.requires_grad:
        return zero.detach(), torch.zeros(q, q).to(zero.detach())
    slope = torch.autograd.grad(value, zero, create_graph=True)[0]
    if not slope.requires_grad:
        return slope, torch.zeros(q, q).to(slope)
    # One line after the other: a batch of them makes torch import for a second.
    lines = [torch.autograd.grad(slope[k], zero, retain_graph=True)[0] for k in range(q)]
    return slope.detach(), torch.stack(lines)
