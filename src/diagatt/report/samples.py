"""Everything the page shows about samples, read once from a fitted estimator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.kinds.answers import answer
from diagatt.metrics import rmse
from diagatt.ragged import RaggedRows
from diagatt.report.payload import check_boxes, check_images, check_spans

__all__ = ["FAR", "Samples", "collect"]

# A prediction of a number is "far" from its response beyond this many RMSE.
FAR = 2.0


@dataclass(frozen=True)
class Samples:
    """Samples with what the model says about them; arrays over rows are packed as in RaggedRows.

    Attributes
    ----------
    offsets : array (n + 1,)
    weights : array (N, R)
        Attention, the mean over restarts.
    scores : array (N, R) or None
        Scores ψ/τ behind the weights, where the estimator tells them.
    located : array (n, R)
        Row of interest of each head.
    prediction : array (n,)
        Predicted means, or positions in `labels`.
    labels : list of str or None
        Names of the classes, those of the fit first; None for numbers.
    probability : array (n, K) or None
        Of the K classes of the fit.
    y : array (n,) or None
        Responses, in the form of `prediction`.
    ids : list of str
    texts, spans : list of str, array (N, 2); or None
        Row j is ``text[start:stop]``.
    images, boxes : list of uint8 arrays, array (N, 4); or None
        Row j is the patch (top, left, height, width).
    true_rows : list of lists of int, or None
        Empty where a sample's are not known.
    """

    offsets: np.ndarray
    weights: np.ndarray
    scores: np.ndarray | None
    located: np.ndarray
    prediction: np.ndarray
    labels: list[str] | None
    probability: np.ndarray | None
    y: np.ndarray | None
    ids: list[str]
    texts: list[str] | None = None
    spans: np.ndarray | None = None
    images: list[np.ndarray] | None = None
    boxes: np.ndarray | None = None
    true_rows: list[list[int]] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def kind(self) -> str:
        """What a row is: "text" (a span), "image" (a patch) or plain "rows"."""
        return "text" if self.texts is not None else "image" if self.images is not None else "rows"

    @property
    def posterior(self) -> np.ndarray:
        """Attention weight of each located row, (n, R)."""
        packed = self.offsets[:-1, None] + self.located
        return np.take_along_axis(self.weights, packed, axis=0)

    @property
    def ambiguous(self) -> np.ndarray:
        """Whether some head's row has less than half of the weight, (n,)."""
        return np.any(self.posterior < 0.5, axis=1)

    @property
    def confidence(self) -> np.ndarray:
        """Probability of the predicted class; for numbers the least sure head's posterior, (n,)."""
        if self.probability is None:
            return self.posterior.min(axis=1)
        return self.probability.max(axis=1)

    @property
    def error(self) -> np.ndarray | None:
        """Distance ``|y − ŷ|``, or the probability that the true class did not get, (n,)."""
        if self.y is None:
            return None
        if self.probability is None:
            return np.abs(self.y - self.prediction)
        known = np.pad(self.probability, ((0, 0), (0, 1)))  # a class the fit never saw gets 0
        codes = np.minimum(self.y, self.probability.shape[1])
        return 1 - np.take_along_axis(known, codes[:, None], axis=1)[:, 0]

    @property
    def right(self) -> np.ndarray | None:
        """Whether the class is right, or the number within `FAR` RMSE of the response, (n,)."""
        if self.y is None:
            return None
        if self.labels is not None:
            return self.prediction == self.y
        return np.abs(self.y - self.prediction) <= FAR * rmse(self.y, self.prediction)


def collect(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    texts: Sequence[str] | None = None,
    spans: Sequence[Any] | None = None,
    images: Sequence[Any] | None = None,
    boxes: Sequence[Any] | None = None,
    ids: Sequence[Any] | None = None,
    true_rows: Any = None,
    covariates: Any = None,
) -> Samples:
    """Read attention, scores and predictions; parameters as in `write_page`.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    >>> samples = collect(model, data.X, data.y)
    >>> samples.weights.shape, samples.kind
    ((1200, 1), 'rows')
    """
    rows = RaggedRows.coerce(X)
    answers = answer(model, rows, covariates)
    if answers.weights is None:
        raise TypeError(
            f"{type(model).__name__} gives its rows no attention weights, so there is nothing to "
            "shade: use an estimator with an attention method, such as DiagAttClassifier."
        )
    n = len(rows)
    prediction = answers.prediction
    labels, probability, response = None, answers.probability, _responses(y, n)
    if probability is not None:
        names = model.classes_.tolist()
        if response is not None:
            names = list(dict.fromkeys([*names, *response.tolist()]))  # those of the fit first
            code = {name: k for k, name in enumerate(names)}
            response = np.array([code[c] for c in response.tolist()])
        prediction = np.searchsorted(model.classes_, prediction)
        labels = [str(name) for name in names]
    elif response is not None:
        response = response.astype(np.float64)
    weights = np.concatenate(answers.weights)
    return Samples(
        offsets=rows.offsets,
        weights=weights,
        scores=None if answers.scores is None else np.concatenate(answers.scores),
        located=_located(answers.located, rows, weights),
        prediction=prediction,
        labels=labels,
        probability=probability,
        y=response,
        ids=[f"sample {i}" for i in range(n)] if ids is None else _listed(ids, n, "ids"),
        texts=None if texts is None else _listed(texts, n, "texts"),
        spans=check_spans(texts, spans, rows.lengths),
        images=check_images(images, n),
        boxes=check_boxes(images, boxes, rows.lengths),
        true_rows=None if true_rows is None else _true_rows(true_rows, rows.lengths),
    )


def _located(located: np.ndarray, rows: RaggedRows, weights: np.ndarray) -> np.ndarray:
    """One row a head, (n, R); of more rows, those with the largest weights."""
    if located.shape[1] == weights.shape[1]:
        return located
    return np.array([part.argmax(axis=0) for part in np.split(weights, rows.offsets[1:-1])])


def _responses(y: Any, n: int) -> np.ndarray | None:
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}, X has {n} samples: pass one response a sample.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        i = np.flatnonzero(~np.isfinite(y))[0]
        raise ValueError(f"y of sample {i} is {y[i]}: drop the sample, or pass no y.")
    return y


def _listed(values: Sequence[Any], n: int, name: str) -> list[str]:
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries, X has {n} samples: pass one a sample.")
    return [str(value) for value in values]


def _true_rows(true_rows: Any, lengths: np.ndarray) -> list[list[int]]:
    if len(true_rows) != len(lengths):
        raise ValueError(f"true_rows speaks of {len(true_rows)} samples, X has {len(lengths)}.")
    listed = [
        [int(j) for j in rows] if isinstance(rows, Iterable) else [int(rows)] for rows in true_rows
    ]
    for i, (sample, p) in enumerate(zip(listed, lengths, strict=True)):
        if any(not 0 <= j < p for j in sample):
            raise ValueError(f"true_rows of sample {i} are {sample}, but it has rows 0 to {p - 1}.")
    return listed
