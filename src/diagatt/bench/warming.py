"""Import in the parent what a method imports when it first fits.

Otherwise every forked child would import the same libraries again, and its seconds and memory
would include the imports.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from diagatt.bench.confined import Limits, run_confined
from diagatt.bench.methods import get_method
from diagatt.ragged import RaggedRows


@cache
def warm_up(method: str, task: str) -> None:
    """Fit a toy in a child, learn which modules that takes, and import them here.

    The fit itself must not happen here: a process that has run autograd cannot be forked safely.
    """
    before = set(sys.modules)

    def modules_of_a_fit() -> dict[str, Any]:
        X, y = _toy(task)
        with suppress(Exception):  # an error here occurs again where it is recorded
            model = get_method(method).make(task, "auto", seed=0)
            model.fit(X, y)
            (model.predict if task == "regression" else model.predict_proba)(X)
        return {"modules": [name for name in sys.modules if name not in before]}

    for name in run_confined(modules_of_a_fit, Limits(seconds=60)).get("modules", []):
        with suppress(Exception):  # some modules cannot be imported by their name
            import_module(name)


def _toy(task: str) -> tuple[RaggedRows, np.ndarray]:
    rng = np.random.default_rng(0)
    X = RaggedRows(rng.normal(size=(120, 3)), np.arange(0, 121, 3))
    if task == "regression":
        return X, rng.normal(size=40)
    return X, np.arange(40) % (2 if task == "binary" else 3)
