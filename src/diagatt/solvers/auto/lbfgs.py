"""L-BFGS for many problems at once: one call of the objective serves all that are not done.

One problem alone goes to scipy (`diagatt.solvers.lbfgs`), whose line search also looks at the slope
of its trial points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

# Values and gradients (M',), (M', P) of some of the problems, (M', P) and their indices (M',).
Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

MEMORY = 10
# Armijo's condition, and the most trial steps along one direction.
SUFFICIENT, MOST_TRIALS = 1e-4, 12


def minimize_many(objective: Objective, start: Tensor, max_steps: int, tolerance: float) -> Tensor:
    """Minimize M functions of P variables each; every one has its own path and its own end.

    Parameters
    ----------
    objective : callable
        Returns values and gradients of the problems whose indices it is given.
    start : tensor of shape (M, P), float64
    max_steps : int
    tolerance : float
        A problem is done when a step lowers its value by less than this share of it.

    Returns
    -------
    tensor of shape (M, P)

    Examples
    --------
    >>> target = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    >>> def quadratic(x, which):
    ...     return (x - target[which]).square().sum(dim=1), 2 * (x - target[which])
    >>> minimize_many(quadratic, torch.zeros(2, 2, dtype=torch.float64), 100, 1e-12)
    tensor([[1., 2.],
            [3., 4.]], dtype=torch.float64)
    """
    found = start.clone()
    running = torch.arange(len(start), device=start.device)
    x = start
    value, slope = objective(x, running)
    memory = _Memory(x)
    for step in range(max_steps):
        direction = -memory.times(slope)
        descent = (direction * slope).sum(dim=1)
        uphill = descent >= 0
        if bool(uphill.any()):
            direction[uphill] = -slope[uphill]
            descent = (direction * slope).sum(dim=1)
        length = torch.ones_like(descent)
        if step == 0:
            length /= slope.norm(dim=1).clamp(min=1.0)
        line = _Line(x, value, slope, direction, descent)
        new_x, new_value, new_slope, moved = _search(objective, running, line, length)
        memory.remember(new_x - x, new_slope - slope, moved)
        done = ~moved | (value - new_value <= tolerance * new_value.abs())
        x, value, slope = new_x, new_value, new_slope
        if bool(done.any()):
            found[running[done]] = x[done]
            kept = ~done
            running, x, value, slope = running[kept], x[kept], value[kept], slope[kept]
            memory.keep(kept)
        if not len(running):
            break
    found[running] = x
    return found


class _Line(NamedTuple):
    """Where the steps of M problems start, and where they go."""

    x: Tensor  # (M, P)
    value: Tensor  # (M,)
    slope: Tensor  # (M, P)
    direction: Tensor  # (M, P)
    descent: Tensor  # (M,): slope times direction

    def at(self, which: Tensor) -> _Line:
        """Return the lines of some of the problems."""
        return _Line(*(part[which] for part in self))


def _search(
    objective: Objective, running: Tensor, line: _Line, length: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shorten each step until its value falls enough; return points and which of them moved."""
    x, value, slope, good = _trial(objective, running, line, length)
    if bool(good.all()):
        return x, value, slope, good
    moved, open_ = good, torch.nonzero(~good)[:, 0]
    tried = value[open_]
    x[open_], value[open_], slope[open_] = line.x[open_], line.value[open_], line.slope[open_]
    for _ in range(MOST_TRIALS - 1):
        own, t = line.at(open_), length[open_]
        # The minimum of the parabola through the known values, between a tenth and a half.
        best = -own.descent * t.square() / (2 * (tried - own.value - t * own.descent))
        best = torch.where(torch.isfinite(best), best, 0.1 * t)
        length[open_] = torch.maximum(torch.minimum(best, 0.5 * t), 0.1 * t)
        point, tried, its_slope, good = _trial(objective, running[open_], own, length[open_])
        taken = open_[good]
        x[taken], value[taken], slope[taken] = point[good], tried[good], its_slope[good]
        moved[taken] = True
        open_, tried = open_[~good], tried[~good]
        if not len(open_):
            break
    return x, value, slope, moved


