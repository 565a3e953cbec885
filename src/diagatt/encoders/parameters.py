"""The parameter ``encoder`` in model files: a transformer by its class and its parameters."""

from __future__ import annotations

import json
from typing import Any

from torch import nn

from diagatt.encoders.row_encoder import KNOWN, class_named, is_pipeline
from diagatt.encoders.trained import MLP, like
from diagatt.parameters import check, shown


def to_json(transformer: Any) -> Any:
    """Return an unfitted transformer as JSON; a parameter that JSON cannot hold is refused."""
    if is_pipeline(transformer):
        return {"steps": [[name, to_json(part)] for name, part in transformer.steps]}
    if transformer is None or isinstance(transformer, str):
        return transformer
    if isinstance(transformer, nn.Module):  # a new fit begins with other weights anyway
        return to_json(like(transformer))
    own = transformer.get_params(deep=False)
    for name, value in own.items():
        try:
            json.dumps(value)
        except TypeError as error:
            raise TypeError(f"encoder__{name}={value!r} cannot be saved: {error}.") from error
    return {"class": type(transformer).__name__, "parameters": own}


def from_json(stored: Any) -> Any:
    """Return the transformer that `to_json` wrote; anything else is a ValueError."""
    if stored is None:
        return None
    if isinstance(stored, dict) and set(stored) == {"steps"} and isinstance(stored["steps"], list):
        steps = []
        for item in stored["steps"]:
            if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
                raise ValueError(f"a step of the encoder is {shown(item)}")
            part = item[1] if item[1] in (None, "passthrough") else from_json(item[1])
            steps.append((item[0], part))
        from sklearn.pipeline import Pipeline  # here, because it takes 0.1 s

        return Pipeline(steps)
    if not isinstance(stored, dict) or set(stored) != {"class", "parameters"}:
        raise ValueError(f"the encoder is {shown(stored)}")
    name, own = stored["class"], stored["parameters"]
    if not isinstance(name, str) or name not in (*KNOWN, "MLP") or not isinstance(own, dict):
        raise ValueError(f"the encoder is a {shown(name)}")
    kind: Any = MLP if name == "MLP" else class_named(name)
    if set(own) - set(kind._get_param_names()):
        raise ValueError(f"{name} has no parameter {shown(sorted(own)[0])}")
    made = {k: tuple(v) if isinstance(v, list) else v for k, v in own.items()}
    found = kind(**made)
    if isinstance(found, MLP):
        check(found, "encoder__")
    return found
