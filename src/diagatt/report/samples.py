"""Everything the page shows about samples, read once from a fitted estimator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt import coerce
from diagatt.coerce import offsets_from, row_name
from diagatt.kinds.answers import Answers, answer
from diagatt.lifetimes import read_times
from diagatt.metrics import rmse
from diagatt.stores.reading import opened, row_ids, row_lengths

# A predicted number is "near" its response within this many RMSE, else "far" from it.
NEAR = 2.0


@dataclass(frozen=True)
class Samples:
    """Samples with what the model says about them; arrays over rows are packed as in RaggedRows."""

    #: Where samples begin and end, (n + 1,).
    offsets: np.ndarray
    #: Attention, the mean over restarts, (N, R).
    weights: np.ndarray
    #: Scores ψ/τ behind the weights, (N, R), if the estimator has them.
    scores: np.ndarray | None
    #: Row of interest of each head, (n, R).
    located: np.ndarray
    #: Predicted means, or positions in `labels`, (n,).
    prediction: np.ndarray
    #: Names of the classes, those of the fit first; None for numbers.
    labels: list[str] | None
    #: Probabilities of the K classes of the fit, (n, K).
    probability: np.ndarray | None
    #: Responses in the form of `prediction`, (n,).
    y: np.ndarray | None
    ids: list[str]
    texts: list[str] | None = None
    #: Row j is ``text[start:stop]``, (N, 2).
    spans: np.ndarray | None = None
    images: list[np.ndarray] | None = None
    #: Row j is the patch (top, left, height, width), (N, 4).
    boxes: np.ndarray | None = None
    #: Rows known to matter; an empty list where they are not known.
    true_rows: list[list[int]] | None = None
    #: Ids of the rows, (N,) of str.
    row_ids: np.ndarray | None = None
    #: Times to an event, (n, 3): entry, and the times between which the event lies.
    times: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def kind(self) -> str:
        """What a row is: "text" (a span), "image" (a patch) or plain "rows"."""
        return "text" if self.texts is not None else "image" if self.images is not None else "rows"

    @property
    def packed_located(self) -> np.ndarray:
        """Position of each located row among the rows of all samples, (n, R)."""
        return self.offsets[:-1, None] + self.located

    @property
    def posterior(self) -> np.ndarray:
        """Attention weight of each located row, (n, R)."""
        return np.take_along_axis(self.weights, self.packed_located, axis=0)

    @property
    def ambiguous(self) -> np.ndarray:
        """Whether some head's row has less than half of the weight, (n,)."""
        return np.any(self.posterior < 0.5, axis=1)

    @property
    def confidence(self) -> np.ndarray:
        """Probability of the predicted class; for numbers the smallest attention, (n,)."""
        if self.probability is None:
            return self.posterior.min(axis=1)
        return self.probability.max(axis=1)

    @property
    def error(self) -> np.ndarray | None:
        """Distance ``|y − ŷ|``, or one minus the probability of the true class, (n,)."""
        if self.y is None:
            return None
        if self.probability is None:
            return np.abs(self.y - self.prediction)
        padded = np.pad(self.probability, ((0, 0), (0, 1)))  # 0 for a class the fit never saw
        codes = np.minimum(self.y, self.probability.shape[1])
        return 1 - np.take_along_axis(padded, codes[:, None], axis=1)[:, 0]

    @property
    def right(self) -> np.ndarray | None:
        """Whether the class is right, or the number within `NEAR` RMSE of the response, (n,)."""
        if self.y is None:
            return None
        if self.labels is not None:
            return self.prediction == self.y
        return np.abs(self.y - self.prediction) <= NEAR * rmse(self.y, self.prediction)


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
    exposure: Any = None,
    offset: Any = None,
) -> Samples:
    """Read attention, scores and predictions of the samples from a fitted model.

    Parameters
    ----------
    model : fitted estimator with `attention`, `locate` and `predict`
    X : samples, in memory or a `RowStore`
    y : array of shape (n,), optional
        Responses: with them, the page separates right from wrong predictions and shows metrics.
        For times to an event, the model predicts risks, and only their order is compared.
    texts, spans : n strings, and for each an integer array of shape (p_i, 2); optional
        Row j of a sample is ``text[start:stop]``; an empty span is a row without text.
    images, boxes : n uint8 arrays (h, w) or (h, w, 3), and for each (p_i, 4); optional
        Row j of a sample is the patch (top, left, height, width), in pixels.
    ids : n names of samples, optional
    true_rows : array of shape (n, s), or n collections of row indices; optional
        Rows known to matter: they are marked, and the localization rate is shown.
    covariates : array of shape (n, q), optional
        Needed if the model was fitted with covariates.
    exposure, offset : array of shape (n,), optional
        As in `predict`, for responses that have one.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    >>> samples = collect(model, data.X, data.y)
    >>> samples.weights.shape, samples.kind
    ((1200, 1), 'rows')
    """
    rows = opened(X)
    known = {"exposure": exposure, "offset": offset}
    known = {name: given for name, given in known.items() if given is not None}
    answers = answer(model, rows, covariates, known)
    if answers.weights is None:
        raise TypeError(
            f"{type(model).__name__} gives its rows no attention weights, so there is nothing to "
            "shade: use an estimator with an attention method, such as DiagAttClassifier."
        )
    if texts is not None and images is not None:
        raise ValueError("a sample is shown as text or as image: pass texts or images, not both.")
    n = len(rows)
    prediction, times = answers.prediction, None
    if hasattr(model, "predict_survival_function") and y is not None:
        times, y = read_times(y, n), None
    if prediction.ndim == 2:
        raise ValueError("the model has several outcomes, and a page shows one.")
    labels, probability, response = None, answers.probability, _check_responses(y, n)
    if probability is not None:
        names = model.classes_.tolist()
        if response is not None:
            names = list(dict.fromkeys([*names, *response.tolist()]))  # those of the fit first
            code = {name: k for k, name in enumerate(names)}
            response = np.array([code[c] for c in response.tolist()])
        prediction = np.searchsorted(model.classes_, prediction)
        labels = [str(name) for name in names]
    elif response is not None:
        response = coerce.response(response, n)
    weights = np.concatenate(answers.weights)
    lengths = row_lengths(rows)
    offsets = offsets_from(lengths)
    own = getattr(rows, "sample_ids", None) if ids is None else _check_count(ids, n, "ids")
    shown = [f"sample {i}" for i in range(n)] if own is None else [str(name) for name in own]
    return Samples(
        offsets=offsets,
        weights=weights,
        scores=_scores(model, answers),
        located=_located(answers.located, offsets, weights),
        prediction=prediction,
        labels=labels,
        probability=probability,
        y=response,
        ids=shown,
        texts=None if texts is None else [str(text) for text in _check_count(texts, n, "texts")],
        spans=_check_spans(texts, spans, lengths),
        images=_check_images(images, n),
        boxes=_check_boxes(images, boxes, lengths),
        true_rows=_check_true_rows(true_rows, lengths),
        row_ids=row_ids(rows),
        times=times,
    )


