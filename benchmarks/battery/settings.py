"""Every parameter of every estimator, solver and transformer with values that make no sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from benchmarks.battery.judge import Case
from benchmarks.battery.models import X, responses, short
from diagatt.parameters import Rule
from diagatt.persistence import registered
from diagatt.solvers import SOLVERS

VALUES: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": -float("inf"),
    "NumPy's NaN": np.float32("nan"),
    "complex": 1 + 2j,
    "an array": np.ones((2, 2)),
    "an empty list": [],
    "a list of words": ["a", "b"],
    "a list with NaN": [1.0, float("nan")],
    "a tensor": torch.ones(2),
    "a huge number": 10**400,
    "minus a huge number": -(10**400),
    "a fraction": 1.5,
    "minus one": -1,
    "zero": 0,
    "a word": "nonsense",
    "an empty word": "",
    "bytes": b"auto",
    "None": None,
    "True": True,
    "a dictionary": {"a": 1},
    "a set": {1},
    "an object": object(),
    "a class": int,
    "a date": np.datetime64("2020-01-01"),
    "a duration": np.timedelta64(1, "D"),
    "a string of a number": "1",
}


def rules_of(kind: type) -> dict[str, Rule]:
    """Return the rules that a class and its bases declare."""
    rules: dict[str, Rule] = {}
    for base in reversed(kind.__mro__):
        rules |= vars(base).get("rules", {})
    return rules


def cases() -> Iterator[Case]:
    """Yield the cases of parameters; values that a rule allows are none."""
    for name, kind in registered().items():
        for parameter in kind._get_param_names():
            yield from _wrong(name, kind, parameter, lambda kind=kind, **own: _fit(kind, **own))
        if "solver" not in kind._get_param_names():
            continue
        for solver in SOLVERS.values():
            for parameter in solver._get_param_names():
                yield from _wrong(
                    f"{name}({solver.__name__})",
                    solver,
                    parameter,
                    lambda kind=kind, solver=solver, **own: _fit(kind, solver=solver(**own)),
                )
    yield from _kinds()


def _kinds() -> Iterator[Case]:
    from diagatt.images import ImageClassifier, ImageRegressor, PatchRows
    from diagatt.text import TextClassifier, TextRegressor, TextRows

    images, texts, y = np.zeros((4, 8, 8)), ["a word"] * 4, [0, 1, 0, 1]
    for kind, inputs in (
        *((ImageClassifier, images), (ImageRegressor, images), (PatchRows, images)),
        *((TextClassifier, texts), (TextRegressor, texts), (TextRows, texts)),
    ):
        for parameter in kind._get_param_names():
            yield from _wrong(
                kind.__name__,
                kind,
                parameter,
                lambda kind=kind, inputs=inputs, **own: kind(**own).fit(inputs, y),
            )


def _wrong(name: str, kind: Any, parameter: str, act: Any) -> Iterator[Case]:
    rule = rules_of(kind).get(parameter)
    for what, value in VALUES.items():
        if rule is not None and rule.accepts(value):
            continue
        yield Case(
            "parameters",
            f"{name} · {parameter} = {what}",
            lambda value=value: act(**{parameter: value}),
            True,
            words=parameter,
        )


def _fit(kind: type[BaseEstimator], **given: Any) -> Any:
    model = short(kind).set_params(**given)
    return model.fit(X, responses(model))
