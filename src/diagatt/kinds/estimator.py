"""The base of estimators that turn their inputs into rows and fit an estimator to these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from diagatt import attributes, parameters
from diagatt.covariates import parted
from diagatt.estimators.routing import RoutedInputs, Scored, TakesCovariates
from diagatt.kinds.certainty import AskedForCertainty, inner_has
from diagatt.modelfile import ModelFileError
from diagatt.persistence import (
    FORMAT_VERSION,
    AnyPath,
    Document,
    SavedToFile,
    Tensors,
    build,
    check_document,
    class_named,
    refusal,
    registered,
    restore,
    to_json,
)
from diagatt.ragged import RaggedRows


class KindEstimator(AskedForCertainty, RoutedInputs, TakesCovariates, SavedToFile, BaseEstimator):
    """Base of the estimators of texts and images.

    A subclass has `prepare`, which returns inputs with their `rows` as the estimator sees them;
    `_fit_rows`, which learns what that needs and returns rows; `_default_estimator(n_samples)`; and
    `_rows_document` and `_restore_rows`, which say in JSON what `_fit_rows` has learned.
    """

    rules: ClassVar[Mapping[str, parameters.Rule]] = {
        "estimator": parameters.optional(
            parameters.instance("an estimator of samples of rows", BaseEstimator)
        ),
        "random_state": parameters.seed(),
    }
    kind: ClassVar[str]  # its name in `diagatt.kinds.KINDS`
    estimator: Any
    random_state: Any
    estimator_: Any
    prepare: Callable[[Any], Any]
    _fit_rows: Callable[[Any], RaggedRows]
    _default_estimator: Callable[[int], Any]
    _rows_document: Callable[[], dict[str, Any]]
    _restore_rows: Callable[[Mapping[str, Any], Any], None]
    _steps: ClassVar[tuple[str, ...]] = ("estimator",)  # parameters that are estimators themselves

    def fit(
        self,
        inputs: Any,
        y: Any,
        sample_weight: Any = None,
        covariates: Any = None,
        groups: Any = None,
    ) -> Self:
        """Make rows of the inputs and fit the estimator to them.

        Parameters
        ----------
        inputs : list of texts, or images
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        covariates : array of shape (n, q), optional
            If the estimator takes them.
        groups : array of shape (n,), optional
            If the estimator takes them: samples of one group are held out together when ways to fit
            are compared.
        """
        parameters.check(self)
        inputs, covariates = parted(inputs, covariates)
        fitted = copy(self)  # a fit that fails leaves the estimator as it was
        known = {"sample_weight": sample_weight, "covariates": covariates, "groups": groups}
        fitted._fit_inputs(inputs, y, known)
        self.__dict__ = fitted.__dict__
        return self

    def _fit_inputs(self, inputs: Any, y: Any, extra: Mapping[str, Any]) -> None:
        rows = self._fit_rows(inputs)
        inner = self._default_estimator(len(rows)) if self.estimator is None else self.estimator
        inner = clone(inner)
        if self.random_state is not None:
            inner.set_params(random_state=self.random_state)
        given = {name: value for name, value in extra.items() if value is not None}
        self.estimator_ = inner.fit(rows, y, **given)

    def rows(self, inputs: Any) -> RaggedRows:
        """Return the rows of the inputs as the estimator sees them."""
        return self.prepare(parted(inputs, None)[0]).rows

    def predict(self, inputs: Any, covariates: Any = None) -> np.ndarray:
        """Return predicted classes or expected responses, (n,)."""
        return self._ask("predict", inputs, covariates)

    def _ask(self, method: str, inputs: Any, covariates: Any) -> np.ndarray:
        check_is_fitted(self)
        inputs, covariates = parted(inputs, covariates)
        given = {} if covariates is None else {"covariates": covariates}
        return getattr(self.estimator_, method)(self.rows(inputs), **given)

    def to_document(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return tensors and JSON document of the fitted estimator."""
        check_is_fitted(self)
        if type(self.estimator_) not in registered().values():
            raise TypeError(
                f"{type(self.estimator_).__name__} cannot be saved: the estimator inside must be "
                "one of diagatt's own."
            )
        tensors, inner = self.estimator_.to_document()
        own = {k: v for k, v in self.get_params(deep=False).items() if k not in self._steps}
        own = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in own.items()}
        document = {
            "kind": "pipeline",
            "format": FORMAT_VERSION,
            "diagatt": inner["diagatt"],
            "class": type(self).__name__,
            "parameters": {name: to_json(name, value) for name, value in own.items()},
            "rows": self._rows_document(),
            "estimator": inner,
            "estimator_is_default": self.estimator is None,
        }
        return tensors, document

    @classmethod
    def from_document(
        cls, tensors: Tensors, document: Document, path: AnyPath = "the file"
    ) -> Self:
        """Return the fitted estimator that `to_document` took apart."""
        name = class_named(document, "pipeline", path)
        if name != cls.__name__:
            raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
        check_document(document, "pipeline", path, more=("columns",))
        inner = restore(tensors, document["estimator"], path)
        try:
            model = build(cls, document["parameters"], without=cls._steps)
            for key, value in document["parameters"].items():
                if isinstance(value, list):  # JSON knows no tuples
                    setattr(model, key, tuple(value))
            if is_classifier(inner) != is_classifier(model):
                raise ValueError(f"the estimator inside is a {type(inner).__name__}")
            model._restore_rows(document["rows"], path)
        except attributes.NONSENSE as error:
            if isinstance(error, ModelFileError):  # its message is complete
                raise
            raise refusal(path, name, error) from error
        model.estimator_ = inner
        if not document["estimator_is_default"]:
            model.estimator = clone(inner)
        return model


class KindClassifier(Scored, ClassifierMixin):
    """What classifiers add to a `KindEstimator`."""

    estimator_: Any
    _ask: Any

    @property
    def classes_(self) -> np.ndarray:
        """Class labels, in the order of `predict_proba`."""
        return self.estimator_.classes_

    def predict_proba(self, inputs: Any, covariates: Any = None) -> np.ndarray:
        """Return class probabilities, (n, n_classes)."""
        return self._ask("predict_proba", inputs, covariates)

    @inner_has("decision_function")
    def decision_function(self, inputs: Any, covariates: Any = None) -> np.ndarray:
        """Return linear predictors: (n,) for two classes, else (n, n_classes)."""
        return self._ask("decision_function", inputs, covariates)
