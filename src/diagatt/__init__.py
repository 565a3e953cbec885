"""Individualized sparse regression with diagonalized attention."""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diagatt import simulate
    from diagatt.attention import DiagonalAttention
    from diagatt.certainty import NoRowOfInterestWarning, NotAPosteriorWarning
    from diagatt.competitors import (
        GroupLassoClassifier,
        GroupLassoRegressor,
        MDSPClassifier,
        MDSPRegressor,
        StdAttClassifier,
        StdAttRegressor,
        TwoStepClassifier,
        TwoStepRegressor,
    )
    from diagatt.covariates import WithCovariates
    from diagatt.estimators import (
        BlendedClassifier,
        BlendedRegressor,
        DiagAttClassifier,
        DiagAttRegressor,
        DiagAttSurvival,
        GatedAttentionClassifier,
        GatedAttentionRegressor,
        PooledClassifier,
        PooledRegressor,
    )
    from diagatt.modelfile import ModelFileError
    from diagatt.ragged import RaggedRows
    from diagatt.stores import RowStore

__version__ = "0.1.0"
__all__ = [
    "BlendedClassifier",
    "BlendedRegressor",
    "DiagAttClassifier",
    "DiagAttRegressor",
    "DiagAttSurvival",
    "DiagonalAttention",
    "GatedAttentionClassifier",
    "GatedAttentionRegressor",
    "GatedAttentionSurvival",
    "GroupLassoClassifier",
    "GroupLassoRegressor",
    "MDSPClassifier",
    "MDSPRegressor",
    "ModelFileError",
    "NoRowOfInterestWarning",
    "NotAPosteriorWarning",
    "PooledClassifier",
    "PooledRegressor",
    "PooledSurvival",
    "RaggedRows",
    "RowStore",
    "StdAttClassifier",
    "StdAttRegressor",
    "TwoStepClassifier",
    "TwoStepRegressor",
    "WithCovariates",
    "simulate",
]

# Modules of public names that do not stand in `estimators`.
_HOMES = {
    "DiagonalAttention": "attention",
    "ModelFileError": "modelfile",
    "NoRowOfInterestWarning": "certainty",
    "NotAPosteriorWarning": "certainty",
    "RaggedRows": "ragged",
    "RowStore": "stores",
    "WithCovariates": "covariates",
    "GroupLassoClassifier": "competitors",
    "GroupLassoRegressor": "competitors",
    "MDSPClassifier": "competitors",
    "MDSPRegressor": "competitors",
    "StdAttClassifier": "competitors",
    "StdAttRegressor": "competitors",
    "TwoStepClassifier": "competitors",
    "TwoStepRegressor": "competitors",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `diagatt --help` needs no torch."""
    if name not in __all__:
        raise AttributeError(f"module 'diagatt' has no attribute {name!r}")
    if name == "simulate":
        return _imported("simulate")
    value = getattr(_imported(_HOMES.get(name, "estimators")), name)
    globals()[name] = value
    return value


def _imported(room: str) -> Any:
    """Import a room with torch and scikit-learn, while no garbage is collected.

    Imports make a million objects and no garbage, and looking for it takes a fifth of their time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"diagatt.{room}")
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
