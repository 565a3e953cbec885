"""What a model must beat to show that single rows matter: methods that sum up each sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from diagatt.estimators import PooledClassifier, PooledRegressor, PooledSurvival
from diagatt.families import FAMILIES, counts_trials, get_family
from diagatt.metrics.numbers import shares
from diagatt.ragged import RaggedRows

N_TREES = 300
STATISTICS = ("mean", "min", "max", "std")
LEAF = 3  # smallest count of samples in a leaf of survival trees
LEAST_FOLDS = 5  # folds that tune the penalty of mean pooling


@dataclass(frozen=True)
class Task:
    """What is predicted."""

    classes: np.ndarray | None  # sorted; None for numbers
    family: str = "gaussian"
    has_times: bool = False  # whether responses are times to an event, and predictions are risks
    enter_late: bool = False  # whether samples are observed from a time on
    outcomes: tuple[str, ...] = ()  # names of several outcomes; of labels, classes are 0 and 1

    @property
    def orders_classes(self) -> bool:
        """Whether classes are in an order."""
        return self.family in FAMILIES and FAMILIES[self.family].orders_classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the prediction of one sample."""
        if self.outcomes:
            return (len(self.outcomes),)
        return () if self.classes is None else (len(self.classes),)

    def probabilities(self, model: Any, *given: Any, **named: Any) -> np.ndarray:
        """Return class probabilities (n, K) or means (n,); classes the model lacks have 0.

        Of several outcomes, means or probabilities of labels, (n, q).
        """
        if self.outcomes:
            asked = model.predict if self.classes is None else model.predict_proba
            return np.asarray(asked(*given, **named), dtype=np.float64)
        if self.classes is None:
            return np.asarray(model.predict(*given, **named), dtype=np.float64)
        own = np.asarray(model.predict_proba(*given, **named), dtype=np.float64)
        found = np.zeros((len(own), len(self.classes)))
        found[:, np.searchsorted(self.classes, model.classes_)] = own
        return found


@dataclass(frozen=True)
class Part:
    """Samples for training or testing."""

    rows: RaggedRows
    covariates: np.ndarray | None = None  # (n, q)
    y: np.ndarray | None = None
    weights: np.ndarray | None = None  # (n,), of training samples
    exposure: np.ndarray | None = None  # (n,), of counts


def bag_statistics(X: RaggedRows, statistics: tuple[str, ...] = STATISTICS) -> np.ndarray:
    """Return statistics of every feature over the rows of a sample, (n, len(statistics)·d).

    Examples
    --------
    >>> bag_statistics(RaggedRows.from_samples([[[1.0], [3.0]]]))
    array([[2., 1., 3., 1.]])
    """
    starts, weights = X.offsets[:-1], np.ones(X.n_rows) if X.row_weight is None else X.row_weight
    total = np.add.reduceat(weights, starts)[:, None]
    mean = np.add.reduceat(weights[:, None] * X.values, starts) / total
    square = np.add.reduceat(weights[:, None] * X.values**2, starts) / total
    found = {
        "mean": mean,
        "min": np.minimum.reduceat(X.values, starts),
        "max": np.maximum.reduceat(X.values, starts),
        "std": np.sqrt(np.maximum(square - mean**2, 0)),
    }
    return np.hstack([found[name] for name in statistics])


#: Fits to the first part and predicts the second.
Baseline = Callable[[Part, Part, Task, int], np.ndarray]


def mean_pooling(train: Part, test: Part, task: Task, seed: int) -> np.ndarray:
    """Predict by a ridge GLM of standardized mean rows and covariates, tuned by five folds.

    For times to an event it is Cox regression.
    """
    given: dict[str, Any] = {"ridge": "auto", "random_state": seed}
    given["selection"] = min(LEAST_FOLDS, len(train.rows))
    if task.has_times:
        model: Any = PooledSurvival(**given)
    elif task.classes is None:
        model = PooledRegressor(family=task.family, **given)
    else:
        model = PooledClassifier(**given)
    mean, scale = _mean_and_scale(train.rows.values)
    spread = None if train.covariates is None else _mean_and_scale(train.covariates)

    def standardized(part: Part) -> RaggedRows:
        rows = part.rows if part.rows.row_weight is None else _mean_rows(part.rows)
        values = (rows.values - mean) / scale
        if part.covariates is not None and spread is not None:
            Z = (part.covariates - spread[0]) / spread[1]  # the same in all rows of a sample
            values = np.hstack([values, np.repeat(Z, rows.lengths, axis=0)])
        return RaggedRows(values, rows.offsets)

    model.fit(standardized(train), train.y, **_weights(train))
    return task.probabilities(model, standardized(test))


