"""Everything that a fitted model says about some inputs, whose rows are made once."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

MOST_FEATURES = 3  # features that are named per located row


@dataclass(frozen=True)
class Answers:
    """Answers of a fitted estimator, each computed when it is first asked for."""

    estimator: Any  # the fitted estimator of rows
    prepared: Any  # the inputs with their rows, as `prepare` of a model returned them
    rows: Any
    covariates: Any = None
    known: Mapping[str, Any] = field(default_factory=dict)  # exposure and offset

    @cached_property
    def prediction(self) -> np.ndarray:
        """Predicted classes or expected responses, (n,)."""
        return self._ask("predict")

    @cached_property
    def probability(self) -> np.ndarray | None:
        """Class probabilities, (n, K); None if the responses are numbers."""
        return self._ask("predict_proba") if hasattr(self.estimator, "predict_proba") else None

    @cached_property
    def located(self) -> np.ndarray:
        """Index of the row of interest of each head, (n, R)."""
        return np.asarray(self.estimator.locate(self.rows)).reshape(len(self.rows), -1)

    @cached_property
    def weights(self) -> list[np.ndarray] | None:
        """Attention weights, one (p_i, R) array per sample; None if the estimator has none."""
        asked = getattr(self.estimator, "attention", None)
        return None if asked is None else asked(self.rows)

    @cached_property
    def scores(self) -> list[np.ndarray] | None:
        """Scores behind the weights, one (p_i, R) array per sample; None if there are none."""
        asked = getattr(self.estimator, "scores", None)
        return None if asked is None else asked(self.rows)

    @cached_property
    def located_weights(self) -> np.ndarray | None:
        """Attention weights of the located rows, (n, R); None unless each head locates one."""
        if self.weights is None or self.weights[0].shape[1] != self.located.shape[1]:
            return None
        heads = np.arange(self.located.shape[1])
        pairs = zip(self.weights, self.located, strict=True)
        found = np.array([own[rows, heads] for own, rows in pairs])
        return np.where(self.located < 0, np.nan, found)

    def strongest(self, head: int) -> list[str] | None:
        """Return the features that made each located row count: ``"CD8A +1.3, LYZ -0.4"``.

        The number behind feature j of row x is v_j (x_j − x̄_j), where x̄ is the mean row of the
        sample and v the value vector of the head (for several classes, of the predicted class).

        The result is None if features have no names, or if the estimator has no value vectors in
        the original features.
        """
        named = getattr(self.rows, "feature_names", None) is not None
        names: Any = getattr(self.estimator, "feature_names_in_", None)
        value: Any = getattr(self.estimator, "value_", None)
        heads = self.located.shape[1]
        fits = value is not None and names is not None and value.shape[-1] == len(names)
        if not named or not fits or len(value) % heads or self.rows.is_sparse:
            return None
        rows = self.rows.with_features(names.tolist())
        value = value.reshape(-1, heads, *value.shape[1:])[:, head].sum(axis=0)  # ([K,] d)
        if value.ndim == 2 and getattr(self.estimator, "n_outputs_", 1) > 1:
            return None  # there is one value vector per outcome
        if value.ndim == 2:
            value = value[np.searchsorted(self.estimator.classes_, self.prediction)]  # (n, d)
        said = []
        for i, row in enumerate(self.located[:, head]):
            sample = rows[i]
            observed = ~np.isnan(sample)
            total = np.where(observed, sample, 0).sum(axis=0)
            distance = sample[row] - total / observed.sum(axis=0).clip(min=1)
            effect = (value[i] if value.ndim == 2 else value) * distance
            order = np.argsort(-np.abs(effect), kind="stable")  # missing entries come last
            best = [j for j in order[:MOST_FEATURES] if observed[row, j]]
            said.append("" if row < 0 else ", ".join(f"{names[j]} {effect[j]:+.2g}" for j in best))
        return said

    def _ask(self, method: str) -> np.ndarray:
        given = {} if self.covariates is None else {"covariates": self.covariates}
        given |= self.known
        return np.asarray(getattr(self.estimator, method)(self.rows, **given))


def answer(
    model: Any, inputs: Any, covariates: Any = None, known: Mapping[str, Any] | None = None
) -> Answers:
    """Make the rows of the inputs, once, and ask a fitted model about them.

    Parameters
    ----------
    model : fitted estimator of rows, texts, images, …
    inputs : whatever the model predicts
    covariates : array of shape (n, q), optional
    known : mapping, optional
        Exposure and offset, arrays of shape (n,).

    Examples
    --------
    >>> from diagatt import DiagAttRegressor, simulate
    >>> data = simulate.regression(200, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    >>> model = DiagAttRegressor(solver="likelihood", random_state=0).fit(data.X, data.y)
    >>> answers = answer(model, data.X)
    >>> answers.located_weights.shape, answers.probability is None
    ((200, 1), True)
    """
    if hasattr(model, "prepare"):
        prepared = model.prepare(inputs)
        inner = _with_one_module(model.estimator_)
        return Answers(inner, prepared, prepared.rows, covariates, known or {})
    return Answers(_with_one_module(model), inputs, inputs, covariates, known or {})


def _with_one_module(estimator: Any) -> Any:
    """Return a copy that builds its torch module once, however many questions are asked."""
    if not hasattr(estimator, "to_module"):
        return estimator
    same = copy(estimator)
    same.to_module = cache(estimator.to_module)
    return same
