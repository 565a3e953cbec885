"""Cross-validation of a model next to baselines on the same folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diagatt.certainty import NoRowOfInterestWarning
from diagatt.coerce import class_weights
from diagatt.kinds import Inputs
from diagatt.metrics import (
    COSTS,
    NAMES,
    class_scores,
    concordance,
    number_scores,
    outcome_scores,
)
from diagatt.missing import completed, fit_row_gaussian
from diagatt.resampling import paired_interval
from diagatt.survival_metrics import survival_scores
from diagatt.validation.baselines import Part, Task, baselines_of, per_unit

OURS = "diagatt"
#: Scores between 0 and 1.
SHARES = ("auc", "accuracy", "balanced_accuracy", "concordance", "uno_concordance")


@dataclass(frozen=True)
class Validation:
    """Predictions of every method for samples that it was not fitted to.

    Attributes
    ----------
    task : Task
    y : array of shape (n,), or (n, q) of several outcomes
        Responses; of classes, columns of the probabilities.
    fold : int array of shape (n,)
        The fold in which a sample was held out.
    predictions : dict of arrays of shape (n, n_classes), (n,) or (n, q)
        Probabilities or means, by method.
    found_rows : list of bool or None
        Whether a row of interest was found, by fold.
    """

    task: Task
    y: np.ndarray
    fold: np.ndarray
    predictions: dict[str, np.ndarray]
    found_rows: list[bool | None] = field(default_factory=list)

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    def scores(self, method: str) -> dict[str, dict[int, float]]:
        """Return every score of a method by fold; a fold without a class has no AUC."""
        found: dict[str, dict[int, float]] = {}
        for k in range(self.n_folds):
            here = self.fold == k
            y, prediction = self.y[here], self.predictions[method][here]
            if self.task.has_times:
                values = _time_scores(y, prediction)
            elif self.task.outcomes:
                labels = self.task.classes is not None
                given = (self.task.outcomes, self.task.family, labels)
                values = outcome_scores(y, prediction, *given)
            elif self.task.classes is None:
                values = number_scores(y, prediction, self.task.family)
            else:
                values = class_scores(y, prediction, self.task.orders_classes)
            for name, value in values.items():
                if not np.isnan(value):  # a fold without events has no concordance
                    found.setdefault(name, {})[k] = value
        order = [name for name in NAMES if name in found]
        return {name: found[name] for name in [*order, *(n for n in found if n not in NAMES)]}

    @property
    def main(self) -> str:
        """The score by which methods are compared first."""
        return next(iter(self.scores(OURS)))

    def interval(self, method: str, score: str) -> tuple[float, float, float]:
        """Return a score's mean over folds with its corrected resampled t interval."""
        return paired_interval(list(self.scores(method)[score].values()), self._share)

    def difference(self, other: str, score: str) -> tuple[float, float, float]:
        """Return by how much our model is better than another, with the same interval."""
        ours, theirs = (self.scores(method)[score] for method in (OURS, other))
        sign = -1 if score.partition(": ")[0] in COSTS else 1
        gaps = [sign * (ours[k] - theirs[k]) for k in ours if k in theirs]
        return paired_interval(gaps, self._share)

    @property
    def _share(self) -> float:
        return 1 / (self.n_folds - 1)

    def verdict(self) -> str:
        """Say in a sentence whether single rows matter."""
        score, others = self.main, [m for m in self.predictions if m != OURS]
        differences = {m: self.difference(m, score) for m in others}
        if not any(np.any(gap) for gap in differences.values()):  # all ranked perfectly, say
            score = "uno_concordance" if self.task.has_times else "log_score"
            differences = {m: self.difference(m, score) for m in others}
        _, low, high = differences["mean pooling"]
        if low > 0:
            start = "Single rows matter"
        elif high < 0:
            start = "Single rows do not help here"
        else:
            start = "These folds do not show that looking at single rows predicts better"
        width = 1.0 if score.partition(": ")[0] in SHARES else np.inf  # of two scores from 0 to 1
        gaps = [
            f"{_gap(*np.clip(gap, -width, width))} against {method}"
            for method, gap in differences.items()
        ]
        said = f"{start}: the difference in {NAMES[score]} is {', '.join(gaps)}."
        better = [method for method, (_, _, high) in differences.items() if high < 0]
        return said + (f" {better[-1].capitalize()} predict better." if "trees" in better else "")


