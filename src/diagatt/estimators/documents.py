"""Documents of saved DiagAtt estimators: solver objects as JSON, and files of format 1.

In format 1 the estimator had the parameters of its solvers; now a solver object has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from diagatt.modelfile import ModelFileError
from diagatt.scores import SCORE_FORMS
from diagatt.solvers import SOLVERS, Auto, Gradient, Likelihood, Refined, Solver, Uniform


def present_document(
    document: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Return the document in the present format, with solvers as objects."""
    if document["format"] == 1:
        document = _from_format_1(document, tensors)
    parameters = {name: _with_solvers(value) for name, value in document["parameters"].items()}
    return {**document, "parameters": parameters}


def _with_solvers(value: Any) -> Any:
    """Turn what `diagatt.persistence.to_json` wrote for a solver back into one."""
    if isinstance(value, list):
        return [_with_solvers(item) for item in value]
    if not isinstance(value, dict) or set(value) != {"class", "parameters"}:
        return value
    solvers = {kind.__name__: kind for kind in SOLVERS.values()}
    if value["class"] not in solvers:
        raise ModelFileError(f"the solver {value['class']} is not known: import it first.")
    parameters = {name: _with_solvers(inner) for name, inner in value["parameters"].items()}
    return solvers[value["class"]](**parameters)


def _from_format_1(document: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict:
    flat, fitted = dict(document["parameters"]), dict(document["fitted"])
    flat.pop("checkpoint_every")
    own = {name: flat.pop(name) for name in list(flat) if name in _SOLVER_PARAMETERS}
    side, d = tensors["query_"].shape[1], tensors["value_"].shape[-1]
    fitted["score_form_"] = next(n for n, form in SCORE_FORMS.items() if form.side(d) == side)
    if fitted["solver_"] == "polish":
        fitted["solver_"] = Refined.name
    parameters = {**flat, "solver": _solver_of_format_1(flat["solver"], own)}
    return {**document, "parameters": parameters, "fitted": fitted}


_SOLVER_PARAMETERS = {*Likelihood.rules, *Gradient.rules} - {"max_iterations"}


def _solver_of_format_1(name: str, own: Mapping[str, Any]) -> str | Solver:
    gradient = Gradient(**{n: value for n, value in own.items() if n in Gradient.rules})
    likelihood = Likelihood(own["covariance"], rank=own["rank"] or 2, shrinkage=own["shrinkage"])
    if name != "auto":
        return gradient if name == "gradient" else likelihood
    if repr(gradient) == repr(Gradient()) and repr(likelihood) == repr(Likelihood()):
        return name
    refining = clone(gradient).set_params(optimizer="adam", max_epochs=10, learning_rate=3e-4)
    return Auto([Uniform(), likelihood, Refined(likelihood, refining), gradient])
