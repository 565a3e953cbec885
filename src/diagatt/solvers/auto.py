"""`Auto`: solvers compete on the data, and the winner is fitted to all of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from diagatt.parameters import Rule, one_of, optional
from diagatt.selection import splits
from diagatt.solvers.base import Fitted, Model, Solver, agreed
from diagatt.solvers.checkpoint import Checkpoint
from diagatt.solvers.criteria import response_bic
from diagatt.solvers.gradient import Gradient, Refined
from diagatt.solvers.gradient.train import predictors
from diagatt.solvers.likelihood import Likelihood
from diagatt.solvers.problem import Problem, Samples
from diagatt.solvers.uniform import Uniform

logger = logging.getLogger(__name__)

# Below this many samples a held-out part says too little.
SMALL_SAMPLE = 500
# Samples that the contestants train on, and at most that they are compared on (an eighth of the
# data, if that is less).
CONTEST_SAMPLES, HELD_OUT_SAMPLES = 4000, 20_000

_SEVERAL_SOLVERS = Rule(
    "a sequence of solvers",
    lambda value: (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(contestant, Solver) for contestant in value)
    ),
)


class Auto(Solver):
    """Let several solvers compete, and fit the winner to all samples.

    Parameters
    ----------
    contestants : sequence of solvers, optional
        From simple to complex; by default uniform attention, likelihood, likelihood refined by
        gradient steps, and gradient.
    judge : {"auto", "held_out", "bic"}
        "held_out" takes the simplest contestant that no other beats by more than one standard
        error on a held-out part; "bic" compares Bayesian information criteria of the responses,
        which only contestants that are not refined have; "auto" is "bic" below 500 samples.

    Examples
    --------
    >>> from diagatt.solvers import Auto, Gradient, Uniform
    >>> Auto([Uniform(), Gradient(rank=1)], judge="held_out").judge
    'held_out'
    """

    name = "auto"
    rules: ClassVar[Mapping[str, Rule]] = {
        "contestants": optional(_SEVERAL_SOLVERS),
        "judge": one_of("auto", "held_out", "bic"),
    }

    def __init__(self, contestants: Sequence[Solver] | None = None, judge: str = "auto") -> None:
        self.contestants = contestants
        self.judge = judge

    def _contestants(self) -> list[Solver]:
        if self.contestants is None:
            return [Uniform(), Likelihood(), Refined(), Gradient()]
        return list(self.contestants)

    def refuse(self, problem: Problem, model: Model) -> str | None:
        """Say what the first contestant that cannot serve refuses."""
        reasons = (contestant.refuse(problem, model) for contestant in self._contestants())
        return next((reason for reason in reasons if reason), None)

    def fit(
        self,
        problem: Problem,
        model: Model,
        *,
        seed: int,
        start: Fitted | None = None,
        checkpoint: Checkpoint | None = None,
        verbose: bool = False,
    ) -> Fitted:
        """Compare the contestants, then fit the winner."""
        small = self.judge == "auto" and problem.n_samples < SMALL_SAMPLE
        shared: dict[str, Any] = {"seed": seed, "verbose": verbose}
        if small or self.judge == "bic":
            fits = self._fits(problem, model, start, by_bic=True, **shared)
            bics = [response_bic(fitted, problem) for fitted in fits]
            winner = fits[int(np.argmin(bics))]
            pairs = zip(fits, bics, strict=True)
            report = [{"solver": fitted.solver.name, "bic": bic} for fitted, bic in pairs]
            return replace(winner, report=report + winner.report)
        train, held_out = _contest_samples(problem, seed)
        part, rest = (problem.load(torch.from_numpy(s)) for s in (train, held_out))
        fits = self._fits(part, model, start, by_bic=False, **shared)
        losses = [_sample_losses(fitted, rest) for fitted in fits]
        means = [float(loss.mean()) for loss in losses]
        report = [
            {"solver": fitted.solver.name, "held_out_loss": mean}
            for fitted, mean in zip(fits, means, strict=True)
        ]
        logger.info("held-out losses: %s", report)
        (chosen,) = agreed([torch.tensor(_champion(losses))], problem)
        winner = fits[int(chosen)]
        again: dict[str, Any] = {"start": winner, "checkpoint": checkpoint, **shared}
        if winner.state is None:  # nothing that was learned on the part helps
            again["start"] = start
        fitted = winner.solver.fit(problem, model, **again)
        return replace(fitted, report=report + winner.report)

    def _fits(
        self, problem: Problem, model: Model, start: Fitted | None, by_bic: bool, **shared: Any
    ) -> list[Fitted]:
        """Fit every contestant; one that begins with an earlier one's fit goes on from it."""
        fits: list[Fitted] = []
        for contestant in self._contestants():
            earlier = next((fit for fit in fits if contestant.continues(fit)), None)
            if by_bic and earlier is not None:
                continue
            if earlier is not None:
                fits.append(contestant.finish(earlier, problem, model, **shared))
            else:
                fits.append(contestant.fit(problem, model, start=start, **shared))
        return fits


def _champion(losses: list[Tensor]) -> int:
    """Return the index of the simplest contestant that none of the others beats.

    From simple to complex, a challenger takes over if its samples' losses are smaller by more
    than one standard error of the mean difference.
    """
    champion = 0
    for challenger in range(1, len(losses)):
        gain = losses[champion] - losses[challenger]
        if float(gain.mean()) > float(gain.std()) / len(gain) ** 0.5:
            champion = challenger
    return champion


def _contest_samples(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices of the samples that contestants train on, and that they are compared on."""
    trained = min(CONTEST_SAMPLES, problem.most_in_memory)
    compared = min(HELD_OUT_SAMPLES, problem.most_in_memory)
    generator, n = np.random.default_rng(seed), problem.n_samples
    if n // 8 > compared:  # nothing of the length of n is made
        drawn = generator.choice(n, trained + compared, replace=False)
        return np.sort(drawn[:trained]), np.sort(drawn[trained:])
    train, held_out = next(splits(n, "holdout", seed))
    if len(train) > trained:
        train = np.sort(generator.choice(train, trained, replace=False))
    return train, held_out


def _sample_losses(fitted: Fitted, samples: Samples) -> Tensor:
    weight = samples.weights / samples.weights.mean()
    return weight * samples.family.loss(samples.y, predictors(fitted.module, samples))
