"""Named settings, as parameters that anyone can see and change."""

from __future__ import annotations

from typing import Any

from diagatt.solvers import Gradient


def get_preset(kind: str, name: str) -> dict[str, Any]:
    """Return the parameters of a preset for a "regressor" or a "classifier".

    Examples
    --------
    >>> get_preset("classifier", "paper")["solver"].temperature
    1000.0
    """
    if name != "paper":
        raise ValueError(f"unknown preset {name!r}: choose 'paper'.")
    return {
        "score_form": "quadratic",
        "coupling": "independent",
        "ridge": 0.0,
        # Supplement S7.1 says "Adam, default settings" and gives the temperatures. Batch size,
        # epochs and start are unstated; these reproduce the published tables.
        "solver": Gradient(
            "factored",
            temperature=100.0 if kind == "regressor" else 1000.0,
            score_ridge=0.0,
            optimizer="adam",
            learning_rate=1e-3,
            batch_size=32,
            max_epochs=40,
            init="zero",
            init_scale=1.0,
        ),
    }
