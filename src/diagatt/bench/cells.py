"""One cell of the bench: a method is fitted to one split of one set, predicts, and is scored."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diagatt.bench.confined import Limits, measured, run_confined, warm_up
from diagatt.bench.methods import Method, accepts, get_method
from diagatt.bench.sets import BagSet, fingerprint, load_set, n_splits, split
from diagatt.datasets.bags import Bags
from diagatt.metrics import class_scores, number_scores
from diagatt.ragged import RaggedRows
from diagatt.studies.scenarios import Scenario

#: Scores with the count of digits to print; the first that a task has is its main one.
SCORES = {"auc": 3, "accuracy": 3, "r2": 3, "log_score": 3, "located": 2, "ece": 3}


def score(
    bags: Bags, test: np.ndarray, prediction: np.ndarray, located: np.ndarray | None
) -> dict[str, float]:
    """Return every score that the task has.

    Parameters
    ----------
    bags : Bags
    test : int array of shape (m,)
        Test samples.
    prediction : array of shape (m, n_classes) or (m,)
        Probabilities in the order of sorted classes, or expected responses.
    located : array of shape (m,), optional
        The located row of each test sample.
    """
    if bags.classifies:
        index = np.unique(bags.y, return_inverse=True)[1]
        found = class_scores(index[test], prediction)
    else:
        found = number_scores(bags.y[test], prediction, bags.family)
    if located is not None and bags.row_labels is not None:
        share = located_share([bags.key_rows()[i] for i in test], located)
        found |= {"located": share} if share is not None else {}
    return found


def located_share(true_rows: list[np.ndarray], located: np.ndarray) -> float | None:
    """Return the share of samples with key rows in which a key row is located; None without any.

    Examples
    --------
    >>> located_share([np.array([2]), np.array([]), np.array([0, 1])], np.array([2, 5, 3]))
    0.5
    """
    hits = [row in rows for rows, row in zip(true_rows, located, strict=True) if len(rows)]
    return float(np.mean(hits)) if hits else None


def as_probabilities(prediction: Any, n_classes: int) -> np.ndarray:
    """Return (m, n_classes) probabilities; a vector is that of class 1."""
    p = np.asarray(prediction, dtype=np.float64)
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    if p.shape[1] != n_classes or not np.isfinite(p).all():
        raise ValueError(f"probabilities have shape {p.shape} or are not finite.")
    return p


@dataclass(frozen=True)
class OnBags(Scenario):
    """Methods on a set of bags; a replication is a split.

    With `shuffled`, responses are permuted within every training part and within every test part,
    before anything is fitted: a method that then predicts better than chance has used test
    responses. If those of the test part were left unchanged, correct methods would be far from an
    AUC of 0.5, on either side, wherever classes differ along few directions: a direction fitted
    to noise separates them, too. Replications beyond the last split permute the same parts again.
    """

    chosen: BagSet
    limits: Limits = field(default_factory=Limits)
    shuffled: bool = False

    @property
    def name(self) -> str:
        """Name of the set."""
        return f"{self.chosen.name}~permuted" if self.shuffled else self.chosen.name

    def reason_to_skip(self) -> str | None:
        """Return why the set cannot be loaded here, or None."""
        try:
            load_set(self.chosen)
        except (ImportError, OSError) as error:
            return str(error)
        return None

    def parameters(self, method: str, scale: float) -> dict[str, Any]:
        """Return what a result depends on, for its key; limits are not part of it."""
        chosen = {"source": self.chosen.source, "options": dict(self.chosen.options)}
        if "." in self.chosen.source:  # the key of a file is its content, not its place
            chosen["source"] = fingerprint(load_set(self.chosen))
        return {"set": chosen, "method": get_method(method).described()}

    def run(self, method: str, replication: int, scale: float) -> dict[str, Any]:
        """Fit and test in a process of its own; a failure is a result with its reason."""
        bags, chosen = load_set(self.chosen), get_method(method)
        number = replication % n_splits(self.chosen) if self.shuffled else replication
        train, test = split(self.chosen, number)
        if self.shuffled:
            bags = _permuted(bags, (train, test), seed=replication)
        warm_up(method, bags.task)
        found = run_confined(
            lambda: answer(chosen, bags, train, test, seed=replication), self.limits
        )
        names = {"failed", "prediction", "rows"} & set(found)
        details: dict[str, Any] = {name: found.pop(name) for name in names}
        if "failed" in details:
            details["seconds_allowed"] = self.limits.seconds
        return found | {"seconds": found.get("fit_seconds"), "details": details}


def answer(
    method: Method, bags: Bags, train: np.ndarray, test: np.ndarray, seed: int
) -> dict[str, Any]:
    """Return scores, seconds, memory and the predictions themselves, rounded.

    Rows are standardized by means and standard deviations of the training rows if the method
    requires it.
    """
    model = method.make(bags.task, bags.family, seed)
    X_train, X_test = bags.X[train], bags.X[test]
    known: dict[str, Any] = {}
    known_test: dict[str, Any] = {}
    if bags.covariates is not None:
        Z = _standardized(bags.covariates, bags.covariates[train])
        if getattr(model, "takes_covariates", False):
            known["covariates"], known_test["covariates"] = Z[train], Z[test]
        else:
            X_train, X_test = _appended(X_train, Z[train]), _appended(X_test, Z[test])
    if method.standardizes:
        rows = X_train.values
        X_test = X_test.with_values(_standardized(X_test.values, rows))
        X_train = X_train.with_values(_standardized(rows, rows))
    if bags.groups is not None and accepts(model.fit, "groups"):
        known["groups"] = bags.groups[train]

    _, fit_seconds, megabytes = measured(lambda: model.fit(X_train, bags.y[train], **known))
    predict = model.predict_proba if bags.classifies else model.predict
    prediction, predict_seconds, _ = measured(lambda: predict(X_test, **known_test))
    prediction = np.asarray(prediction, dtype=np.float64)
    if bags.classifies:
        prediction = as_probabilities(prediction, len(np.unique(bags.y)))
    elif not np.isfinite(prediction).all():
        raise ValueError("predictions are not finite.")
    located = np.asarray(model.locate(X_test)) if hasattr(model, "locate") else None
    found: dict[str, Any] = dict(score(bags, test, prediction, located))
    found |= {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds, "peak_mb": megabytes}
    found["prediction"] = _rounded(prediction)
    if located is not None:
        found["rows"] = located.astype(int).tolist()
    return found


def _permuted(bags: Bags, parts: tuple[np.ndarray, ...], seed: int) -> Bags:
    """Return bags whose responses are permuted within each part."""
    generator = np.random.default_rng((seed, 7))
    y = bags.y.copy()
    for part in parts:
        y[part] = generator.permutation(y[part])
    return replace(bags, y=y)


def _standardized(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Subtract means and divide by standard deviations of the reference; constants become 0."""
    scale = reference.std(axis=0)
    return (values - reference.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def _appended(X: RaggedRows, Z: np.ndarray) -> RaggedRows:
    """Return rows with the covariates of their sample behind them."""
    return X.with_values(np.hstack([X.values, np.repeat(Z, X.lengths, axis=0)]))


def _rounded(prediction: np.ndarray) -> list[Any]:
    """Return plain numbers with five significant digits; for two classes those of the second."""
    kept = prediction[:, 1] if prediction.ndim == 2 and prediction.shape[1] == 2 else prediction
    return json.loads(json.dumps(kept.tolist()), parse_float=lambda t: float(f"{float(t):.5g}"))
