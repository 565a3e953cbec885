"""Something that makes rows and an estimator of them, fitted, used and saved as one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from diagatt.modelfile import ModelFileError
from diagatt.persistence import (
    FORMAT_VERSION,
    SavedToFile,
    check_document,
    registered,
    restore,
    to_json,
)
from diagatt.ragged import RaggedRows

__all__ = ["RowsPipeline", "inner_has"]


def inner_has(name: str) -> Any:
    """Offer a method only if the estimator inside has it."""

    def has(pipeline: RowsPipeline) -> bool:
        inner = getattr(pipeline, "estimator_", pipeline.estimator)
        return inner is None or hasattr(inner, name)  # the default has everything

    return available_if(has)


class RowsPipeline(SavedToFile, BaseEstimator):
    """Base of the pipelines of texts and images.

    A subclass says how inputs become rows, which estimator is the default, and what else a file
    must hold.
    """

    estimator: Any
    random_state: Any
    estimator_: Any

    # ------------------------------------------------------------------ for subclasses

    def rows(self, inputs: Any) -> RaggedRows:
        """Rows of the inputs as the estimator sees them."""
        raise NotImplementedError

    def _fit_rows(self, inputs: Any) -> RaggedRows:
        """Learn what making rows needs, and make them."""
        raise NotImplementedError

    def _default_estimator(self, n_samples: int) -> Any:
        raise NotImplementedError

    def _rows_document(self) -> dict[str, Any]:
        """What `_restore_rows` needs, as JSON can hold it."""
        raise NotImplementedError

    def _restore_rows(self, document: Mapping[str, Any], path: Any) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------ fitting and predicting

    def _fit(self, inputs: Any, y: Any, **extra: Any) -> Self:
        rows = self._fit_rows(inputs)
        inner = self._default_estimator(len(rows)) if self.estimator is None else self.estimator
        inner = clone(inner)
        if self.random_state is not None:
            inner.set_params(random_state=self.random_state)
        given = {name: value for name, value in extra.items() if value is not None}
        self.estimator_ = inner.fit(rows, y, **given)
        return self

    def _predict(self, method: str, inputs: Any, covariates: Any) -> np.ndarray:
        check_is_fitted(self)
        given = {} if covariates is None else {"covariates": covariates}
        return getattr(self.estimator_, method)(self.rows(inputs), **given)

    # ------------------------------------------------------------------ files

    def to_document(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Tensors and JSON document of the fitted pipeline."""
        check_is_fitted(self)
        if type(self.estimator_) not in registered().values():
            raise TypeError(
                f"{type(self.estimator_).__name__} cannot be saved: the estimator inside must be "
                "one of diagatt's own."
            )
        tensors, inner = self.estimator_.to_document()
        own = {k: v for k, v in self.get_params(deep=False).items() if k not in self._steps()}
        document = {
            "kind": "pipeline",
            "format": FORMAT_VERSION,
            "diagatt": inner["diagatt"],
            "class": type(self).__name__,
            "parameters": {name: to_json(name, _as_list(value)) for name, value in own.items()},
            "rows": self._rows_document(),
            "estimator": inner,
            "estimator_is_default": self.estimator is None,
        }
        return tensors, document

    @classmethod
    def from_document(
        cls,
        tensors: Mapping[str, np.ndarray],
        document: Mapping[str, Any],
        path: str | os.PathLike = "the file",
    ) -> Self:
        """Return the fitted pipeline that `to_document` took apart."""
        check_document(document, "pipeline", path)
        if document["class"] != cls.__name__:
            name = document["class"]
            raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
        parameters = {
            name: tuple(value) if isinstance(value, list) else value  # JSON knows no tuples
            for name, value in document["parameters"].items()
        }
        pipeline = cls(**parameters)
        pipeline.estimator_ = restore(tensors, document["estimator"], path)
        if not document["estimator_is_default"]:
            pipeline.estimator = clone(pipeline.estimator_)
        pipeline._restore_rows(document["rows"], path)
        return pipeline

    @classmethod
    def _steps(cls) -> tuple[str, ...]:
        """Parameters that are estimators or transformers themselves."""
        return ("estimator",)


def _as_list(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value