def _trial(
    objective: Objective, which: Tensor, line: _Line, length: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return points at these lengths, values and slopes there, and which values fall enough."""
    x = torch.addcmul(line.x, length[:, None], line.direction)
    value, slope = objective(x, which)
    limit = line.value + SUFFICIENT * length * line.descent
    return x, value, slope, torch.isfinite(value) & (value <= limit)


class _Memory:
    """The last steps of every problem, which approximate its curvature.

    The inverse Hessian is kept in the compact form of Byrd, Nocedal and Schnabel (1994):
    H = γI + [S γY] [[R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ], [−R⁻¹, 0]] [S γY]ᵀ, where R is the upper triangle of
    SᵀY and D its diagonal. A product with H is then four products with S and Y.
    """

    def __init__(self, x: Tensor) -> None:
        M, P = x.shape
        # Steps and changes of the slope lie in a ring: the newest replaces the oldest.
        self._steps = x.new_zeros(M, MEMORY, P)
        self._changes = x.new_zeros(M, MEMORY, P)
        self._mixed = x.new_zeros(M, MEMORY, MEMORY)  # SᵀY
        self._squared = x.new_zeros(M, MEMORY, MEMORY)  # YᵀY
        self._scale = x.new_ones(M, 1)  # γ
        self._count = 0

    def keep(self, which: Tensor) -> None:
        """Forget all but some of the problems."""
        self._steps, self._changes = self._steps[which], self._changes[which]
        self._mixed, self._squared = self._mixed[which], self._squared[which]
        self._scale = self._scale[which]

    def _order(self) -> Tensor:
        """Places of the ring from the oldest to the newest."""
        m = min(self._count, MEMORY)
        return torch.arange(self._count - m, self._count, device=self._scale.device) % MEMORY

    def times(self, slope: Tensor) -> Tensor:
        """Return the approximate inverse Hessians times the slopes, (M, P)."""
        if not self._count:
            return slope.clone()
        order = self._order()
        mixed = self._mixed[:, order[:, None], order].triu()
        squared = self._squared[:, order[:, None], order]
        diagonal = mixed.diagonal(dim1=1, dim2=2).clone()[:, :, None]
        # A pair without information is zero, and so is its line: any pivot will do.
        mixed.diagonal(dim1=1, dim2=2).masked_fill_(diagonal[:, :, 0] == 0, 1.0)
        column = slope[:, :, None]
        of_steps = (self._steps @ column)[:, order]  # Sᵀg, (M, m, 1)
        of_changes = (self._changes @ column)[:, order]  # Yᵀg
        gamma = self._scale[:, :, None]
        inner = torch.linalg.solve_triangular(mixed, of_steps, upper=True)  # R⁻¹Sᵀg
        outer = diagonal * inner + gamma * (squared @ inner - of_changes)
        outer = torch.linalg.solve_triangular(mixed.transpose(1, 2), outer, upper=False)
        factors = self._mixed.new_zeros(2, len(slope), 1, MEMORY)
        factors[:, :, 0, order] = torch.stack([outer, inner])[..., 0]
        along, against = factors[0] @ self._steps, factors[1] @ self._changes  # (M, 1, P)
        return self._scale * (slope - against[:, 0]) + along[:, 0]

    def remember(self, step: Tensor, change: Tensor, moved: Tensor) -> None:
        """Keep the steps along which the slope rose; the others carry no information."""
        product = (step * change).sum(dim=1)
        curved = moved & (product > 1e-10 * step.norm(dim=1) * change.norm(dim=1))
        if not bool(curved.all()):
            step, change = step * curved[:, None], change * curved[:, None]
        place = self._count % MEMORY
        self._count += 1
        self._steps[:, place], self._changes[:, place] = step, change
        self._mixed[:, :, place] = (self._steps @ change[:, :, None])[:, :, 0]
        self._mixed[:, place] = (self._changes @ step[:, :, None])[:, :, 0]
        squares = (self._changes @ change[:, :, None])[:, :, 0]
        self._squared[:, :, place] = self._squared[:, place] = squares
        gamma = torch.where(curved, product, 1.0) / squares[:, place].where(curved, 1.0)
        self._scale = torch.where(curved[:, None], gamma[:, None], self._scale)