def _gap(mean: float, low: float, high: float) -> str:
    mean, low, high = (round(x, 3) + 0.0 for x in (mean, low, high))  # no -0.000
    return f"{mean:+.3f} (95 % interval {low:+.3f} to {high:+.3f})"


def cross_validate(
    inputs: Inputs,
    make: Callable[[int], Any],
    task: Task,
    fold: np.ndarray,
    *,
    seed: int = 0,
    advance: Callable[..., None] = lambda note=None: None,
    class_weight: str | None = None,
) -> Validation:
    """Fit and predict every fold with a model and the baselines.

    Parameters
    ----------
    inputs : Inputs
        Samples in memory, with responses.
    make : callable
        Function that returns the unfitted model for a count of samples.
    task : Task
    fold : int array of shape (n,)
        The fold in which each sample is held out; see `diagatt.resampling.draw_folds`.
    seed : int
        Seeds the baselines.
    advance : callable
        Called with a note after every fit.
    class_weight : "balanced", optional
        All classes have the same weight in the fits, but not in the scores.
    """
    others = baselines_of(task)
    predictions = {name: np.empty((len(inputs), *task.shape)) for name in (OURS, *others)}
    found_rows: list[bool | None] = []
    for k in range(int(fold.max()) + 1):
        tested = np.flatnonzero(fold == k)
        train, test = inputs.take(np.flatnonzero(fold != k)), inputs.take(tested)
        model = _quiet(make(len(train)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRowOfInterestWarning)  # `found_rows` says it
            inputs.kind.fit(model, train, class_weight)
        given = {} if test.covariates is None else {"covariates": test.named_covariates}
        given |= test.known
        predictions[OURS][tested] = task.probabilities(model, test.X, **given)
        inner = getattr(model, "estimator_", model)
        # Only the contest judges out of fold whether attention helped.
        compared = len(getattr(inner, "contest_", ())) > 0
        found_rows.append(inner.has_row_of_interest_ if compared else None)
        advance(f"fold {k + 1}: {OURS}")
        rows = model.rows if hasattr(model, "rows") else (lambda X: X)
        weights = class_weights(class_weight, train.y, None, len(train))
        parts = [
            Part(rows(part.X), part.covariates, part.y, own, part.known.get("exposure"))
            for part, own in ((train, weights), (test, None))
        ]
        if any(np.isnan(part.rows.values).any() for part in parts if not part.rows.is_sparse):
            parts = _imputed(*parts)
        for name, baseline in others.items():
            predictions[name][tested] = per_unit(baseline, *parts, task, seed)  # type: ignore[call-arg, arg-type]
            advance(f"fold {k + 1}: {name}")
    assert inputs.y is not None
    y = inputs.y
    if task.classes is not None and not task.outcomes:
        y = np.searchsorted(task.classes, y)
    return Validation(task, y, fold, predictions, found_rows)


def _imputed(train: Part, test: Part) -> list[Part]:
    """Return samples whose missing entries a Gaussian of the training rows imputes."""
    found = fit_row_gaussian(train.rows.values)
    given = found.mean.numpy()[None], found.covariance.numpy()[None]
    return [replace(part, rows=completed(part.rows, *given)) for part in (train, test)]


def _time_scores(y: np.ndarray, risk: np.ndarray) -> dict[str, float]:
    """Return concordances of risks with times to an event."""
    names = y.dtype.names or ()
    event, ends = y["event"], y["time" if "time" in names else "stop"]
    if "start" in names:  # weights against censoring do not know late entries
        return {"concordance": concordance(event, ends, risk)}
    return survival_scores(event, ends, risk)


def _quiet(model: Any) -> Any:
    """Switch off the progress bars of a model and its parts: the folds have a bar of their own."""
    names = [name for name in model.get_params() if name.split("__")[-1] == "verbose"]
    return model.set_params(**dict.fromkeys(names, False))
