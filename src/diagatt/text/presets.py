"""Estimators for rows of words, fitted to the number of texts (docs/text.md says why)."""

from __future__ import annotations

import math
from typing import Any

from diagatt.estimators import (
    BlendedClassifier,
    BlendedRegressor,
    DiagAttClassifier,
)
from diagatt.estimators.presets import get_preset

__all__ = ["keyword_blend", "text_settings"]

# Steps of Adam a start, whatever the number of texts: this is what stops it early.
STEPS = {"text": 60, "keyword": 120, "keyword-layer": 1000}
# Of values and scores, beside the mean loss.
RIDGE = {"text": 0.02, "keyword": 0.002, "keyword-layer": 0.1}
SCORE_RIDGE = {"text": 0.0, "keyword": 0.0002, "keyword-layer": 0.0}
# What a blend for keywords reads of the joined layers, of which there are four.
JOINED = 4
KEYWORD_MEMBERS = (
    ("first and last layer", "keyword", (0, 3)),
    ("two thirds of the way up", "keyword-layer", (1,)),
    ("five sixths of the way up", "keyword-layer", (2,)),
)


def text_settings(n_texts: int, preset: str = "text") -> dict[str, Any]:
    """Parameters of an estimator for so many training texts.

    The preset with as many epochs as make about 60 steps ("text"), 120 ("keyword") or 1000
    ("keyword-layer"), and ridges that grow with the number of texts, as the loss does.

    Examples
    --------
    >>> settings = text_settings(2400)
    >>> settings["max_epochs"], settings["ridge"]
    (6, 48.0)
    """
    settings = get_preset("classifier", preset)
    batches = math.ceil(n_texts / settings["batch_size"])
    return {
        **settings,
        "max_epochs": max(1, round(STEPS[preset] / batches)),
        "ridge": RIDGE[preset] * n_texts,
        "score_ridge": SCORE_RIDGE[preset] * n_texts,
    }


def keyword_blend(n_texts: int, kind: type = DiagAttClassifier) -> Any:
    """Return a blend for so many texts in which one word decides, on ``layers="joined"``.

    Parameters
    ----------
    n_texts : int
    kind : DiagAttClassifier or DiagAttRegressor
        Of the members.

    Examples
    --------
    >>> [name for name, _, _ in keyword_blend(2000).members]
    ['first and last layer', 'two thirds of the way up', 'five sixths of the way up']
    """
    blend = BlendedClassifier if kind is DiagAttClassifier else BlendedRegressor
    members = [
        (name, kind(**text_settings(n_texts, preset)), blocks)
        for name, preset, blocks in KEYWORD_MEMBERS
    ]
    return blend(members, n_blocks=JOINED)
