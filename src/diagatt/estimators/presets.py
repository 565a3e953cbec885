"""Named settings, as parameters that anyone can see and change."""

from __future__ import annotations

from typing import Any

# Supplement S7.1 says "Adam, default settings" and gives the temperatures. Batch size, epochs and
# start are unstated; these reproduce the published tables.
_PAPER: dict[str, Any] = {
    "solver": "gradient",
    "score_form": "quadratic",
    "coupling": "independent",
    "parameterization": "factored",
    "rank": None,
    "ridge": 0.0,
    "score_ridge": 0.0,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "batch_size": 32,
    "max_epochs": 40,
    "row_dropout": 0.0,
    "validation_fraction": 0.0,
    "init": "zero",
    "init_scale": 1.0,
    "n_restarts": 1,
}

# For texts whose tone is to be predicted; chosen by cross-validation of training sentences
# (docs/text.md has the table). Ridge and epochs are for about 2,000 texts; `diagatt.text` fits them
# to the number of texts.
_TEXT: dict[str, Any] = {
    "solver": "gradient",
    "score_form": "affine",
    "coupling": "independent",
    "parameterization": "factored",
    "rank": 2,
    "temperature": 0.1,
    "ridge": 40.0,
    "score_ridge": 0.0,
    "optimizer": "adam",
    "learning_rate": 5e-3,
    "batch_size": 256,
    "max_epochs": 6,
    "row_dropout": 0.1,
    "init": "zero",
    "init_scale": 0.1,
    "n_restarts": 24,
}

# For texts in which one word decides and must be found, also where it is new; `diagatt.text` blends
# both. The first reads which word it is and what the text means (first and last layer): half of the
# rows are dropped, and scores are not divided by √d.
_KEYWORD: dict[str, Any] = {
    **_TEXT,
    "score_form": "quadratic",
    "temperature": 0.036,
    "ridge": 4.0,
    "score_ridge": 0.4,
    "learning_rate": 3e-3,
    "batch_size": 512,
    "max_epochs": 30,
    "row_dropout": 0.5,
    "init_scale": 0.036,
}

# The second reads one layer between them with a full W that starts at (nearly) zero. Scores look
# for the word in whole texts; the values learn from its neighbours, too, which carry its tone, and
# so judge words that they have never seen.
_KEYWORD_LAYER: dict[str, Any] = {
    **_TEXT,
    "score_form": "quadratic",
    "parameterization": "full",
    "rank": None,
    "temperature": 5.0,
    "ridge": 200.0,
    "learning_rate": 1e-3,
    "batch_size": 32,
    "max_epochs": 16,
    "row_dropout": 0.0,
    "value_dropout": 0.8,
    "init_scale": 1e-3,
    "n_restarts": 1,
}

_TEXTS = {"text": _TEXT, "keyword": _KEYWORD, "keyword-layer": _KEYWORD_LAYER}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "regressor": {"paper": {**_PAPER, "temperature": 100.0}, **_TEXTS},
    "classifier": {"paper": {**_PAPER, "temperature": 1000.0}, **_TEXTS},
}


def get_preset(kind: str, name: str) -> dict[str, Any]:
    """Parameters of a preset for a "regressor" or a "classifier"."""
    if name not in PRESETS[kind]:
        raise ValueError(f"unknown preset {name!r}: choose one of {sorted(PRESETS[kind])}.")
    return PRESETS[kind][name]
