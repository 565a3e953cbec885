"""Samples with missing entries: refused, or marginalized over."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from diagatt import attributes, coerce, parameters
from diagatt.arrays import InputError
from diagatt.estimators.base import RowsEstimator
from diagatt.missing import completed, fit_row_gaussian
from diagatt.ragged import RaggedRows
from diagatt.solvers.base import Fitted

#: What may be done about missing entries.
MISSING = ("refuse", "marginalize")
ADVICE = "drop the row or impute it, or set missing='marginalize'"


class TakesIncompleteRows(RowsEstimator):
    """Base of estimators whose rows may have missing entries if the parameter `missing` allows it.

    A Gaussian of all rows imputes missing entries by their conditional means. A solver that has a
    model of rows integrates them out instead; the estimator then has two Gaussians, of background
    and of active rows, and new rows are completed as active rows, with scores that are those of
    their observed entries.
    """

    fitted_rules: ClassVar[attributes.Rules] = {
        "row_means_": parameters.optional(attributes.floats("float64")),
        "row_covariances_": parameters.optional(
            parameters.Rule("an array of covariance matrices", lambda C: _are_covariances(C))
        ),
        "missing_": parameters.optional(attributes.counts("entries", "rows")),
    }
    row_means_: np.ndarray | None = None  # (k, d), k = 1 or 2
    row_covariances_: np.ndarray | None = None  # (k, d, d)
    missing_: dict[str, int] | None = None

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        k, d = 2 if np.shape(self.row_means_)[:1] == (2,) else 1, self.n_features_in_  # type: ignore[arg-type]
        shapes = {"row_means_": (k, d), "row_covariances_": (k, d, d)}
        return {**super()._fitted_shapes(), **shapes}

    @property
    def _marginalizes(self) -> bool:
        return self.missing == "marginalize"

    def _usable(self, rows: RaggedRows, *, reset: bool) -> RaggedRows:
        if reset:
            for name in TakesIncompleteRows.fitted_rules:
                self.__dict__.pop(name, None)
        if not self._marginalizes or rows.is_sparse:
            coerce.refuse_unusable(rows, advice=ADVICE)
            return rows
        coerce.refuse_unusable(rows, allow_missing=True)
        empty = _refuse_unobserved(rows)
        if reset:
            missing = np.isnan(rows.values)
            self.missing_ = {"entries": int(missing.sum()), "rows": int(missing.any(axis=1).sum())}
            rows = _without(rows, empty)
            self._fit_row_model(rows)
        if self.row_means_ is None or self.row_covariances_ is None:  # fitted to sparse rows
            return super()._usable(rows, reset=reset)
        if not np.isnan(rows.values).any():
            return rows
        return completed(rows, self.row_means_, self.row_covariances_)

    def _fit_row_model(self, rows: RaggedRows) -> None:
        """Fit a Gaussian to all rows."""
        missing = np.isnan(rows.values)
        never = np.flatnonzero(missing.all(axis=0))
        if len(never):
            names = rows.feature_names or [f"x{j}" for j in range(rows.n_features)]
            raise InputError(f"feature {names[never[0]]!r} is missing in all rows: drop it.")
        found = fit_row_gaussian(rows.values)
        self.row_means_ = found.mean.numpy()[None]
        self.row_covariances_ = found.covariance.numpy()[None]

    def _keep_row_model(self, fitted: Fitted) -> None:
        """Keep the Gaussians of background and active rows of a fit that has them."""
        if fitted.row_gaussians is None:
            return
        means, covariances = (t.cpu().double().numpy() for t in fitted.row_gaussians)
        self.row_means_, self.row_covariances_ = means, covariances

    def _missing_facts(self) -> dict[str, str]:
        """Return facts for the summary: how much was missing, and how it was treated."""
        if not self.missing_ or not self.missing_["entries"]:
            return {}
        integrated = len(self.row_means_) == 2  # type: ignore[arg-type]
        entries, rows = self.missing_["entries"], self.missing_["rows"]
        how = "integrated out" if integrated else "imputed by a Gaussian of all rows"
        return {"missing entries": f"{entries} in {rows} rows, {how}"}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._marginalizes
        return tags


def _refuse_unobserved(rows: RaggedRows) -> np.ndarray:
    """Refuse samples without any observed entry, whose predictions would all be the same.

    Return which rows have no entry, (N,).
    """
    empty = np.isnan(rows.values).all(axis=1)
    if empty.any():
        unknown = np.flatnonzero(np.logical_and.reduceat(empty, rows.offsets[:-1]))
        if len(unknown):
            raise InputError(f"sample {unknown[0]} has no observed entry: drop it.")
    return empty


def _without(rows: RaggedRows, empty: np.ndarray) -> RaggedRows:
    """Return samples without these rows, (N,): where any of them may be active, fits find none."""
    if not empty.any():
        return rows
    lengths = np.add.reduceat((~empty).astype(np.int64), rows.offsets[:-1])
    beside = [None if a is None else a[~empty] for a in (rows.row_ids, rows.row_weight)]
    names = (rows.feature_names, rows.sample_ids)
    return RaggedRows(rows.values[~empty], coerce.offsets_from(lengths), *names, *beside)


def _are_covariances(value: Any) -> bool:
    """Return whether these are symmetric matrices that can be inverted."""
    if not attributes.floats("float64").accepts(value) or np.ndim(value) != 3:
        return False
    try:
        np.linalg.cholesky(value)
    except np.linalg.LinAlgError:
        return False
    return bool(np.allclose(value, value.swapaxes(1, 2)))
