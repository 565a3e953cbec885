"""Estimators in one file: parameters, fitted attributes, versions; no pickle.

Arrays of numbers become tensors, everything else one JSON document; see `diagatt.modelfile`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from inspect import isabstract
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from diagatt import modelfile
from diagatt.modelfile import ModelFileError

FORMAT_VERSION = 2

# Rooms whose estimators a file may name inside a blend or a pipeline.
ROOMS = ("diagatt.estimators", "diagatt.competitors")
_REGISTERED: dict[str, type] = {}
# Classes of objects that may be parameters of a saved estimator: solvers register themselves.
_PARTS: dict[str, type[BaseEstimator]] = {}


def register_part(kind: type[BaseEstimator]) -> None:
    """Let objects of this class be saved as parameters of estimators."""
    _PARTS[kind.__name__] = kind


class SavedToFile:
    """Gives an estimator `save` and `load`, and registers its class; see `registered`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(ROOMS) and not cls.__name__.startswith("_"):
            _REGISTERED[cls.__name__] = cls

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted estimator to one safetensors file, atomically.

        Parameters
        ----------
        path : path-like
            An existing file is replaced only when the new one is complete.
        """
        modelfile.write(path, *self.to_document())

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read an estimator that `save` wrote; a damaged file raises `ModelFileError`."""
        return cls.from_document(*modelfile.read(path), path)

    def to_document(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return tensors and JSON document of the fitted estimator."""
        return to_document(self)

    @classmethod
    def from_format_1(cls, document: dict[str, Any]) -> dict[str, Any]:
        """Return a document of format 1 as one of the present format; most have not changed."""
        return document

    @classmethod
    def from_document(
        cls,
        tensors: Mapping[str, np.ndarray],
        document: Mapping[str, Any],
        path: str | os.PathLike = "the file",
    ) -> Self:
        """Return the fitted estimator that `to_document` took apart."""
        return from_document(cls, tensors, document, path)


def to_document(estimator: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return tensors and JSON document of a fitted estimator, as `modelfile.write` takes them."""
    from diagatt import __version__

    check_is_fitted(estimator)
    tensors, fitted = {}, {}
    for name, value in _fitted_attributes(estimator).items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            tensors[name] = value
        else:
            fitted[name] = to_json(name, value)
    parameters = estimator.get_params(deep=False)
    document = {
        "kind": "estimator",
        "format": FORMAT_VERSION,
        "diagatt": __version__,
        "class": type(estimator).__name__,
        "parameters": {name: to_json(name, value) for name, value in parameters.items()},
        "fitted": fitted,
    }
    return tensors, document


def from_document(
    classes: type | Mapping[str, type],
    tensors: Mapping[str, np.ndarray],
    document: Mapping[str, Any],
    path: str | os.PathLike = "the file",
) -> Any:
    """Return the fitted estimator that `to_document` took apart.

    Parameters
    ----------
    classes : class, or mapping from name to class
        What the document may hold; anything else raises `ModelFileError`.
    tensors, document
        From `to_document`.
    path : path-like
        Where they come from, for error messages.
    """
    check_document(document, "estimator", path)
    name = document["class"]
    known = classes if isinstance(classes, Mapping) else {classes.__name__: classes}
    if name not in known:
        raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
    kind: Any = known[name]
    if document["format"] == 1 and hasattr(kind, "from_format_1"):  # rows of texts are the same
        document = kind.from_format_1(dict(document))
    parameters = {key: _from_json(value) for key, value in document["parameters"].items()}
    estimator = kind(**parameters)
    for attribute, value in document["fitted"].items():
        setattr(estimator, attribute, _from_json(value))
    for attribute, tensor in tensors.items():
        setattr(estimator, attribute, tensor)
    return estimator


def registered() -> dict[str, Any]:
    """Return every estimator of diagatt by its name: the rooms register them when imported.

    Examples
    --------
    >>> registered()["PooledRegressor"]
    <class 'diagatt.estimators.pooled.PooledRegressor'>
    """
    for room in ROOMS:
        import_module(room)
    return {name: kind for name, kind in _REGISTERED.items() if not isabstract(kind)}


def restore(
    tensors: Mapping[str, np.ndarray], document: Mapping[str, Any], path: str | os.PathLike
) -> Any:
    """Return the fitted estimator of a document, whichever of diagatt's own it is."""
    name = document["class"]
    if name not in registered():
        raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
    return registered()[name].from_document(tensors, document, path)


def check_document(document: Mapping[str, Any], kind: str, path: str | os.PathLike) -> None:
    """Refuse a document of another kind or of a newer format."""
    if document.get("kind") != kind:
        raise ModelFileError(f"{path} is not a saved {kind} but a {document.get('kind')}.")
    if document["format"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format {document['format']}, written by diagatt "
            f"{document['diagatt']}; this version reads up to {FORMAT_VERSION}: upgrade."
        )


def _fitted_attributes(estimator: Any) -> dict[str, Any]:
    return {k: v for k, v in vars(estimator).items() if k.endswith("_") and not k.startswith("__")}


def to_json(name: str, value: Any) -> Any:
    """Return the value as JSON can hold it; what it cannot is refused by name."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # its state has moved on; a loaded estimator starts from fresh entropy
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": "str" if value.dtype.kind == "U" else "object"}
    if type(value) in _PARTS.values():
        parameters = value.get_params(deep=False).items()
        own = {key: to_json(f"{name}__{key}", part) for key, part in parameters}
        return {"object": type(value).__name__, "parameters": own}
    if isinstance(value, list | tuple):
        return [to_json(name, item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        json.dumps(value)
    except TypeError as error:
        raise TypeError(f"{name}={value!r} cannot be saved: {error}.") from error
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return np.array(value["array"], dtype=value["dtype"])
    if isinstance(value, dict) and set(value) == {"object", "parameters"}:
        if value["object"] not in _PARTS:
            raise ModelFileError(
                f"the file names a {value['object']}, which is not known here: import it first."
            )
        own = {key: _from_json(part) for key, part in value["parameters"].items()}
        return _PARTS[value["object"]](**own)
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
