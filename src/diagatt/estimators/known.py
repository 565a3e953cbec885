"""Estimators that a file may hold inside another one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from diagatt.modelfile import ModelFileError


def known() -> dict[str, Any]:
    """Every estimator of diagatt by its name."""
    from diagatt import estimators

    classes = {name: getattr(estimators, name) for name in estimators.__all__}
    return {name: kind for name, kind in classes.items() if issubclass(kind, BaseEstimator)}


def restored(
    tensors: Mapping[str, np.ndarray], document: Mapping[str, Any], path: str | os.PathLike
) -> Any:
    """Return the fitted estimator of a document, whichever it is."""
    name = document["class"]
    if name not in known():
        raise ModelFileError(f"{path} holds a {name}: load it with {name}.load.")
    return known()[name].from_document(tensors, document, path)
