"""Covariates through scikit-learn: a score that takes them, and requests for metadata routing.

With ``sklearn.set_config(enable_metadata_routing=True)``, tools such as ``cross_val_score`` split
covariates along with X and y, and hand them to `fit`, to predictions and to `score`. Estimators
with covariates, groups, offsets or exposures request them by default, because covariates that are
passed are meant for the model; ``set_fit_request(covariates=False)`` changes that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import UNUSED

from diagatt import coerce
from diagatt.ragged import RaggedRows

METHODS = ("fit", "predict", "predict_proba", "decision_function", "score")
REQUESTED = ("covariates", "groups", "offset", "exposure", "class_weight")
_Requests = dict[str, Any]


class Scored:
    """The score of a classifier or regressor whose predictions may need covariates."""

    predict: Callable[..., Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """Return the accuracy of classes, or R² of numbers.

        Parameters
        ----------
        X : samples
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        covariates : array of shape (n, q), optional
            If the model was fitted with them.
        """
        given = {} if covariates is None else {"covariates": covariates}
        return self._score_of(X, y, self.predict(X, **given), sample_weight)

    def _score_of(self, X: Any, y: Any, predicted: np.ndarray, sample_weight: Any) -> float:
        """Compare predictions with responses, which are read as `fit` reads them."""
        from sklearn.metrics import accuracy_score, r2_score  # here, because it takes 0.1 s

        n, measure = len(predicted), accuracy_score if is_classifier(self) else r2_score
        if isinstance(X, RaggedRows):
            coerce.refuse_other_order(X, y=y, sample_weight=sample_weight)
        weights = None if sample_weight is None else coerce.weights(sample_weight, n)
        return float(measure(self._observed(y, n), predicted, sample_weight=weights))

    def _observed(self, y: Any, n_samples: int) -> np.ndarray:
        """Return what predictions are compared with."""
        inner = getattr(self, "estimator_", None)  # of an estimator of texts or images
        if isinstance(inner, Scored):
            return inner._observed(y, n_samples)
        return (coerce.classes if is_classifier(self) else coerce.response)(y, n_samples)


class TakesCovariates:
    """Requests of an estimator that takes covariates, groups, offsets or exposures.

    Every method requests those of them that it has. Groups are requested so that samples which
    ``GroupKFold`` holds out together are held out together inside `fit`, too.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        for name in METHODS:
            if hasattr(cls, name):
                taken = inspect.signature(getattr(cls, name)).parameters
                asked = {one: True for one in REQUESTED if one in taken}
                setattr(cls, f"_routed__metadata_request__{name}", asked)  # scikit-learn reads it
        super().__init_subclass__(**keywords)


class RoutedInputs:
    """Metadata requests of an estimator whose first argument, ``inputs``, is no metadata."""

    __metadata_request__fit: ClassVar[_Requests] = {"inputs": UNUSED}
    __metadata_request__predict: ClassVar[_Requests] = {"inputs": UNUSED}
    __metadata_request__predict_proba: ClassVar[_Requests] = {"inputs": UNUSED}
    __metadata_request__decision_function: ClassVar[_Requests] = {"inputs": UNUSED}
