"""Estimators in one file: parameters, fitted attributes, versions; no pickle.

Arrays of numbers become tensors, everything else one JSON document; see `diagatt.modelfile`.
"""

from __future__ import annotations

import json
import os
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from diagatt import modelfile
from diagatt.modelfile import ModelFileError

FORMAT_VERSION = 1


class SavedToFile:
    """Gives an estimator `save` and `load`."""

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted estimator to one safetensors file, atomically.

        Parameters
        ----------
        path : path-like
            An existing file is replaced only when the new one is complete.
        """
        from diagatt import __version__

        check_is_fitted(self)
        tensors, fitted = {}, {}
        for name, value in _fitted_attributes(self).items():
            if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
                tensors[name] = value
            else:
                fitted[name] = _to_json(name, value)
        document = {
            "kind": "estimator",
            "format": FORMAT_VERSION,
            "diagatt": __version__,
            "class": type(self).__name__,
            "parameters": {
                k: _to_json(k, v)
                for k, v in self.get_params(deep=False).items()  # type: ignore[attr-defined]
            },
            "fitted": fitted,
        }
        modelfile.write(path, tensors, document)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read an estimator that `save` wrote; a damaged file raises `ModelFileError`."""
        tensors, document = modelfile.read(path)
        if document.get("kind") != "estimator":
            raise ModelFileError(f"{path} is not a saved estimator but a {document.get('kind')}.")
        if document["format"] > FORMAT_VERSION:
            raise ModelFileError(
                f"{path} has format {document['format']}, written by diagatt "
                f"{document['diagatt']}; this version reads up to {FORMAT_VERSION}: upgrade."
            )
        if document["class"] != cls.__name__:
            name = document["class"]
            raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
        estimator = cls(**document["parameters"])
        for name, value in document["fitted"].items():
            setattr(estimator, name, _from_json(value))
        for name, value in tensors.items():
            setattr(estimator, name, value)
        return estimator


def _fitted_attributes(estimator: Any) -> dict[str, Any]:
    return {k: v for k, v in vars(estimator).items() if k.endswith("_") and not k.startswith("__")}


def _to_json(name: str, value: Any) -> Any:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # its state has moved on; a loaded estimator starts from fresh entropy
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": "str" if value.dtype.kind == "U" else "object"}
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
    return value
