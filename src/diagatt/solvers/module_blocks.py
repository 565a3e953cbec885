"""Running an attention module over many samples, a block of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from diagatt.solvers.problem import Problem


class BlockModule(Protocol):
    """A torch module whose predictors are ``features @ value + intercept``.

    It says how many samples go through it at once (`block_sizes`) and what its penalty is.
    """

    value: nn.Parameter
    intercept: nn.Parameter

    def __call__(self, values: Tensor, offsets: Tensor) -> Tensor:
        """Linear predictors of packed samples, (n, K)."""

    def features(self, values: Tensor, offsets: Tensor) -> Tensor:
        """What the values weigh, (n, P)."""

    def block_sizes(self, offsets: Tensor) -> list[int]:
        """Numbers of samples of each block."""

    def penalty(self, ridge: float, score_ridge: float) -> Tensor:
        """Penalty on values and on what makes the scores."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """All parameters."""

    def to(self, *args: Any) -> Any:
        """Cast in place."""


def blocks(module: BlockModule, offsets: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Samples, their rows and their own offsets, block by block."""
    start = 0
    for size in module.block_sizes(offsets):
        cuts = offsets[start : start + size + 1]
        yield slice(start, start + size), slice(int(cuts[0]), int(cuts[-1])), cuts - cuts[0]
        start += size


@torch.no_grad()
def in_blocks(
    module: BlockModule,
    values: Tensor,
    offsets: Tensor,
    function: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Linear predictors, or another function of samples, block by block; one after the other."""
    function = module if function is None else function
    return torch.cat([function(values[rows], cuts) for _, rows, cuts in blocks(module, offsets)])


def backward(module: BlockModule, problem: Problem, total_weight: Tensor | float) -> Tensor:
    """Add the gradient of Σ w ℓ(y, z) / total_weight, block by block; return Σ w ℓ.

    The gradient of many samples thus needs the memory of one block.
    """
    total = problem.y.new_zeros(())
    for samples, rows, cuts in blocks(module, problem.offsets):
        losses = problem.family.loss(problem.y[samples], module(problem.values[rows], cuts))
        loss = (problem.weights[samples] * losses).sum()
        (loss / total_weight).backward()
        total += loss.detach()
    return total
