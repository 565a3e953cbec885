"""L-BFGS for many problems at once: one call of the objective serves all that are not done."""

from __future__ import annotations

from collections.abc import Callable

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
        Gives values and gradients of the problems whose indices it is told.
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
    x = start.clone()
    running = torch.arange(len(x), device=x.device)
    value, slope = objective(x, running)
    memory = _Memory(x)
    for step in range(max_steps):
        direction = -memory.times(slope[running], running)
        descent = (direction * slope[running]).sum(dim=1)
        uphill = descent >= 0
        direction[uphill] = -slope[running[uphill]]
        descent = (direction * slope[running]).sum(dim=1)
        length = torch.ones_like(descent)
        if step == 0:
            length /= slope[running].norm(dim=1).clamp(min=1.0)
        line = (x[running], value[running], slope[running])
        new_x, new_value, new_slope, moved = _search(
            objective, running, line, direction, descent, length
        )
        memory.remember(running, new_x - x[running], new_slope - slope[running], moved)
        gain = value[running] - new_value
        x[running], value[running], slope[running] = new_x, new_value, new_slope
        done = ~moved | (gain <= tolerance * new_value.abs())
        running = running[~done]
        if not len(running):
            break
    return x


def _search(
    objective: Objective,
    running: Tensor,
    line: tuple[Tensor, Tensor, Tensor],
    direction: Tensor,
    descent: Tensor,
    length: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shorten each step until its value falls enough; return points and which of them moved."""
    x, value, slope = (part.clone() for part in line)
    moved = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    open_ = torch.arange(len(x), device=x.device)
    for _ in range(MOST_TRIALS):
        trial = line[0][open_] + length[open_, None] * direction[open_]
        trial_value, trial_slope = objective(trial, running[open_])
        limit = line[1][open_] + SUFFICIENT * length[open_] * descent[open_]
        good = torch.isfinite(trial_value) & (trial_value <= limit)
        taken = open_[good]
        x[taken], value[taken], slope[taken] = trial[good], trial_value[good], trial_slope[good]
        moved[taken] = True
        open_, trial_value = open_[~good], trial_value[~good]
        if not len(open_):
            break
        # The minimum of the parabola through what is known, between a tenth and a half.
        t, fall = length[open_], descent[open_]
        best = -fall * t.square() / (2 * (trial_value - line[1][open_] - t * fall))
        best = torch.where(torch.isfinite(best), best, 0.1 * t)
        length[open_] = torch.maximum(torch.minimum(best, 0.5 * t), 0.1 * t)
    return x, value, slope, moved


class _Memory:
    """The last steps of every problem, and what they say about its curvature."""

    def __init__(self, x: Tensor) -> None:
        self._like = x
        self._pairs: list[tuple[Tensor, Tensor, Tensor]] = []  # s (M, P), y (M, P), 1/sᵀy (M,)
        self._scale = torch.ones(len(x), 1, dtype=x.dtype, device=x.device)

    def times(self, slope: Tensor, running: Tensor) -> Tensor:
        """Return the approximate inverse Hessians times the slopes (two-loop recursion)."""
        q, factors = slope.clone(), []
        for s, y, inverse in reversed(self._pairs):
            factor = inverse[running] * (s[running] * q).sum(dim=1)
            q -= factor[:, None] * y[running]
            factors.append(factor)
        q = q * self._scale[running]
        for (s, y, inverse), factor in zip(self._pairs, reversed(factors), strict=True):
            back = inverse[running] * (y[running] * q).sum(dim=1)
            q += s[running] * (factor - back)[:, None]
        return q

    def remember(self, running: Tensor, step: Tensor, change: Tensor, moved: Tensor) -> None:
        """Keep the steps along which the slope rose; of the others nothing is learned."""
        product = (step * change).sum(dim=1)
        curved = moved & (product > 1e-10 * step.norm(dim=1) * change.norm(dim=1))
        where = running[curved]
        s, y = torch.zeros_like(self._like), torch.zeros_like(self._like)
        inverse = self._like.new_zeros(len(self._like))
        s[where], y[where], inverse[where] = step[curved], change[curved], 1 / product[curved]
        self._scale[where, 0] = product[curved] / change[curved].square().sum(dim=1)
        self._pairs = [*self._pairs[1 - MEMORY :], (s, y, inverse)]
