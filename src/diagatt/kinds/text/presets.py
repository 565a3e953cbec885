"""Estimators for rows of words, adapted to the count of texts (docs/text.md says why)."""

from __future__ import annotations

import math
from typing import Any

from diagatt.estimators import BlendedClassifier, BlendedRegressor, DiagAttClassifier
from diagatt.solvers import with_solver

# For texts whose tone is to be predicted; chosen by cross-validation of training sentences
# (docs/text.md has the table). "steps" of Adam per start, whatever the count of texts, are what
# stops it early. Ridges grow with the count of texts, as the loss does: these are per text.
_TEXT: dict[str, Any] = {
    "score_form": "affine",
    "coupling": "independent",
    "parameterization": "factored",
    "rank": 2,
    "temperature": 0.1,
    "ridge": 0.02,
    "score_ridge": 0.0,
    "optimizer": "adam",
    "learning_rate": 5e-3,
    "batch_size": 256,
    "steps": 60,
    "row_dropout": 0.1,
    "init": "zero",
    "init_scale": 0.1,
    "n_restarts": 24,
}
# For texts in which one word decides and must be found, also where it is new; the preset "keyword"
# blends both. The first reads which word it is and what the text means (first and last layer): half
# of the rows are dropped, and scores are not divided by √d.
_KEYWORD: dict[str, Any] = {
    **_TEXT,
    "score_form": "quadratic",
    "temperature": 0.036,
    "ridge": 0.002,
    "score_ridge": 0.0002,
    "learning_rate": 3e-3,
    "batch_size": 512,
    "steps": 120,
    "row_dropout": 0.5,
    "init_scale": 0.036,
}
# The second reads one layer between them with a full W that starts at (nearly) zero. Scores look
# for the word in whole texts; the values also learn from its neighbours, which carry its tone, and
# so judge words that they have never seen.
_KEYWORD_LAYER: dict[str, Any] = {
    **_TEXT,
    "score_form": "quadratic",
    "parameterization": "full",
    "rank": None,
    "temperature": 5.0,
    "ridge": 0.1,
    "learning_rate": 1e-3,
    "batch_size": 32,
    "steps": 1000,
    "row_dropout": 0.0,
    "value_dropout": 0.8,
    "init_scale": 1e-3,
    "n_restarts": 1,
}
# Members of the blend, and which of the four joined layers each reads.
_MEMBERS = (
    ("first and last layer", _KEYWORD, (0, 3)),
    ("two thirds of the way up", _KEYWORD_LAYER, (1,)),
    ("five sixths of the way up", _KEYWORD_LAYER, (2,)),
)
_JOINED = 4


def text_estimator(
    n_texts: int, estimator: type = DiagAttClassifier, preset: str = "text", **changed: Any
) -> Any:
    """Return an unfitted estimator for rows of this many texts, ``TextRows(layers="joined")``.

    Parameters
    ----------
    n_texts : int
        Epochs and ridges follow from it.
    estimator : DiagAttClassifier or DiagAttRegressor
    preset : {"text", "keyword"}
        For the tone of texts, or a blend for texts in which one word decides.
    **changed
        Parameters of the estimator, or of its `Gradient` solver, that differ from the preset.

    Examples
    --------
    >>> model = text_estimator(2400, n_restarts=6)
    >>> model.solver.max_epochs, model.ridge, model.solver.n_restarts
    (6, 48.0, 6)
    >>> [name for name, _, _ in text_estimator(2000, preset="keyword").members]
    ['first and last layer', 'two thirds of the way up', 'five sixths of the way up']
    """
    if preset == "text":
        return _build(estimator, n_texts, _TEXT, changed)
    if preset != "keyword":
        raise ValueError(f"unknown preset {preset!r}: choose 'text' or 'keyword'.")
    if changed:
        raise ValueError(
            f"preset 'keyword' fixes heads, family and solver: leave {', '.join(changed)} out."
        )
    blend = BlendedClassifier if estimator is DiagAttClassifier else BlendedRegressor
    members = [(name, _build(estimator, n_texts, own, {}), at) for name, own, at in _MEMBERS]
    return blend(members, n_blocks=_JOINED)


def _build(estimator: type, n_texts: int, preset: dict[str, Any], changed: dict[str, Any]) -> Any:
    """Return the estimator of a preset; the only place that knows its parameters' names."""
    settings = dict(preset)
    batches = math.ceil(n_texts / settings["batch_size"])
    settings["max_epochs"] = max(1, round(settings.pop("steps") / batches))
    for name in ("ridge", "score_ridge"):
        settings[name] *= n_texts
    parameters = with_solver("gradient", {**settings, **changed})
    return estimator(**{**parameters, "solver": changed.get("solver", parameters["solver"])})