def trees(train: Part, test: Part, task: Task, seed: int) -> np.ndarray:
    """Predict by 300 extremely randomized trees on bag statistics and covariates.

    For times to an event, the trees are those of scikit-survival.
    """
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    if task.has_times:
        from sksurv.ensemble import ExtraSurvivalTrees

        model: Any = ExtraSurvivalTrees(N_TREES, min_samples_leaf=LEAF, random_state=seed)
    else:
        kind = ExtraTreesRegressor if task.classes is None else ExtraTreesClassifier
        model = kind(N_TREES, random_state=seed)

    def features(part: Part) -> np.ndarray:
        own = bag_statistics(part.rows)
        return own if part.covariates is None else np.hstack([own, part.covariates])

    fitted = model.fit(features(train), train.y, **_weights(train))
    return task.probabilities(fitted, features(test))


def one_by_one(method: Baseline, train: Part, test: Part, task: Task, seed: int) -> np.ndarray:
    """Predict several outcomes by a method for one, (n, q)."""
    assert train.y is not None
    alone = replace(task, outcomes=())
    found = []
    for own in train.y.T:
        prediction = method(replace(train, y=own), test, alone, seed)
        found.append(prediction if task.classes is None else prediction[:, 1])
    return np.column_stack(found)


def of_trials(method: Baseline, train: Part, test: Part, task: Task, seed: int) -> np.ndarray:
    """Predict shares of successes by a method for numbers, which is weighted by trials."""
    assert train.y is not None
    trials = train.y.sum(axis=1)
    weights = trials / trials.mean()
    return method(replace(train, y=shares(train.y), weights=weights), test, task, seed)


def per_unit(method: Baseline, train: Part, test: Part, task: Task, seed: int) -> np.ndarray:
    r"""Predict counts by a method for rates, if samples have an exposure e; else as it does.

    A count of mean :math:`e μ` has the Poisson loss of the rate :math:`y/e` with the weight e.
    Rates of overdispersed counts are fitted by the same loss: they are no whole numbers.
    """
    if train.exposure is None or test.exposure is None:
        return method(train, test, task, seed)
    assert train.y is not None
    weights = train.exposure / train.exposure.mean()  # of mean one: penalties keep their meaning
    if train.weights is not None:
        weights = weights * train.weights
    rates = replace(train, y=train.y / train.exposure, weights=weights)
    task = replace(task, family=get_family(task.family).family_of_rates or task.family)
    return method(rates, test, task, seed) * test.exposure


def _weights(part: Part) -> dict[str, np.ndarray]:
    return {} if part.weights is None else {"sample_weight": part.weights}


def _mean_rows(X: RaggedRows) -> RaggedRows:
    """Return samples of one row each: the mean of their rows, weighted by row weights."""
    return RaggedRows.from_rows(bag_statistics(X, ("mean",)))


def _mean_and_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = values.std(axis=0)
    return values.mean(axis=0), np.where(scale > 0, scale, 1)


def baselines_of(task: Task) -> dict[str, Baseline]:
    """Return the available baselines: survival trees need scikit-survival and no late entry.

    Examples
    --------
    >>> list(baselines_of(Task(None)))
    ['mean pooling', 'trees']
    """
    if task.outcomes:
        return {name: partial(one_by_one, method) for name, method in BASELINES.items()}
    if counts_trials(task.family):
        return {"mean pooling": mean_pooling, "trees": partial(of_trials, trees)}
    if task.has_times and (task.enter_late or find_spec("sksurv") is None):
        return {name: method for name, method in BASELINES.items() if name != "trees"}
    return dict(BASELINES)


#: Methods that do not look at single rows, by name.
BASELINES: dict[str, Baseline] = {
    "mean pooling": mean_pooling,
    "trees": trees,
}
