"""Estimators in one file: parameters, fitted attributes, versions; no pickle.

Arrays of numbers become tensors, everything else one JSON document; see `diagatt.modelfile`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from inspect import isabstract
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from diagatt import attributes, modelfile
from diagatt.modelfile import ModelFileError
from diagatt.parameters import check as check_parameters
from diagatt.parameters import shown
from diagatt.torch_settings import give_own_torch_settings

# What a model file consists of, and where it lies.
Tensors = Mapping[str, np.ndarray]
Document = Mapping[str, Any]
AnyPath = str | os.PathLike

FORMAT_VERSION = 2

# Entries that every document has, and their types.
_COMMON: dict[str, type] = {"diagatt": str, "class": str, "parameters": dict}
_ENTRIES: dict[str, dict[str, type]] = {
    "estimator": {**_COMMON, "fitted": dict},
    "pipeline": {**_COMMON, "rows": dict, "estimator": dict, "estimator_is_default": bool},
}
# Rooms whose estimators a file may name inside a blend or a pipeline.
ROOMS = ("diagatt.estimators", "diagatt.competitors")
_REGISTERED: dict[str, type] = {}
# Classes of objects that may be parameters of a saved estimator: solvers register themselves.
_PARTS: dict[str, type[BaseEstimator]] = {}


def register_part(kind: type[BaseEstimator]) -> None:
    """Let objects of this class be saved as parameters of estimators."""
    _PARTS[kind.__name__] = kind


class SavedToFile:
    """Gives an estimator `save` and `load`, and registers its class; see `registered`.

    Its public methods run with torch's own settings; see `diagatt.torch_settings`.
    """

    #: Entries of the document besides those that all have.
    further_entries: ClassVar[tuple[str, ...]] = ()
    #: Parameters that older files lack, with the value that these mean.
    later_parameters: ClassVar[Mapping[str, Any]] = {}
    #: What each fitted attribute is; a file that says otherwise is refused.
    fitted_rules: ClassVar[attributes.Rules] = {}

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes that the fitted arrays have if they fit the other attributes."""
        return {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(ROOMS) and not cls.__name__.startswith("_"):
            _REGISTERED[cls.__name__] = cls
        give_own_torch_settings(cls)

    def save(self, path: AnyPath) -> None:
        """Write the fitted estimator to one safetensors file, atomically.

        Parameters
        ----------
        path : path-like
            An existing file is replaced only when the new one is complete.
        """
        modelfile.write(path, *self.to_document())

    @classmethod
    def load(cls, path: AnyPath) -> Self:
        """Read an estimator that `save` wrote; a damaged file raises `ModelFileError`."""
        return cls.from_document(*modelfile.read(path), path)

    def to_document(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return tensors and JSON document of the fitted estimator."""
        return to_document(self)

    @classmethod
    def from_format_1(cls, tensors: Tensors, document: Document) -> tuple[Tensors, Document]:
        """Return what a file of format 1 holds in the present format; most has not changed."""
        return tensors, document

    @classmethod
    def from_document(
        cls, tensors: Tensors, document: Document, path: AnyPath = "the file"
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
    tensors: Tensors,
    document: Document,
    path: AnyPath = "the file",
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
    name = class_named(document, "estimator", path)
    known = classes if isinstance(classes, Mapping) else {classes.__name__: classes}
    if name not in known:
        raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
    kind: Any = known[name]
    further = getattr(kind, "further_entries", ())
    check_document(document, "estimator", path, more=("columns", *further))
    try:
        if document["format"] == 1 and hasattr(kind, "from_format_1"):  # rows of texts: the same
            tensors, document = kind.from_format_1(tensors, document)
        fitted = {key: from_json(value) for key, value in document["fitted"].items()}
        twice = sorted(set(fitted) & set(tensors))
        if twice:
            raise ValueError(f"there are two values of {twice[0]}")
        attributes.check_names(kind, fitted | dict(tensors))
        estimator = build(kind, document["parameters"])
        vars(estimator).update(fitted | dict(tensors))
        if hasattr(estimator, "_keep_family"):
            estimator._keep_family()
        attributes.check_values(estimator)
    except attributes.NONSENSE as error:
        raise refusal(path, name, error) from error
    return estimator


def build(kind: Any, document: Document, *, without: tuple[str, ...] = ()) -> Any:
    """Return an object of the class with the parameters of a file, all of them and no others.

    Parameters
    ----------
    kind : class
    document : mapping
        Parameters as `to_json` wrote them.
    without : tuple of str
        Parameters that are not in the file.
    """
    expected = set(kind._get_param_names()) - set(without)
    later = getattr(kind, "later_parameters", {})  # which older files lack
    former = getattr(kind, "former_parameters", ())  # which older files have
    kept = {name: value for name, value in document.items() if name not in former}
    document = {**{name: later[name] for name in expected & set(later)}, **kept}
    for name in sorted(expected ^ set(document)):
        problem = "is missing" if name in expected else f"is none of {kind.__name__}"
        raise ValueError(f"the parameter {shown(name)} {problem}")
    made = kind(**{name: from_json(value) for name, value in document.items()})
    if "device" not in expected:
        check_parameters(made)
        return made
    # Whether this machine has the device is asked when it is used: the model may have moved here.
    device, made.device = made.device, "cpu"
    if not _is_device(device):
        raise ValueError(f"device must be the name of a torch device, got {shown(device)}")
    check_parameters(made)
    made.device = device
    return made


def _is_device(name: Any) -> bool:
    try:
        return torch.device(name).type in ("cpu", "cuda", "mps", "xpu")
    except (RuntimeError, TypeError):
        return False


def refusal(path: AnyPath, name: str, error: Exception) -> ModelFileError:
    """Return the error that says in one sentence why the file holds no such estimator."""
    words = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
    return ModelFileError(f"{path} holds no valid {name}: {words}.")


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


def restore(tensors: Tensors, document: Document, path: AnyPath) -> Any:
    """Return the fitted estimator of a document, whichever of diagatt's own it is."""
    name = class_named(document, "estimator", path)
    if name not in registered():
        raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
    return registered()[name].from_document(tensors, document, path)


def class_named(document: Any, kind: str, path: AnyPath) -> str:
    """Return the name of the class that a document of this kind is about."""
    _check_head(document, kind, path)
    name = document.get("class")
    if not isinstance(name, str) or not name.isidentifier() or len(name) > 100:
        raise ModelFileError(f"{path} does not say which class it holds.")
    return name


def check_document(document: Any, kind: str, path: AnyPath, more: tuple[str, ...] = ()) -> None:
    """Refuse a document of another kind, of a newer format, or of other entries.

    Parameters
    ----------
    document
        Anything that JSON can hold.
    kind : {"estimator", "pipeline"}
    path : path-like
        Where it comes from, for error messages.
    more : tuple of str
        Entries that it may have besides those that all documents of this kind have.
    """
    _check_head(document, kind, path)
    entries = _ENTRIES[kind]
    for name, wanted in entries.items():
        if name not in document:
            raise ModelFileError(f"{path} is damaged: the {kind} in it has no entry {name!r}.")
        if not isinstance(document[name], wanted):
            raise ModelFileError(
                f"{path} is damaged: the entry {name!r} of the {kind} in it is "
                f"{shown(document[name])}, which is not a {wanted.__name__}."
            )
    unknown = sorted(set(document) - set(entries) - {"kind", "format", *more})
    if unknown:
        raise ModelFileError(
            f"{path} is damaged: the {kind} in it has an unknown entry {shown(unknown[0])}."
        )


def _check_head(document: Any, kind: str, path: AnyPath) -> None:
    """Refuse a document of another kind or of a newer format."""
    if not isinstance(document, Mapping) or document.get("kind") != kind:
        found = document.get("kind") if isinstance(document, Mapping) else document
        words = found if isinstance(found, str) else shown(found)
        raise ModelFileError(f"{path} is not a saved {kind} but a {words[:100]}.")
    version = document.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{path} has no readable format: it says {shown(version)}.")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format {version}, written by diagatt "
            f"{document.get('diagatt')}; this version reads up to {FORMAT_VERSION}: upgrade."
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


def from_json(value: Any) -> Any:
    """Return the value that `to_json` wrote; what it cannot have written is a ValueError."""
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return _array_from_json(value["array"], value["dtype"])
    if isinstance(value, dict) and set(value) == {"object", "parameters"}:
        name, own = value["object"], value["parameters"]
        if not isinstance(name, str) or name not in _PARTS:
            raise ValueError(
                f"it names a {str(name)[:100]}, which is not known here: import it first"
            )
        if not isinstance(own, dict):
            raise ValueError(f"the parameters of the {name} in it are {shown(own)}")
        return build(_PARTS[name], own)
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value


def _array_from_json(items: Any, dtype: Any) -> np.ndarray:
    allowed: dict[Any, Any] = {"str": str, "object": str | bool | int | float}
    if not isinstance(dtype, str) or dtype not in allowed or not isinstance(items, list):
        raise ValueError(f"an array in it is {shown(items)} of type {shown(dtype)}")
    wrong = [item for item in items if not isinstance(item, allowed[dtype])]
    if wrong:
        raise ValueError(f"an array of type {dtype} in it holds {shown(wrong[0])}")
    return np.array(items, dtype=dtype)
