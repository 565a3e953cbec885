"""Regression on numbers and classification, as base classes of all estimators.

They read responses, choose their family, and turn linear predictors z into predictions. The second
base class of an estimator is that of its method, which computes z.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin

from diagatt import attributes, coerce
from diagatt.estimators.base import RowsEstimator
from diagatt.estimators.containers import from_sources
from diagatt.estimators.routing import Scored
from diagatt.families import Family, get_family


class Regression(Scored, RegressorMixin, RowsEstimator):
    """Responses are numbers, their mean is g⁻¹(z)."""

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        family = self._fitted_family()[0]
        if family.response_width == 1:
            return coerce.response(y, len(weights))
        return coerce.responses(y, len(weights), family.response_width, family.response_range)

    def _fitted_family(self) -> tuple[Family, int]:
        family = get_family("gaussian" if self.family == "auto" else self.family)
        family = with_known_shape(family, self)
        if family.classifies:
            raise ValueError(
                f"family {self.family!r} is for classes: use the classifier of this method, or a "
                "family of numbers such as 'gaussian'."
            )
        return family, family.n_outputs()

    @from_sources
    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return expected responses g⁻¹(z), (n_samples,)."""
        return self._means(self._linear_predictor(X, covariates))[:, 0]

    def _observed(self, y: Any, n_samples: int) -> np.ndarray:
        """Return what predictions are compared with; proportions of a binomial response."""
        family = self._fitted_family()[0]
        if family.response_width == 1:
            return super()._observed(y, n_samples)
        table = coerce.responses(y, n_samples, family.response_width, family.response_range)
        return family.observed(torch.from_numpy(table)).numpy()


class Classification(Scored, ClassifierMixin, RowsEstimator):
    """Responses are classes, with a logit link for two and a softmax link for more."""

    fitted_rules: ClassVar[attributes.Rules] = {"classes_": attributes.classes()}
    classes_: np.ndarray

    @property
    def has_ordered_classes(self) -> bool:
        """Whether the family is one of ordered classes."""
        return self.family != "auto" and get_family(self.family).orders_classes

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        labels, counted = coerce.classes(y, len(weights)), weights > 0
        if self.has_ordered_classes and labels.dtype.kind not in "iufb":
            raise ValueError(
                f"family {self.family!r} needs ordered classes, but y holds words such as "
                f"{str(labels[0])!r}: encode them as numbers in their order, 0 for the lowest."
            )
        self._set_classes(np.unique(labels[counted]))
        codes = np.zeros(len(labels))  # a class whose samples all have weight 0 does not exist
        codes[counted] = np.searchsorted(self.classes_, labels[counted])
        return codes

    def _set_classes(self, classes: np.ndarray) -> None:
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(f"y holds one class only ({only!r}): a classifier needs at least two.")
        self.classes_ = classes

    def _fitted_family(self) -> tuple[Family, int]:
        n_classes, name = len(self.classes_), self.family
        if name == "auto":
            name = "bernoulli" if n_classes == 2 else "multinomial"
        family = with_known_shape(get_family(name).of_classes(n_classes), self)
        if not family.classifies:
            raise ValueError(
                f"family {name!r} is for numbers: use the regressor of this method, or a family "
                "of classes such as 'multinomial'."
            )
        return family, family.n_outputs(n_classes)

    @from_sources
    def decision_function(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return linear predictors z: (n_samples,) for two classes, else (n_samples, n_classes)."""
        return self._decision(self._linear_predictor(X, covariates))

    @from_sources
    def predict_proba(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return class probabilities, (n_samples, n_classes)."""
        return self._probabilities(self._linear_predictor(X, covariates))

    @from_sources
    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the most probable classes, (n_samples,)."""
        return self._labels(self._linear_predictor(X, covariates))

    def _decision(self, z: np.ndarray) -> np.ndarray:
        if z.shape[1] == 1:
            return z[:, 0]
        return z[:, 1] - z[:, 0] if len(self.classes_) == 2 else z

    def _probabilities(self, z: np.ndarray) -> np.ndarray:
        mean = self._means(z.astype(np.float64))
        return np.concatenate([1 - mean, mean], axis=1) if mean.shape[1] == 1 else mean

    def _labels(self, z: np.ndarray) -> np.ndarray:
        if self.has_ordered_classes:
            return self.classes_[self._probabilities(z).argmax(axis=1)]
        return self.classes_[(z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)]


def with_known_shape(family: Family, model: Any) -> Family:
    """Return the family with the fitted shape, if the model has one of the family's size."""
    known = getattr(model, "shape_", None)
    if known is None or np.shape(known) != family.fitted_shape(np.shape(known)):
        return family
    return family.with_shape(torch.as_tensor(known))