def _scores(model: Any, answers: Answers) -> np.ndarray | None:
    """Return the scores behind the weights; None where both are means over several fits."""
    averaged = max(getattr(model, "n_restarts_", 1), len(getattr(model, "members_", ()))) > 1
    return None if averaged or answers.scores is None else np.concatenate(answers.scores)


def _located(located: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return one row per head, (n, R): the largest weight if `locate` names more or fewer."""
    if located.shape[1] == weights.shape[1]:
        return located
    return np.array([part.argmax(axis=0) for part in np.split(weights, offsets[1:-1])])


def _check_responses(y: Any, n: int) -> np.ndarray | None:
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}, X has {n} samples: pass one response per sample.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        i = np.flatnonzero(~np.isfinite(y))[0]
        raise ValueError(f"y of sample {i} is {y[i]}: drop the sample, or pass no y.")
    return y


# ---------------------------------------------------------------------- what is shown with samples


def _check_count(values: Any, n: int, name: str) -> Any:
    """Return the values if there is one per sample."""
    if len(values) != n:
        raise ValueError(
            f"{name} has {len(values)} entries, X has {n} samples: pass one per sample."
        )
    return values


def _check_spans(texts: Any, spans: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Return the spans of all rows, (N, 2), each inside its text; an empty span is no text."""
    packed = _pack(spans, texts, lengths, ("spans", "texts"), "(start, stop)")
    if packed is not None:
        ends = np.repeat([len(str(text)) for text in texts], lengths)
        wrong = (packed[:, 0] < 0) | (packed[:, 0] > packed[:, 1]) | (packed[:, 1] > ends)
        _refuse(wrong, packed, lengths, "span", "0 ≤ start ≤ stop ≤ length of the text")
    return packed


def _check_boxes(images: Any, boxes: Any, lengths: np.ndarray) -> np.ndarray | None:
    """Return the boxes (top, left, height, width) of all rows, (N, 4), each inside its image."""
    packed = _pack(boxes, images, lengths, ("boxes", "images"), "(top, left, height, width)")
    if packed is not None:
        sizes = np.repeat([np.shape(image)[:2] for image in images], lengths, axis=0)  # (N, 2)
        start, size = packed[:, :2], packed[:, 2:]
        outside = ((start < 0) | (size < 1) | (start + size > sizes)).any(axis=1)
        _refuse(outside, packed, lengths, "box", "inside the image")
    return packed


def _check_images(images: Any, n: int) -> list[np.ndarray] | None:
    """Return grey (h, w) or RGB (h, w, 3) arrays of uint8, one per sample."""
    if images is None:
        return None
    arrays = [np.asarray(image) for image in _check_count(images, n, "images")]
    for i, image in enumerate(arrays):
        shaped = image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)
        if image.dtype != np.uint8 or not shaped or image.size == 0:
            raise ValueError(
                f"image {i} is {image.dtype} of shape {image.shape}: pass uint8 of shape "
                "(height, width) or (height, width, 3)."
            )
    return arrays


