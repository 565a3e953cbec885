"""Units of a gaussian response: the contest sees mean 0 and variance 1, so that penalties fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.solvers.base import Fitted
from diagatt.solvers.problem import Problem, Samples


@dataclass(frozen=True)
class ResponseUnits:
    """y = mean + scale · y', where y' is what contestants see."""

    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, problem: Problem) -> ResponseUnits:
        """Return mean and spread of a gaussian response; other families have no units."""
        if not problem.family.has_identity_link or problem.family.n_outcomes > 1:
            return cls()  # several outcomes come with unit variances
        weighted = problem.total(lambda part: [(part.weights.double() * part.y.double()).sum()], 0)
        return cls(float(weighted[0]) / problem.total_weight, problem.scale**0.5)

    def scaled(self, problem: Problem) -> Problem:
        """Return the problem in the contestants' units."""
        if self == ResponseUnits():
            return problem

        family = problem.family.in_unit(self.scale)

        def change(part: Samples) -> Samples:
            return replace(part.in_unit(self.scale, self.mean), family=family)

        return problem.changed(change).with_family(family)

    def undone(self, fitted: Fitted, total_weight: float) -> Fitted:
        """Return the fit in the units of y; its modules are changed in place."""
        if self == ResponseUnits():
            return fitted
        covariance, phi = fitted.value_covariance, fitted.dispersion
        log_likelihood = fitted.log_likelihood
        if log_likelihood is not None:
            log_likelihood -= total_weight * math.log(self.scale)
        members = [] if fitted.blend is None else fitted.blend.members_list
        for attention in (fitted.module, *(member.attention for member in members)):
            self.undo(attention)
        return replace(
            fitted,
            dispersion=None if phi is None else phi * self.scale**2,
            value_covariance=None if covariance is None else covariance * self.scale**2,
            log_likelihood=log_likelihood,
        )

    @torch.no_grad()
    def undo(self, attention: DiagonalAttention) -> None:
        """Change a module in place so that it predicts y."""
        for effect in attention.effects():
            effect.mul_(self.scale)
        attention.intercept.add_(self.mean)
