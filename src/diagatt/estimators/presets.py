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

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "regressor": {"paper": {**_PAPER, "temperature": 100.0}},
    "classifier": {"paper": {**_PAPER, "temperature": 1000.0}},
}


def get_preset(kind: str, name: str) -> dict[str, Any]:
    """Parameters of a preset for a "regressor" or a "classifier"."""
    if name not in PRESETS[kind]:
        raise ValueError(f"unknown preset {name!r}: choose one of {sorted(PRESETS[kind])}.")
    return PRESETS[kind][name]