def _check_true_rows(true_rows: Any, lengths: np.ndarray) -> list[list[int]] | None:
    """Return the known rows of each sample as lists of indices inside the sample."""
    if true_rows is None:
        return None
    listed = [
        [int(j) for j in rows] if isinstance(rows, Iterable) else [int(rows)]
        for rows in _check_count(true_rows, len(lengths), "true_rows")
    ]
    for i, (sample, p) in enumerate(zip(listed, lengths, strict=True)):
        if any(not 0 <= j < p for j in sample):
            raise ValueError(f"true_rows of sample {i} are {sample}, but it has rows 0 to {p - 1}.")
    return listed


def _pack(
    parts: Any, things: Any, lengths: np.ndarray, names: tuple[str, str], form: str
) -> np.ndarray | None:
    """Return the places of all rows in one integer array, or None if nothing was given."""
    name, width = names[0], form.count(",") + 1
    if (parts is None) != (things is None):
        raise ValueError(f"{names[1]} and {name} belong together: pass both or none.")
    if parts is None:
        return None
    arrays = [np.asarray(part) for part in _check_count(parts, len(lengths), name)]
    for i, (array, p) in enumerate(zip(arrays, lengths, strict=True)):
        if array.shape != (p, width) or array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} of sample {i} have shape {array.shape}, but its {p} rows need integers "
                f"{form}, shape {(int(p), width)}."
            )
    return np.concatenate(arrays).astype(np.int64)


def _refuse(wrong: np.ndarray, packed: np.ndarray, lengths: np.ndarray, name: str, rule: str):
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        where, found = row_name(offsets_from(lengths), row), tuple(packed[row].tolist())
        raise ValueError(f"{where}: {name} {found} must be {rule}.")
