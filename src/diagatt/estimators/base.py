"""What every estimator of samples shares: reading X, y, weights and covariates."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from diagatt.persistence import SavedToFile
from diagatt.ragged import RaggedRows, holds_samples
from diagatt.stores import RowStore


class RowsEstimator(SavedToFile, BaseEstimator):
    """Base of estimators whose samples are matrices of rows.

    A 2-D array is n one-row samples, so that scikit-learn's whole test suite applies.
    """

    n_features_in_: int
    one_row_samples_: bool

    def _validate_rows(self, X: Any, *, reset: bool) -> RaggedRows:
        """Pack and check the samples; `reset` in fit, comparison with fit otherwise."""
        if _is_flat(X):
            if not reset and not self.one_row_samples_:
                raise ValueError(
                    f"X is one 2-D array of shape {np.shape(X)}, but {type(self).__name__} was "
                    "fitted on samples of several rows. For a single sample pass a list: [X]; "
                    "for one-row samples pass RaggedRows.from_rows(X)."
                )
            X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C")
            if reset:
                self.one_row_samples_ = True
            return RaggedRows.from_rows(X)
        rows = X.to_rows() if isinstance(X, RowStore) else RaggedRows.coerce(X)
        if reset:
            check_finite(rows)
            self._note_features(rows)
        elif rows.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return rows

    def _note_features(self, rows: RaggedRows | RowStore) -> None:
        """Remember what the samples that are fitted to look like."""
        self.n_features_in_ = rows.n_features
        self.one_row_samples_ = False
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _validate_response(self, y: Any, n_samples: int) -> np.ndarray:
        """Numeric responses, (n,) float64."""
        y = self._column(y, n_samples)
        if y.dtype.kind == "c":
            raise ValueError("Complex data not supported: y is complex; pass real numbers.")
        return check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=type(self).__name__
        )

    def _validate_classes(self, y: Any, n_samples: int) -> np.ndarray:
        """Class labels as they are, (n,)."""
        y = self._column(y, n_samples)
        check_classification_targets(y)
        return y

    def _column(self, y: Any, n_samples: int) -> np.ndarray:
        name = type(self).__name__
        if y is None:
            raise ValueError(
                f"This {name} estimator requires y to be passed, but the target y is None."
            )
        y = column_or_1d(y, warn=True)
        if len(y) != n_samples:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n_samples} "
                f"samples, y has {len(y)} responses."
            )
        return y

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def validate_weights(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Sample weights, (n,) float64: finite, not negative, not all zero."""
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, numbers.Number):
        sample_weight = np.full(n_samples, sample_weight)
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar.")
    if len(weights) != n_samples:
        raise ValueError(f"sample_weight has {len(weights)} entries, X has {n_samples} samples.")
    if np.any(weights < 0):
        i = int(np.argmax(weights < 0))
        raise ValueError(f"sample_weight[{i}] = {weights[i]:g} is negative: weights are ≥ 0.")
    if not np.any(weights > 0):
        raise ValueError("all sample weights are zero: at least one sample must count.")
    return weights


def validate_covariates(covariates: Any, n_samples: int, expected: int | None) -> np.ndarray:
    """Shared covariates z, (n, q) float64; q = 0 without any."""
    if covariates is None:
        Z = np.empty((n_samples, 0))
    else:
        Z = check_array(covariates, dtype=np.float64, input_name="covariates")
    if len(Z) != n_samples:
        raise ValueError(f"covariates have {len(Z)} lines, X has {n_samples} samples.")
    if expected is not None and Z.shape[1] != expected:
        raise ValueError(
            f"the model was fitted with {expected} covariates, got {Z.shape[1]}: pass the same "
            "covariates to fit and to predict."
        )
    return Z


def _is_flat(X: Any) -> bool:
    """Whether X would be read as one 2-D array (or as something scikit-learn should refuse)."""
    if (
        isinstance(X, RaggedRows | RowStore)
        or holds_samples(X)
        or (isinstance(X, list | tuple) and not X)
    ):
        return False
    if type(X).__module__.split(".")[0] == "pyarrow" and hasattr(X, "null_count"):
        return False
    return getattr(X, "ndim", 2) != 3 and not getattr(X, "is_nested", False)


def check_finite(rows: RaggedRows) -> None:
    """Refuse NaN and infinity, naming the sample and the row.

    `fit` looks before; predictions are looked at after, since one such entry spoils them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.values.sum(dtype=np.float64)):  # one pass, no temporary
            return
    for start in range(0, rows.n_rows, 65536):
        wrong = np.flatnonzero(~np.isfinite(rows.values[start : start + 65536]).all(axis=1))
        if len(wrong):
            packed = start + int(wrong[0])
            sample = int(np.searchsorted(rows.offsets, packed, side="right")) - 1
            row = packed - int(rows.offsets[sample])
            kind = "NaN" if np.isnan(rows.values[packed]).any() else "infinity"
            raise ValueError(
                f"sample {sample}, row {row} contains {kind}: drop the row or impute it."
            )
